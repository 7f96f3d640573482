"""A program on PATH that plays canned answers and writes down how it was called.

It stands for `pulumi` or a container engine. Beside it lie ``answers.json``, a list of answers for each beginning of a
command line (the longest that fits counts, the last answer of its list repeats), and ``calls.jsonl``.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


def play(here: Path) -> int:
    """One call: answer it and write it down."""
    arguments = sys.argv[1:]
    line = " ".join(arguments)
    answers: dict[str, list[dict[str, Any]]] = json.loads((here / "answers.json").read_text())
    fitting = max((start for start in answers if line.startswith(start)), key=len, default=None)
    calls = here / "calls.jsonl"
    earlier = [json.loads(entry) for entry in calls.read_text().splitlines()] if calls.exists() else []
    count = sum(entry["answered_as"] == fitting for entry in earlier)
    draft = next((part.partition("=")[2] for part in arguments if part.startswith("--config-file=")), None)
    call = {
        "arguments": arguments,
        "answered_as": fitting,
        "stdin": sys.stdin.read(),
        "restore_from": os.environ.get("RESTORE_FROM"),
        "stage_files": {path.name: path.read_text() for path in sorted(Path.cwd().glob("Pulumi.*.yaml"))},
        "draft": Path(draft).read_text() if draft else None,
    }
    with calls.open("a") as file:
        file.write(json.dumps(call) + "\n")
    if fitting is None:
        sys.stderr.write(f"error: nobody said what to answer to: {line}\n")
        return 99
    answer = answers[fitting][min(count, len(answers[fitting]) - 1)]
    for path, content in answer.get("writes", {}).items():
        Path(path.replace("{iidfile}", _after(arguments, "--iidfile"))).write_text(content)
    if answer.get("waits_for_interrupt"):
        _wait_for_interrupt(here)
    sys.stdout.write(answer.get("out", ""))
    sys.stderr.write(answer.get("err", ""))
    return int(answer.get("code", 0))


def _wait_for_interrupt(here: Path) -> None:
    """Wait for SIGINT, at most a minute; ``waiting`` appears beside the program once it does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    (here / "waiting").touch()
    if signal.sigtimedwait({signal.SIGINT}, 60) is None:
        raise TimeoutError("no interrupt came")


def _after(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1] if option in arguments else ""


if __name__ == "__main__":
    sys.exit(play(Path(sys.argv[0]).parent))
