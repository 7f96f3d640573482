"""What granting a role is, wherever the task runs: its command, and what its exit code means to the operator."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ops.refusal import Failure, Refusal

ORGANISER = "organiser"
ROLES = (ORGANISER,)

# Exit codes of `python -m minitickets_api.grant`, which says them in its docstring.
_WRONG_ARGUMENTS = 2
_NO_SUCH_ACCOUNT = 3

# A typing error need not cost a minute of a task; what an address is, the API decides.
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")


@dataclass(frozen=True, kw_only=True)
class TaskEnd:
    """How a one-off task ended: its exit code, and the lines that it wrote, as far as they are known."""

    exit_code: int
    lines: Sequence[str]


# Runs a command with the API's image, environment and roles, once. Refusal or Failure where it cannot.
RunTask = Callable[[Sequence[str]], TaskEnd]


@dataclass(frozen=True, kw_only=True)
class RoleGrant:
    """Who is to have which role, or (``revoke``) to lose it. Refusal, when it is made, for what cannot be meant."""

    stage: str
    email: str
    role: str
    revoke: bool

    def __post_init__(self) -> None:
        if not self.email:
            raise Refusal("Whose account? Set EMAIL= to the address that it was registered with")
        if not _ADDRESS.fullmatch(self.email):
            raise Refusal(f"EMAIL={self.email!r} is no mail address: it must be one such as ada@example.org")
        if self.role not in ROLES:
            raise Refusal(f"ROLE={self.role!r} is not known: it must be {' or '.join(ROLES)}")

    @property
    def command(self) -> list[str]:
        """The arguments of the container: a list that no shell reads, the address never taken for an option."""
        options = ["--revoke"] if self.revoke else []
        return ["python", "-m", "minitickets_api.grant", *options, "--", self.email, self.role]

    def carry_out(self, run: RunTask, *, say: Callable[[str], None]) -> None:
        """Run the command as a task. Refusal where nobody has that address, Failure where the task did not do it."""
        end = run(self.command)
        for line in end.lines:
            say(f"  {line}")
        if end.exit_code == 0:
            what = "is not" if self.revoke else "is"
            say(f"{self.email} {what} an {self.role} in {self.stage}, from their next request on")
        elif end.exit_code == _NO_SUCH_ACCOUNT:
            raise Refusal(
                f"Nobody has registered as {self.email} in {self.stage}, so nothing was changed: "
                "have them register first, then try again"
            )
        elif end.exit_code == _WRONG_ARGUMENTS:
            raise Refusal(f"The API refused EMAIL={self.email!r} or ROLE={self.role!r}, so nothing was changed")
        else:
            raise Failure(
                f"The task ended with exit code {end.exit_code}; its own words are above. "
                "Running this again is safe, and tells what holds"
            )
