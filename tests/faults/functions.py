"""The stage's functions as processes of a test's own, under their roles, which a boundary before AWS may kill."""

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from local.emulator import REGION, assume_role
from tests.faults.boundary import When, boundary, killing
from tests.fixtures.platform import RunningPlatform

_PATIENCE_SECONDS = 60.0


class FunctionProcess:
    """One process that handles events. It ends with ``close``."""

    def __init__(self, environment: Mapping[str, str], function: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.function_process", function],
            env={"PATH": os.environ["PATH"], **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def handle(self, event: object) -> list[str]:
        """The ids that come back; EndedError if it ends instead."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(event) + "\n")
        self._process.stdin.flush()
        written = []
        # The process handles an event in the function's time at most; beyond it, it is the test that hangs.
        watch = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        watch.start()
        try:
            for line in self._process.stdout:
                if line.startswith("REPLY "):
                    failures = json.loads(line.removeprefix("REPLY "))["batchItemFailures"]
                    return [failure["itemIdentifier"] for failure in failures]
                written.append(line)
            raise EndedError(self._process.wait(_PATIENCE_SECONDS), "".join(written))
        finally:
            watch.cancel()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.communicate(timeout=_PATIENCE_SECONDS)


class EndedError(Exception):
    """The process ended before it replied, with ``exit_code`` (negative: by a signal)."""

    def __init__(self, exit_code: int, output: str) -> None:
        super().__init__(f"ended with {exit_code}\n{output}")
        self.exit_code = exit_code


@dataclass(frozen=True, kw_only=True)
class Functions:
    """Starts processes of the platform's functions."""

    platform: RunningPlatform

    def environment(self, function: str) -> dict[str, str]:
        """What the program gives the function, with credentials of its role."""
        live = self.platform.aws("lambda").get_function_configuration(FunctionName=f"minitickets-dev-{function}")
        lent = assume_role(self.platform.aws, live["Role"], session_name="test")
        return {
            **live["Environment"]["Variables"],
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ACCESS_KEY_ID": lent.access_key_id,
            "AWS_SECRET_ACCESS_KEY": lent.secret_access_key,
            "AWS_SESSION_TOKEN": lent.session_token or "",
            "AWS_LAMBDA_FUNCTION_NAME": f"minitickets-dev-{function}",
        }

    def start(self, function: str, *, endpoint: str) -> FunctionProcess:
        """A cold process that finds AWS at ``endpoint``."""
        where = {"AWS_ENDPOINT_URL": endpoint, "AWS_ENDPOINT_URL_SESV2": endpoint}
        return FunctionProcess({**self.environment(function), **where}, function)

    def dies(self, function: str, event: object, action: str, when: When, *, nth: int = 1) -> None:
        """A process of its own gets ``event`` and is killed at the ``nth`` call of ``action``; EndedError if it ends
        in another way."""
        with boundary(upstream_port=self.aws_port) as before_aws:
            doomed = self.start(function, endpoint=before_aws.endpoint)
            before_aws.strike(action, when, killing(lambda: doomed.pid), nth=nth)
            try:
                replied = doomed.handle(event)
            except EndedError as ended:
                if ended.exit_code != -signal.SIGKILL:
                    raise
            else:
                raise AssertionError(f"it was not killed, and replied {replied}; calls: {before_aws.calls}")
            finally:
                doomed.close()

    @property
    def aws_port(self) -> int:
        """Where the functions find AWS: the recorder before SES, which passes all else on to the emulator."""
        port = urllib.parse.urlsplit(self.environment("worker")["AWS_ENDPOINT_URL_SESV2"]).port
        assert port is not None
        return port


def sqs_event(bodies: Iterable[str], *, receives: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Deliveries of these bodies, each with ids of its own."""
    deliveries = [(str(uuid.uuid4()), body) for body in bodies]
    return {
        "Records": [
            {
                "messageId": delivery,
                "receiptHandle": f"handle-{delivery}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": str(receives)},
            }
            for delivery, body in deliveries
        ]
    }
