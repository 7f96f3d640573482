"""What is sent."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Attachment:
    """A file in a mail. ``content_type`` may have parameters, and at most 78 characters (SES)."""

    file_name: str
    content_type: str
    content: bytes

    def __repr__(self) -> str:
        return f"Attachment({self.file_name!r}, <hidden>)"


@dataclass(frozen=True, kw_only=True)
class Mail:
    """A mail in its two twins, which say the same. ``recipient`` is as the customer gave it."""

    recipient: str
    subject: str
    text: str
    html: str
    attachments: tuple[Attachment, ...] = ()

    def __repr__(self) -> str:
        return "Mail(<hidden>)"


def subject_line(text: str) -> str:
    """``text`` as one line that no mail program decodes any further.

    Contracts refuse control characters already; an encoded word (``=?utf-8?q?=0D=0A…?=``) would smuggle them in.
    """
    return " ".join(text.split()).replace("=?", "= ?")
