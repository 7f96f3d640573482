"""Templates: everything escaped, an unknown name an error."""

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from minitickets_api.pages.static_files import StaticFiles
from minitickets_contracts import wording

_FOLDER = Path(__file__).parent / "templates"


def environment(static: StaticFiles) -> Environment:
    """Jinja with what every template may use: ``static(name)``, and the wordings of dates, amounts and counts."""
    templates = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals["static"] = static.url
    templates.filters.update(
        amount=wording.amount_text,
        day=wording.day_text,
        clock=wording.clock_text,
        zone=wording.zone_text,
        start=wording.start_text,
        moment=wording.instant_text,
        count=count_text,
    )
    return templates


def count_text(number: int, noun: str) -> str:
    """``1 seat``, ``1,200 seats``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
