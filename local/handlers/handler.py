"""What a handler is: the verbs of a Pulumi provider for one resource type, acting on this machine.

Drivers bring resources (the mock hook now, the real engine later); the platform keeps what each became and calls the
verbs. A handler refuses what AWS refuses: adopting what exists is the mock driver's business, by ``read``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from local.processes import Child

# Inputs as the engine gives them: camelCase keys, numbers as floats, secrets unwrapped, nothing for what is absent.
# A file or folder archive arrives as {"path": <absolute path>, "sha256": <of its bytes>}: a new zip is a changed input.
Inputs = Mapping[str, Any]
Outputs = dict[str, Any]


class HandlerError(RuntimeError):
    """AWS would refuse this. The message says what and, where there is something to do, what to do."""


@dataclass(frozen=True)
class Made:
    """What a resource became: its provider id, and its outputs (all inputs, and what AWS would add)."""

    id: str
    outputs: Outputs


class PlatformServices(Protocol):
    """What the platform offers to its handlers."""

    account: str  # "000000000000"
    region: str
    root: Path  # the repository
    state: Path  # this stage's folder; a handler keeps its data below state / "<service>"
    endpoint: str  # the emulator's URL
    mail_endpoint: str  # the mail recorder's URL, in front of the emulator's SES v2
    mailbox_url: str  # where people read what SES accepted, with the key that opens it
    calls_port: int  # UDP port of the call recorder (AWS_CSM_PORT)

    def aws(self, service: str) -> Any:
        """A client of the emulator as the account's root, one per service."""

    def aws_as(self, service: str, role_arn: str) -> Any:
        """A client of the emulator under a role (a fresh session of it)."""

    def start_process(
        self,
        name: str,
        argv: list[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        on_exit: Callable[[int], None] | None = None,
    ) -> Child:
        """Start a child that ends with the platform; its log is ``state/logs/<name>.log``."""

    def adopt_process(self, child: Child, *, on_exit: Callable[[int], None] | None = None) -> None:
        """Watch over a child that somebody else started (a server's), and remember it against a crash."""

    def stop_process(self, name: str, *, seconds: float = 10) -> None:
        """Stop a child, if it runs."""

    def lend_credentials(self, role_arn: str) -> Mapping[str, str]:
        """Environment by which a process gets credentials of a role as ECS gives them, until that process ends."""

    def balance(self, name: str, *, port: int) -> None:
        """Listen on 127.0.0.1:``port`` and pass each connection to a target of ``name`` (none: 503)."""

    def set_targets(self, name: str, ports: list[int]) -> None:
        """Where new connections of ``name`` go from now on; open ones stay."""

    def stop_balancing(self, name: str) -> None:
        """Close the listener."""

    def free_port(self) -> int:
        """A free port. Keep it in the outputs: the resource answers there after every restart."""

    def say(self, text: str) -> None:
        """A line for the person who watches: what is starting, a loosening, a replaced setting."""


class Handler:
    """One resource type. ``replaced_by`` names the inputs whose change replaces it (the provider's ForceNew).

    A platform has one instance of each, for all its life: a handler may remember what it runs. Its verbs are called
    from many threads. They may let botocore's errors and ProcessError pass: the caller turns them into HandlerError
    (``refusals.refusals``).
    """

    resource_type: ClassVar[str]
    replaced_by: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, platform: PlatformServices) -> None:
        self.platform = platform

    def create(self, name: str, inputs: Inputs) -> Made:
        """Make it. ``name`` is the Pulumi name, for auto-naming. Refuses as AWS does (a name in use, …)."""
        raise NotImplementedError

    def read(self, id: str, inputs: Inputs) -> Made | None:
        """It as it is now, or None if it is gone.

        ``id`` is empty when the mock driver asks whether what ``inputs`` name exists already, to adopt it.
        """
        raise NotImplementedError

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        """Change it in place; its outputs afterwards. Inputs that are gone from ``new`` are gone from it."""
        raise NotImplementedError

    def delete(self, id: str, outputs: Outputs) -> None:
        """Remove it. Refuses as AWS does (a protected database, a bucket with objects)."""
        raise NotImplementedError

    def resume(self, id: str, outputs: Outputs) -> None:
        """After a restart of the platform: start again what ran, on the same ports. Nothing for most types."""


class InvokeError(RuntimeError):
    """A look-up (``aws.get_…``) that finds nothing or is refused; the text is what the provider would say."""
