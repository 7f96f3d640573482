"""The mail by which a forgotten password is set anew."""

from minitickets_contracts.messages import PasswordResetRequested
from minitickets_contracts.wording import instant_text
from minitickets_worker.letter import Letter, Paragraph, letter_html, letter_text
from minitickets_worker.mail import Mail, subject_line
from minitickets_worker.site import Site


def compose_password_reset(message: PasswordResetRequested, *, site: Site) -> Mail:
    """The mail with the link, or, without a public address, with the code to paste."""
    # In the query, not behind a "#": the page must work without script. The token is base64url, so it stands as it is.
    url = site.link(f"/reset-password?token={message.token}")
    way = [Paragraph(text="Set a new password at", url=url)]
    if url is None:
        way = [
            Paragraph(text="Choose “Forgot password” where you log in, and paste this code there:"),
            Paragraph(text=message.token),
        ]
    letter = Letter(
        name=message.customer.name,
        lead="somebody, hopefully you, asked to set a new password for your account.",
        paragraphs=(
            *way,
            Paragraph(
                text=f"The {'code' if url is None else 'link'} works once, and for one hour:"
                f" until {instant_text(message.expires_at)}. A new password logs all your devices out."
            ),
            Paragraph(text="If it was not you, ignore this mail: your password stays as it is."),
        ),
        closing="Nobody from MiniTickets will ever ask you for this mail.",
    )
    subject = subject_line("Set a new MiniTickets password")
    return Mail(
        recipient=message.customer.email,
        subject=subject,
        text=letter_text(letter),
        html=letter_html(letter, subject=subject),
    )
