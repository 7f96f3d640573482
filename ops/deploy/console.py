"""What these commands say, and what they ask."""

import sys
from collections.abc import Mapping

import click

from ops.refusal import Refusal


class Console:
    """The terminal. ``YES=1`` or ``CI`` answers yes for it; ``CONFIRM=<stage>`` types a name for it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._agrees = _is_set(environment, "YES") or _is_set(environment, "CI")
        self._confirmed = environment.get("CONFIRM", "")

    def say(self, text: str) -> None:
        """A line of progress."""
        click.echo(text)
        sys.stdout.flush()

    def agrees(self, question: str) -> bool:
        """Ask for yes or no. Refusal where nobody can answer."""
        if self._agrees:
            return True
        self._require_terminal("set YES=1")
        return click.confirm(question, default=False)

    def require_typed(self, word: str, question: str) -> bool:
        """Ask to type ``word``; whether that was typed. Refusal where nobody can answer."""
        if self._confirmed:
            if self._confirmed != word:
                raise Refusal(f"CONFIRM={self._confirmed} is not {word}: nothing was done")
            return True
        self._require_terminal(f"set CONFIRM={word}")
        return bool(click.prompt(question, default="", show_default=False) == word)

    def _require_terminal(self, instead: str) -> None:
        if not sys.stdin.isatty():
            raise Refusal(f"There is no terminal to ask on: {instead} to go on without being asked")


def _is_set(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() not in ("", "0", "false", "no")
