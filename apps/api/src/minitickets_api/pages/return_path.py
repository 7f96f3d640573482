"""Where somebody goes on after they have logged in."""

from urllib.parse import quote, urlsplit

MAX_CHARACTERS = 2000
HOME = "/"


def return_path(wanted: str) -> str:
    """``wanted`` if it is a path of this site, with its query; the front page for whatever else it is.

    Browsers read ``//host`` and ``/\\host`` as another site, and drop tabs and line breaks before they look.
    """
    if (
        not wanted.startswith("/")
        or wanted.startswith(("//", "/\\"))
        or len(wanted) > MAX_CHARACTERS
        or not wanted.isascii()
        or not wanted.isprintable()
        or "\\" in wanted
        or " " in wanted
    ):
        return HOME
    try:
        parts = urlsplit(wanted)
    except ValueError:
        return HOME
    return HOME if parts.scheme or parts.netloc else wanted


def account_path(page: str, wanted: str) -> str:
    """``page`` (``/login``, ``/register``), which leads on to ``wanted``."""
    path = return_path(wanted)
    return page if path == HOME else f"{page}?next={quote(path, safe='/')}"
