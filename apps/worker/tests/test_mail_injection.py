"""What a title, a venue or a name may hold, and cannot do: to headers, to the page, to the calendar's entry."""

import json

import pytest

from apps.worker.tests.mail_reader import Page, calendar_of, entry_of
from apps.worker.tests.worker_under_test import (
    SITE,
    Message,
    Worker,
    booking,
    cancelled,
    moved,
    record,
    requested,
    reset,
)
from minitickets_contracts.fields import ContractError
from minitickets_contracts.messages import BookingConfirmed
from minitickets_worker.booking_mails import (
    compose_cancellation,
    compose_confirmation,
    compose_move,
    compose_repetition,
)
from minitickets_worker.mail import Mail
from minitickets_worker.reset_mail import compose_password_reset

pytestmark = pytest.mark.unit


def mails(*, title: str, venue: str, name: str) -> list[Mail]:
    """One mail of each type, with these texts wherever they go."""
    of = booking(title=title, venue=venue, name=name)
    return [
        compose_confirmation(of, site=SITE),
        compose_repetition(requested(of), site=SITE),
        compose_move(moved(of), site=SITE),
        compose_move(moved(booking(venue="Before", title=title, name=name), venue=venue), site=SITE),
        compose_cancellation(cancelled(of), site=SITE),
        compose_password_reset(reset(name=name), site=SITE),
    ]


PLAIN = mails(title="Title", venue="Venue", name="Name")

BREAKS = [
    "\r\nBcc: eve@evil.example",
    "\nX",
    "\rX",
    "\x0bX",
    "\x0cX",
    "\x85X",
    "\u2028X",
    "\u2029X",
    "\x00X",
    "\x1b[2J",
]


@pytest.mark.parametrize("end", BREAKS, ids=ascii)
@pytest.mark.parametrize("field", ["title", "venue", "name", "email"])
def test_a_line_break_or_control_character_never_gets_as_far_as_a_mail(field: str, end: str) -> None:
    worker = Worker()
    document = json.loads(booking().to_json())
    place = document["event"] if field in ("title", "venue") else document["customer"]
    place[field] += end
    with pytest.raises(ContractError, match=rf"\.{field}: "):
        BookingConfirmed.from_json(json.dumps(document))
    delivery = record(json.dumps(document))
    assert worker.consume(delivery) == [delivery["messageId"]]
    assert worker.ses.attempts == 0


EVIL = [
    "=?utf-8?q?=0D=0ABcc:_eve=40evil.example?=",
    "=?utf-8?b?DQpCY2M6IGV2ZUBldmlsLmV4YW1wbGU=?=",
    "a = ?utf-8?q?=0D=0A?= =?utf-8?q?x?=",
    "\\r\\nBcc: eve@evil.example",
    "%0d%0aBcc:eve@evil.example",
    "; DTSTART:19700101T000000; X-A=1",
    'a,b;c:d\\e\\n\\;"f"',
    "\\nEND:VEVENT\\nBEGIN:VALARM\\nACTION:EMAIL",
    "END:VEVENT",
    "\\",
    ";",
    '"',
    "^n^^^'",
    "<script>alert(1)</script><a href='https://evil.example'>x</a>",
    "{subject}{0}%s${x}",
    "--boundary\u00a0--",
    "\u202etxt.exe\u202c \u2066x",
]


@pytest.mark.parametrize("evil", EVIL, ids=ascii)
def test_text_stays_text_in_subject_page_and_calendar(evil: str) -> None:
    for plain, mail in zip(PLAIN, mails(title=evil, venue=evil, name=evil), strict=True):
        assert "=?" not in mail.subject
        assert mail.subject.isprintable() or "\u202e" in evil or "\u00a0" in evil
        assert "\n" not in mail.subject
        page = Page(mail.html)
        assert page.tags == Page(plain.html).tags
        assert page.links == Page(plain.html).links
        assert evil in page.text
        assert evil in mail.text
        if mail.attachments:
            entry = entry_of(mail)
            assert str(entry["SUMMARY"]) == evil
            assert str(entry["LOCATION"]) == evil
            assert list(entry) == list(entry_of(plain)), "a property more or less"
            assert entry.subcomponents == []
            assert entry.DTSTART == entry_of(plain).DTSTART
            assert [part.name for part in calendar_of(mail).walk()] == [part.name for part in calendar_of(plain).walk()]


@pytest.mark.parametrize(
    "text",
    [
        "Łukasz Żółć",
        "山田 太郎",
        "عمر الخيام",
        "שלום עליכם",
        "Ночь 🎻",
        "👩\u200d👩\u200d👧\u200d👦 \U0001f1e9\U0001f1ea",
        "Zoe\u0308 A\u030angstro\u0308m",
        "नमस्ते",
        "\U0001d509\U0001d52f",
        "Z̷̢̛͚a̶l̵g̴o̸",
    ],
    ids=ascii,
)
def test_names_titles_and_venues_in_any_script_arrive_as_they_are(text: str) -> None:
    for mail in mails(title=text, venue=text, name=text):
        assert f"Hello {text},\n" in mail.text
        assert f"Hello {text}," in Page(mail.html).text
        if mail.attachments:
            assert text in mail.subject
            assert text in mail.text.split("Hello", 1)[1].split("\n", 1)[1]
            assert str(entry_of(mail)["SUMMARY"]) == str(entry_of(mail)["LOCATION"]) == text


def test_a_name_written_from_right_to_left_does_not_turn_the_words_beside_it() -> None:
    html = compose_confirmation(booking(name="عمر", title="ليلة", venue="قاعة"), site=SITE).html
    assert "<bdi>عمر</bdi>," in html
    assert '<h1 dir="auto"' in html
    assert '<td dir="auto">قاعة</td>' in html


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        (booking(email="ada@bücher.example"), "ada@xn--bcher-kva.example"),
        (requested(booking(email="ada@例え.テスト")), "ada@xn--r8jz45g.xn--zckzah"),
        (moved(booking(email="ada@straße.example")), "ada@xn--strae-oqa.example"),
        (cancelled(booking(email="ada@bücher.example")), "ada@xn--bcher-kva.example"),
        (reset(email="ada@bücher.example"), "ada@xn--bcher-kva.example"),
    ],
    ids=lambda value: getattr(value, "TYPE", ""),
)
def test_a_domain_outside_ascii_gets_its_mail_of_every_type(message: Message, sent: str) -> None:
    worker = Worker()
    assert worker.consume(record(message)) == []
    assert worker.ses.recipients() == [sent]
