"""The text of mails."""

from dataclasses import dataclass
from datetime import datetime
from html import escape

from minitickets_contracts.messages import BookingConfirmed

# Digits after the point where they are not two: ISO 4217, list one.
_NO_DIGITS = ("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF", 0)
_THREE_DIGITS = ("BHD IQD JOD KWD LYD OMR TND", 3)
_FOUR_DIGITS = ("CLF UYW", 4)
_MINOR_DIGITS = {code: digits for codes, digits in (_NO_DIGITS, _THREE_DIGITS, _FOUR_DIGITS) for code in codes.split()}

_HTML = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>{subject}</title></head>
<body style="font-family: sans-serif; line-height: 1.5; color: #1a1a1a; background: #ffffff">
<p>Hello {name},</p>
<p>your booking is confirmed.</p>
<h1 style="font-size: 1.4em">{title}</h1>
<table role="presentation" cellpadding="4">
{rows}
</table>
<p>{where}</p>
<p style="color: #595959">Booking {booking_id}</p>
</body>
</html>
"""


@dataclass(frozen=True, kw_only=True)
class Mail:
    """A mail in its two twins, which say the same. ``recipient`` is as the customer gave it."""

    recipient: str
    subject: str
    text: str
    html: str

    def __repr__(self) -> str:
        return "Mail(<hidden>)"


def compose_confirmation(message: BookingConfirmed, *, public_url: str | None) -> Mail:
    """The mail that tells a customer of a confirmed booking, and where its tickets are."""
    seats = ", ".join(message.seats)
    facts = [
        ("When", start_text(message.event.starts_at, message.event.time_zone)),
        ("Where", message.event.venue),
        ("Seat" if len(message.seats) == 1 else "Seats", seats),
        ("Total", amount_text(message.total_minor, message.currency)),
    ]
    subject = _header_text(f"Your booking: {message.event.title}")
    if public_url is None:
        # Without a public address no link can be right: the load balancer's own name changes (ADR 0002).
        where = where_html = "You find your tickets where you booked."
    else:
        url = f"{public_url}/"
        where = f"Your tickets are at {url}"
        where_html = f'Your tickets are at <a href="{escape(url)}">{escape(url)}</a>'
    text = "\n".join(
        [
            f"Hello {message.customer.name},",
            "",
            "your booking is confirmed.",
            "",
            message.event.title,
            *(f"{label}: {value}" for label, value in facts),
            "",
            where,
            "",
            f"Booking {message.booking_id}",
            "",
        ]
    )
    html = _HTML.format(
        subject=escape(subject),
        name=escape(message.customer.name),
        title=escape(message.event.title),
        rows="\n".join(
            f'<tr><th scope="row" align="left">{escape(label)}</th><td>{escape(value)}</td></tr>'
            for label, value in facts
        ),
        where=where_html,
        booking_id=escape(message.booking_id),
    )
    return Mail(recipient=message.customer.email, subject=subject, text=text, html=html)


def start_text(starts_at: str, time_zone: str) -> str:
    """``Thursday, 31 December 2026, 20:00 (America/Los_Angeles, UTC-08:00)``.

    The venue's own date and time: ``starts_at`` carries the offset that held then, so no zone data is needed here.
    """
    start = datetime.fromisoformat(starts_at)
    return f"{start:%A}, {start.day} {start:%B} {start.year}, {start:%H:%M} ({time_zone}, UTC{starts_at[-6:]})"


def amount_text(minor: int, currency: str) -> str:
    """``USD 1,234.50``, from minor units and an ISO 4217 code."""
    digits = _MINOR_DIGITS.get(currency, 2)
    whole, rest = divmod(minor, 10**digits)
    return f"{currency} {whole:,}" + (f".{rest:0{digits}}" if digits else "")


def _header_text(text: str) -> str:
    """``text`` as one line that no mail program decodes any further.

    Contracts refuse control characters already; an encoded word (``=?utf-8?q?=0D=0A…?=``) would smuggle them in.
    """
    return " ".join(text.split()).replace("=?", "= ?")
