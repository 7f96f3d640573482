"""Why a booking may have more mails than one: what the worker, and the emulator that runs it, wrote about its sends.

A send is made again only if the attempt before it could not record that its mail was accepted. Four things do that:

* the worker was not told what became of its send: the reply was lost or came too late, or the emulator ended meanwhile;
* it was told, and could not write the record;
* the function's time ended, which also ends an invocation that stood still: no attempt outlives its lease (25 s) here,
  because the emulator kills the function after 10 s;
* the process was killed from outside, alone or with the emulator. No log tells that: whoever strikes counts it.

The first two are known by booking, and excuse one more mail of that booking and of no other. Of the others a process
had one send in flight, and nobody knows whose: each excuses one more mail of any booking. But nothing excuses two mails
of a booking that were both finished: told, recorded, and followed by the end of an invocation.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

_TIMED_OUT = re.compile(r"Lambda \S*-worker timed out after \d+s")
_OUTPUT = re.compile(r"ESM: Lambda \S*-worker output:")  # of an invocation that came to its end
_HEAD = re.compile(r"\d{4}-\d\d-\d\d ")  # the emulator's own lines; what a function wrote follows one of them
_WORKER = "worker"
_ACCEPTED, _UNKNOWN, _FAILED = "mail accepted", "mail outcome unknown", "message failed"


@dataclass(frozen=True, kw_only=True)
class Excuses:
    """How many mails more than one there may be, by booking or of any; and ids of the mails that were ``finished``."""

    unknown: Counter[str] = field(default_factory=Counter)
    unrecorded: Counter[str] = field(default_factory=Counter)
    timed_out: int = 0
    finished: frozenset[str] = frozenset()

    @property
    def of_bookings(self) -> Counter[str]:
        """By booking: it and no other may have so many more."""
        return self.unknown + self.unrecorded

    def __str__(self) -> str:
        return (
            f"{self.timed_out} invocations timed out, {self.unknown.total()} sends of unknown outcome, "
            f"{self.unrecorded.total()} accepted and not recorded"
        )


def read_excuses(log: Iterable[str]) -> Excuses:
    """What the lines of an emulator's log excuse. It holds what functions wrote, of killed ones too."""
    unknown: Counter[str] = Counter()
    unrecorded: Counter[str] = Counter()
    timed_out = 0
    accepted: set[tuple[str, str]] = set()  # by invocation and message
    finished: dict[tuple[str, str], str] = {}
    ended = False
    for text in log:
        if _HEAD.match(text):
            ended = bool(_OUTPUT.search(text))
        if _TIMED_OUT.search(text):
            timed_out += 1
            continue
        line = _worker_line(text)
        attempt = (line.get("function_request_id", ""), line.get("sqsMessageId", ""))
        booking_id = line.get("bookingId", "")
        if line.get("message") == _ACCEPTED:
            accepted.add(attempt)
            if ended:
                finished[attempt] = line.get("messageId", "")
        elif line.get("message") == _UNKNOWN:
            unknown[booking_id] += 1
        elif line.get("message") == _FAILED and attempt in accepted:
            unrecorded[booking_id] += 1
            finished.pop(attempt, None)
    return Excuses(unknown=unknown, unrecorded=unrecorded, timed_out=timed_out, finished=frozenset(finished.values()))


def _worker_line(text: str) -> dict[str, Any]:
    """A line of the worker's own; empty if it is somebody else's, or was cut off by a kill."""
    if not text.startswith("{"):
        return {}
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) and line.get("service") == _WORKER else {}
