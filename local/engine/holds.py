"""Moments at which a verb of the engine's is held, so that whoever tests a killed run kills it exactly there.

The engine's provider and the test are two processes: holds and what they hold lie in the stage's engine folder. A
stage that nobody tests has no holds, which costs each verb one look at the folder.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

_POLL_SECONDS = 0.005


class EngineGoneError(RuntimeError):
    """Nobody waits for the verb any more."""


class Moment(StrEnum):
    """``BEFORE``: the engine has asked, and nothing is done. ``DURING``: it is done, and the engine has not heard.

    What the engine has heard is another resource's ``BEFORE``: of one that depends on it.
    """

    BEFORE = "before"
    DURING = "during"


@dataclass(frozen=True, kw_only=True)
class Hold:
    """What is held: a verb (``create``, ``update``, ``delete``) of each resource in ``moments`` (``<type> <name>``) at
    its moment; of all others at ``otherwise``. None: not at all."""

    verb: str
    moments: Mapping[str, Moment | None] = field(default_factory=dict)
    otherwise: Moment | None = None

    def moment(self, *, verb: str, key: str) -> Moment | None:
        """The moment at which this verb of this resource is held."""
        return self.moments.get(key, self.otherwise) if verb == self.verb else None


class Holds:
    """The holds of one stage, from both sides: those who place them, and the provider whose verbs pass here."""

    def __init__(self, folder: Path) -> None:
        self._placed = folder / "holds.json"
        self._passing = folder / "held.jsonl"
        self._lock = threading.Lock()

    def place(self, hold: Hold) -> None:
        """Hold from now on; one at a time."""
        self._passing.unlink(missing_ok=True)
        draft = self._placed.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(hold)))
        draft.replace(self._placed)

    def release(self) -> None:
        """Let everything go on."""
        self._placed.unlink(missing_ok=True)

    def held(self) -> set[str] | None:
        """The resources that are held, ``<type> <name>`` each; None while a verb that will be held is on its way."""
        if not self._passing.exists():
            return set()
        last: dict[str, str] = {}
        for line in self._passing.read_text().splitlines():
            state, _, key = line.partition(" ")
            last[key] = state
        if "begun" in last.values():
            return None
        return {key for key, state in last.items() if state == "held"}

    @contextmanager
    def passing(self, *, verb: str, key: str, alive: Callable[[], bool]) -> Iterator[None]:
        """Do the verb inside: held where a hold says so, until that is released or the engine is gone.

        EngineGoneError, so that it is not done, if the engine went before it began. A verb that fails is not held.
        """
        moment = self._moment(verb, key)
        if moment is None:
            yield
            return
        self._write("begun", key)
        try:
            if moment is Moment.BEFORE:
                self._wait(key, alive)
                if not alive():
                    raise EngineGoneError(f"the engine ended before the {verb} of {key} began")
            yield
            if moment is Moment.DURING:
                self._wait(key, alive)
        finally:
            self._write("ended", key)

    def _moment(self, verb: str, key: str) -> Moment | None:
        try:
            found = json.loads(self._placed.read_text())
        except FileNotFoundError:
            return None
        hold = Hold(verb=found["verb"], moments=found["moments"], otherwise=found["otherwise"])
        moment = hold.moment(verb=verb, key=key)
        return None if moment is None else Moment(moment)

    def _wait(self, key: str, alive: Callable[[], bool]) -> None:
        self._write("held", key)
        while self._placed.exists() and alive():
            time.sleep(_POLL_SECONDS)

    def _write(self, state: str, key: str) -> None:
        with self._lock, self._passing.open("a") as file:
            file.write(f"{state} {key}\n")
