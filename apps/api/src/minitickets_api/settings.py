"""What a process of the API is told by its environment (docs/interfaces.md). Nothing else reads the environment."""

import os
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, SecretStr, ValidationError

Port = Annotated[int, Field(ge=1, le=65535)]
Text = Annotated[str, Field(min_length=1)]
Secret = Annotated[SecretStr, Field(min_length=1)]


class SettingsError(RuntimeError):
    """The environment lacks a variable or holds a wrong one; the message names each, on one line, and no value."""


def _origin(value: str) -> str:
    value = value.lower()
    scheme, separator, host = value.partition("://")
    if scheme not in ("http", "https") or not separator or not host or any(mark in host for mark in "/?#@ "):
        raise ValueError("must be an origin such as https://tickets.example, without a final slash")
    if not host.isascii() or (scheme, host.rpartition(":")[2]) in (("http", "80"), ("https", "443")):
        # Compared with what browsers send; in another spelling, every change would be refused as another site's.
        raise ValueError("must be spelt as browsers spell it: without its usual port, international names as xn--")
    return value


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True, populate_by_name=True)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read from ``environment`` (the process's own by default). Raises SettingsError."""
        found = os.environ if environment is None else environment
        try:
            # An empty variable is an absent one: nobody means an empty host.
            return cls.model_validate({name: value for name, value in found.items() if value != ""})
        except ValidationError as error:
            raise SettingsError(f"{_problems(error)} (docs/interfaces.md lists every variable)") from None


def _problems(error: ValidationError) -> str:
    problems = []
    for problem in error.errors(include_input=False, include_url=False):
        name = ".".join(str(part) for part in problem["loc"])
        wanted = problem["msg"].removeprefix("Value error, ")
        problems.append(f"{name} is missing" if problem["type"] == "missing" else f"{name} is wrong: {wanted}")
    return "environment: " + "; ".join(problems)


class DatabaseSettings(_Section):
    """Where PostgreSQL answers and as whom we come; all that migrate and seed need."""

    host: Text = Field(alias="DB_HOST")
    port: Port = Field(alias="DB_PORT")
    name: Text = Field(alias="DB_NAME")
    user: Text = Field(alias="DB_USER")
    password: Secret = Field(alias="DB_PASSWORD")
    sslmode: Literal["verify-full", "disable"] = Field(alias="DB_SSLMODE")


class SeedSettings(DatabaseSettings):
    """What ``python -m minitickets_api.seed`` needs. ``document`` is JSON and holds passwords."""

    document: Secret = Field(alias="SEED")


class RedisSettings(_Section):
    """Where Valkey answers."""

    host: Text = Field(alias="REDIS_HOST")
    port: Port = Field(alias="REDIS_PORT")
    tls: Literal["true", "false"] = Field(alias="REDIS_TLS")
    token: Secret = Field(alias="REDIS_AUTH_TOKEN")


class Settings(_Section):
    """All that the serving process is told."""

    stage: Text = Field(alias="STAGE")
    region: Text = Field(alias="AWS_REGION")
    port: Port = Field(alias="PORT")
    # A container is reached from outside itself; elsewhere one address is enough.
    listen_host: Text = Field(default="0.0.0.0", alias="LISTEN_HOST")  # noqa: S104 - as said
    topic_arn: Annotated[str, Field(pattern=r"^arn:[a-z0-9-]+:sns:[^:]+:\d{12}:\S+$")] = Field(alias="TOPIC_ARN")
    tickets_table: Text = Field(alias="TICKETS_TABLE")
    assets_bucket: Text = Field(alias="ASSETS_BUCKET")
    public_url: Annotated[str, AfterValidator(_origin)] | None = Field(default=None, alias="PUBLIC_URL")
    sessions_void_before: AwareDatetime | None = Field(default=None, alias="SESSIONS_VOID_BEFORE")
    # Where the local platform shows the mails that it accepted; nothing sets it on AWS.
    local_mailbox_url: Annotated[str, Field(pattern=r"^http://")] | None = Field(
        default=None, alias="LOCAL_MAILBOX_URL"
    )
    database: DatabaseSettings
    redis: RedisSettings

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Read from ``environment`` (the process's own by default). Raises SettingsError, which names all faults."""
        found = dict(os.environ if environment is None else environment)
        given = {name: value for name, value in found.items() if value != ""}
        try:
            # Flat variables become two nested parts, so that whoever needs one gets no more than that.
            return cls.model_validate({**given, "database": given, "redis": given})
        except ValidationError as error:
            problems = _problems(error).replace("database.", "").replace("redis.", "")
            raise SettingsError(f"{problems} (docs/interfaces.md lists every variable)") from None

    @property
    def is_https(self) -> bool:
        """Whether people come over https, so that cookies must be ``Secure``."""
        return self.public_url is not None and self.public_url.startswith("https://")
