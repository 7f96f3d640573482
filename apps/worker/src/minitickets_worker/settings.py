"""The worker's settings: the only reader of its environment."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

_ORIGIN = re.compile(r"https?://[A-Za-z0-9.-]+(:\d{1,5})?")


class SettingsError(RuntimeError):
    """A setting is missing or wrong. The message names the variable and says what to do."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the program gives the worker. ``public_url`` is an origin without a final slash, or None."""

    stage: str
    processed_jobs_table: str
    jobs_queue_url: str
    sender: str
    public_url: str | None


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings in ``environment``. Raises SettingsError for a missing or malformed one."""
    public_url = environment.get("PUBLIC_URL") or None
    if public_url is not None and not _ORIGIN.fullmatch(public_url):
        raise SettingsError("PUBLIC_URL must be an origin such as https://tickets.example.org, without a final slash")
    sender = _required(environment, "SENDER")
    if "@" not in sender:
        raise SettingsError("SENDER must be the mail address that mails come from")
    return Settings(
        stage=_required(environment, "STAGE"),
        processed_jobs_table=_required(environment, "PROCESSED_JOBS_TABLE"),
        jobs_queue_url=_required(environment, "JOBS_QUEUE_URL"),
        sender=sender,
        public_url=public_url,
    )


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value.strip():
        raise SettingsError(f"{name} is not set: the function's environment must hold it (docs/interfaces.md)")
    return value
