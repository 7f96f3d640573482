"""The mail by which a forgotten password is set anew."""

import pytest

from apps.worker.tests.mail_reader import Page, twins
from apps.worker.tests.worker_under_test import NOWHERE, RESET_TOKEN, SITE, Worker, record, reset
from minitickets_worker.reset_mail import compose_password_reset
from minitickets_worker.site import Site

pytestmark = pytest.mark.unit


def test_the_mail_links_to_the_page_that_takes_the_token() -> None:
    mail = compose_password_reset(reset(), site=SITE)
    link = f"https://tickets.example.org/reset-password?token={RESET_TOKEN}"
    assert Page(mail.html).links == [link]
    assert f"Set a new password at {link}\n" in mail.text


def test_without_a_public_address_the_mail_gives_a_code_to_paste_and_says_where() -> None:
    mail = compose_password_reset(reset(), site=NOWHERE)
    assert Page(mail.html).links == []
    for text in twins(mail):
        assert "Choose “Forgot password” where you log in, and paste this code there:" in text
        # On a line of its own, to be marked and copied.
        assert RESET_TOKEN in text.splitlines()


@pytest.mark.parametrize(("site", "what"), [(SITE, "link"), (NOWHERE, "code")], ids=["link", "code"])
def test_the_mail_says_how_long_it_works_and_what_to_do_if_it_was_not_you(site: Site, what: str) -> None:
    for text in twins(compose_password_reset(reset(), site=site)):
        assert f"The {what} works once, and for one hour: until 12 January 1970, 14:46 UTC." in text
        assert "If it was not you, ignore this mail: your password stays as it is." in text


def test_the_subject_says_nothing_of_the_token_and_the_mail_has_no_file() -> None:
    mail = compose_password_reset(reset(), site=SITE)
    assert mail.subject == "Set a new MiniTickets password"
    assert mail.attachments == ()
    assert "canary" not in repr(mail)


def test_markup_in_a_name_is_text() -> None:
    plain = Page(compose_password_reset(reset(name="Ada"), site=SITE).html).tags
    page = Page(compose_password_reset(reset(name="<a href=https://evil.example>click</a>"), site=SITE).html)
    assert page.tags == plain
    assert len(page.links) == 1


def test_a_reset_whose_hour_is_over_is_finished_unsent() -> None:
    worker = Worker()
    late = reset(expires_at="1970-01-12T13:46:40Z")  # 0.75 s ago
    assert worker.consume(record(late)) == []
    assert worker.ses.attempts == 0
    assert worker.status_of(late.job_key) is None
    assert "reset expired unsent" in worker.logged_events()


def test_a_reset_in_its_last_second_is_still_sent() -> None:
    worker = Worker()
    assert worker.consume(record(reset(expires_at="1970-01-12T13:46:41Z"))) == []
    assert worker.ses.recipients() == ["ada@example.org"]
