"""Seats sold by day, as a picture."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Size:
    """In CSS pixels: texts keep their size, so a phone needs a picture of its own."""

    width: int
    height: int
    labels: int  # days named below the bars


WIDE = Size(width=760, height=260, labels=6)
NARROW = Size(width=330, height=220, labels=3)
# More bars than this are too thin to see: then a bar stands for several days.
MAX_BARS = 60
_LEAST_DAYS = 14  # one bar alone would fill the picture
# app.css's --quiet, --line and --accent: a picture knows nothing of the page's style.
_INK, _LINE, _BAR = "#5b586a", "#d9d6df", "#3f3a8c"
_DARK_INK, _DARK_LINE, _DARK_BAR = "#b0acbf", "#353342", "#b7b2ff"
_CSS = f"""
.axis text, .axis text.major {{ fill: {_INK}; }}
.axis .line, .axis .guide.line, .axis .major.guide.line, .axis .guides .line {{
  stroke: {_LINE}; stroke-dasharray: none;
}}
.axis.x .line {{ display: none; }}
.color-0 {{ fill: {_BAR}; stroke: none; }}
.reactive {{ fill-opacity: 1; }}
@media (prefers-color-scheme: dark) {{
  .axis text, .axis text.major {{ fill: {_DARK_INK}; }}
  .axis .line, .axis .guide.line, .axis .major.guide.line, .axis .guides .line {{ stroke: {_DARK_LINE}; }}
  .color-0 {{ fill: {_DARK_BAR}; }}
}}
"""


def bars(days: Sequence[tuple[date, int]]) -> list[tuple[date, date, int]]:
    """(first day, last day, seats) from the first day with a sale, or earlier, to the last: at most ``MAX_BARS`` steps.

    ``days`` are those on which something was sold, in order; on all others nothing was.
    """
    if not days:
        return []
    sold = dict(days)
    last = days[-1][0]
    first = min(days[0][0], last - timedelta(days=_LEAST_DAYS - 1))
    count = (last - first).days + 1
    step = -(-count // MAX_BARS)
    found: list[tuple[date, date, int]] = []
    for offset in range(0, count, step):
        covered = [first + timedelta(days=offset + more) for more in range(min(step, count - offset))]
        found.append((covered[0], covered[-1], sum(sold.get(day, 0) for day in covered)))
    return found


def draw(days: Sequence[tuple[date, int]], *, size: Size = WIDE) -> bytes:
    """An SVG of ``bars(days)`` without script, link or comment: the same bytes for the same sales."""
    # A tenth of a second to import, which only this picture needs.
    with _without_its_finder():
        import pygal
        from pygal.style import Style

    steps = bars(days)
    most = max((seats for *_, seats in steps), default=0)
    chart = pygal.Bar(
        style=Style(
            background="transparent",
            plot_background="transparent",
            colors=(_BAR,),
            font_family="system-ui, sans-serif",
            label_font_size=13,
            major_label_font_size=13,
        ),
        css=["file://style.css", "file://graph.css", f"inline:{_CSS}"],
        js=[],
        width=size.width,
        height=size.height,
        margin=8,
        spacing=4,
        truncate_label=-1,
        show_legend=False,
        no_prefix=True,
        no_data_text="",
        show_minor_x_labels=False,
        x_labels_major_every=max(1, -(-len(steps) // size.labels)),
        y_labels=_scale(most),
        value_formatter=lambda value: f"{value:,.0f}",
        formatter=lambda value: f"{value:,.0f}",
    )
    chart.x_labels = [f"{day.day} {day:%b}" for day, *_ in steps]
    chart.add("Seats", [seats for *_, seats in steps])
    chart.add_xml_filter(_without_script)
    picture: bytes = chart.render()
    return picture


@contextmanager
def _without_its_finder() -> Iterator[None]:
    """pygal puts a finder for its plugins before all others, of a kind that Python warns of at every later import.

    Its finder alone goes. Another one that its import brings, ``importlib_metadata``'s, has taken the standard
    library's place, and without it no distribution would be found any more.
    """
    try:
        yield
    finally:
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]


def _scale(most: int) -> list[int]:
    """Whole seats in at most five steps of 1, 2 or 5 times a power of ten."""
    step, power = 1, 1
    while step * 5 < most:
        step = next(
            (factor * power for factor in (1, 2, 5) if factor * power > step),
            10 * power,
        )
        if step == 10 * power:
            power *= 10
    return [step * number for number in range(max(1, -(-most // step)) + 1)]


def _without_script(root: Any) -> Any:
    """pygal's own script, its comments with today's date, and texts that only its script would show."""
    for parent in list(root.iter()):
        for child in list(parent):
            name = child.tag if isinstance(child.tag, str) else ""
            if not name or name.rpartition("}")[2] in ("script", "desc", "title"):
                parent.remove(child)
    return root
