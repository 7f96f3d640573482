"""The words of a mail, once for both of its twins."""

from dataclasses import dataclass
from html import escape

# Names, titles and venues bring their own direction: dir="auto" and bdi keep it from turning what stands beside them.
_HTML = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{subject}</title></head>
<body style="font-family: sans-serif; line-height: 1.5; color: #1a1a1a; background: #ffffff">
<p>Hello <bdi>{name}</bdi>,</p>
<p>{lead}</p>
{blocks}
<p style="color: #595959">{closing}</p>
</body>
</html>
"""
_HEADING = '<h1 dir="auto" style="font-size: 1.4em">{}</h1>'
_TABLE = '<table cellpadding="4">\n{}\n</table>'
_ROW = '<tr><th scope="row" align="left" valign="top">{}</th><td dir="auto">{}</td></tr>'


@dataclass(frozen=True, kw_only=True)
class Paragraph:
    """A sentence or two, and the address that they point to, if any."""

    text: str
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Letter:
    """A greeting by ``name``, what happened (``lead``), its facts by label, what follows from it, a closing line."""

    name: str
    lead: str
    heading: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    paragraphs: tuple[Paragraph, ...]
    closing: str


def letter_text(letter: Letter) -> str:
    """The plain twin."""
    facts = [f"{label}: {value}" for label, value in letter.facts]
    blocks = [
        f"Hello {letter.name},",
        letter.lead,
        "\n".join([*([letter.heading] if letter.heading else []), *facts]),
        *(" ".join(part for part in (paragraph.text, paragraph.url) if part) for paragraph in letter.paragraphs),
        letter.closing,
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def letter_html(letter: Letter, *, subject: str) -> str:
    """The HTML twin, a page of its own. Nothing in it is fetched from anywhere."""
    blocks = []
    if letter.heading:
        blocks.append(_HEADING.format(escape(letter.heading)))
    if letter.facts:
        rows = (_ROW.format(escape(label), escape(value)) for label, value in letter.facts)
        blocks.append(_TABLE.format("\n".join(rows)))
    for paragraph in letter.paragraphs:
        link = "" if paragraph.url is None else f' <a href="{escape(paragraph.url)}">{escape(paragraph.url)}</a>'
        blocks.append(f"<p>{escape(paragraph.text)}{link}</p>")
    return _HTML.format(
        subject=escape(subject),
        name=escape(letter.name),
        lead=escape(letter.lead),
        blocks="\n".join(blocks),
        closing=escape(letter.closing),
    )
