"""The emulator ``ministack``: every serverless service, on loopback, with signatures checked and policies enforced.

It has an environment of its own (``.local/emulator``, from ``local/emulator.lock``), because Lambdas run under its
interpreter and site-packages: what a zip lacks must be missing here as it would be on AWS.
"""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config

from local.processes import Child, ProcessError, start, wait_until

ACCOUNT = "000000000000"
REGION = "us-east-1"
ROOT_SECRET_KEY = "root"  # noqa: S105 - the emulator takes any secret of the account's root

# A new account's limit (AWS documents 1,000, and gives new accounts 10): what the caps of the mappings are checked for.
_ACCOUNT_CONCURRENCY = 10
_LOGS = "cloudwatch_logs"
_REPOSITORY = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Emulator:
    """A running emulator at ``endpoint``, everything it keeps below ``folder``.

    It writes its state on SIGTERM only; a SIGKILL loses what changed since its start.
    """

    endpoint: str
    folder: Path
    child: Child
    found: Mapping[str, int]  # what it wrote before: the service, and when, in nanoseconds since 1970

    def unsaved(self) -> list[str]:
        """Once it has ended: the services whose state is on disk as this run found it, or not at all.

        It writes all of them at its end, each whole or not at all, and exits with 0 even where it could not. Log lines
        do not count: they are what it cannot write while a function's end adds some, and what it wrote before stays.
        """
        written = _written(self.folder)
        # Every run changes this one: it holds the run's mark (generation.py).
        wanted = {"ssm", *self.found} - {_LOGS}
        return sorted(name for name in wanted if written.get(name) == self.found.get(name))

    def stop(self, seconds: float = 20) -> int:
        """End it; it has written its state when this returns 0."""
        return self.child.stop(seconds)


def start_emulator(folder: Path, *, port: int, region: str = REGION) -> Emulator:
    """Start the emulator on 127.0.0.1:``port``; ProcessError with its log's end unless it is healthy within 20 s.

    Keep the port for a folder: the URLs of its queues hold it.
    """
    executable = _REPOSITORY / ".local" / "emulator" / "bin" / "ministack"
    if not executable.exists():
        raise ProcessError("the emulator's environment is missing; `make local`, `make demo` and `make test` make it")
    scratch = folder / "tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # secrets and customers' data are in there
    environment = {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder),
        "TMPDIR": str(scratch),  # where it unpacks Lambdas
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",  # without it, it listens on every interface
        "AUTH": "true",
        "PERSIST_STATE": "1",
        "STATE_DIR": str(folder / "state"),
        "S3_PERSIST": "1",
        "S3_DATA_DIR": str(folder / "s3"),
        "LAMBDA_ACCOUNT_CONCURRENCY": str(_ACCOUNT_CONCURRENCY),
        "MINISTACK_REGION": region,
        "LOG_LEVEL": "INFO",
    }
    found = _written(folder)
    child = start("emulator", [str(executable)], env=environment, log=folder / "emulator.log")
    endpoint = f"http://127.0.0.1:{port}"
    try:
        wait_until("the emulator is healthy", lambda: is_healthy(endpoint), seconds=20, alive=child)
    except ProcessError:
        child.stop(5)
        raise
    return Emulator(endpoint=endpoint, folder=folder, child=child, found=found)


def _written(folder: Path) -> dict[str, int]:
    return {file.stem: file.stat().st_mtime_ns for file in (folder / "state").glob("*.json")}


def is_healthy(endpoint: str) -> bool:
    """Whether an emulator answers there."""
    try:
        with urllib.request.urlopen(f"{endpoint}/_ministack/health", timeout=2) as reply:  # noqa: S310 - our own loopback address
            return bool(reply.status == 200)
    except (OSError, urllib.error.URLError):
        return False


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What a client signs with; no token for the account's root."""

    access_key_id: str = ACCOUNT
    secret_access_key: str = ROOT_SECRET_KEY
    session_token: str | None = None


# One for all identities: each session reads the services' models and endpoints anew, which takes half a second.
_SESSION = botocore.session.Session()
_MAKING = threading.Lock()  # making a client is not safe in two threads at once; using one is


class Clients:
    """botocore clients of one emulator under one identity, one per service, for any thread."""

    def __init__(self, endpoint: str, *, credentials: Credentials | None = None, region: str = REGION) -> None:
        self._endpoint = endpoint
        self._credentials = credentials or Credentials()
        self._region = region
        self._clients: dict[str, Any] = {}

    def __call__(self, service: str) -> Any:
        client = self._clients.get(service)
        if client is not None:
            return client
        with _MAKING:
            if service not in self._clients:
                # One attempt: an answer is an answer here, and a retry would only hide or delay it.
                self._clients[service] = _SESSION.create_client(
                    service,
                    region_name=self._region,
                    endpoint_url=self._endpoint,
                    aws_access_key_id=self._credentials.access_key_id,
                    aws_secret_access_key=self._credentials.secret_access_key,
                    aws_session_token=self._credentials.session_token,
                    config=Config(
                        retries={"total_max_attempts": 1},
                        inject_host_prefix=False,
                        max_pool_connections=32,
                        connect_timeout=5,
                        read_timeout=30,
                    ),
                )
            return self._clients[service]

    def warm(self, services: Iterable[str]) -> None:
        """Make clients ahead of their first use: each takes 10 to 100 ms of reading and parsing its service's model."""
        for service in services:
            self(service)

    def close(self) -> None:
        """Close their connections."""
        with _MAKING:
            for client in self._clients.values():
                client.close()
            self._clients.clear()


def assume_role(root: Clients, role_arn: str, *, session_name: str) -> Credentials:
    """Temporary credentials of a role (an hour), as the emulator's STS gives them to the account's root."""
    given = root("sts").assume_role(RoleArn=role_arn, RoleSessionName=session_name)["Credentials"]
    return Credentials(
        access_key_id=given["AccessKeyId"],
        secret_access_key=given["SecretAccessKey"],
        session_token=given["SessionToken"],
    )
