"""The function's environment, read once; no other module looks at it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

_VARIABLES = ("STAGE", "TICKETS_TABLE", "ASSETS_BUCKET", "SIGNING_SECRET_ARN")


class SettingsError(RuntimeError):
    """The environment lacks something. The message names every variable that is missing."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What ``infra/`` tells the function."""

    stage: str
    tickets_table: str
    assets_bucket: str
    signing_secret_arn: str


def load_settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings in ``environment``; SettingsError if a variable is missing or blank."""
    missing = [name for name in _VARIABLES if not environment.get(name, "").strip()]
    if missing:
        raise SettingsError(f"Set {', '.join(missing)} in the function's environment (infra/ does)")
    return Settings(
        stage=environment["STAGE"],
        tickets_table=environment["TICKETS_TABLE"],
        assets_bucket=environment["ASSETS_BUCKET"],
        signing_secret_arn=environment["SIGNING_SECRET_ARN"],
    )
