"""The platform's control API for its drivers, on loopback, behind a token that only this user can read.

Every verb is a POST with a JSON object; what fails comes back as ``{"error"}``: 409 AWS would refuse it, 404 a look-up
finds nothing, 400 the driver asked wrongly, 503 the platform is not up.
"""

import hmac
import threading
import traceback
import urllib.parse
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from local.call_recorder import CallRecorder
from local.handlers.handler import HandlerError, InvokeError
from local.loopback import Reply, Request, json_reply, names_loopback
from local.mail_recorder import MailRecorder, SendingLimits
from local.mailbox import Mailbox
from local.processes import ProcessError
from local.provider import Declared, Provider
from local.resource_store import Key, StoredResource


class TaskRunner(Protocol):
    """Runs a command as a one-off task of the API's task definition: (exit code, output)."""

    def __call__(self, *, command: list[str], environment: Mapping[str, str], seconds: float) -> tuple[int, str]: ...


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What the control API acts on; there once the platform is up."""

    provider: Provider
    mailbox: Mailbox
    mail_recorder: MailRecorder
    call_recorder: CallRecorder
    run_task: TaskRunner
    restart_emulator: Callable[[], float]  # returns for how many seconds it was away
    differences: Collection[str]  # where this machine does something else than AWS, a line each


class Readiness:
    """Whether the platform is up: not yet, with these parts, or never for this reason."""

    def __init__(self) -> None:
        self._decided = threading.Event()
        self._parts: Parts | None = None
        self._reason = "the platform is still coming up"

    def succeed(self, parts: Parts) -> None:
        self._parts = parts
        self._decided.set()

    def fail(self, reason: str) -> None:
        """It will not come up, or is going down."""
        self._parts = None
        self._reason = reason
        self._decided.set()

    @property
    def is_up(self) -> bool:
        return self._parts is not None

    def wait(self, seconds: float) -> Parts:
        """The parts, once they are there; ProcessError with the reason otherwise."""
        self._decided.wait(seconds)
        if self._parts is None:
            raise ProcessError(self._reason)
        return self._parts


class ControlApi:
    """Answers the drivers; no page of any site, our own included, gets a word."""

    def __init__(
        self,
        *,
        token: str,
        readiness: Readiness,
        status: Callable[[], dict[str, Any]],
        finish: Callable[[], None],
        report: Callable[[str], None],
    ) -> None:
        self._token = token
        self._readiness = readiness
        self._status = status
        self._finish = finish
        self._report = report
        self._verbs: dict[tuple[str, str], Callable[[Any], object]] = {
            ("GET", "/status"): lambda _: self._status(),
            ("POST", "/ready"): self._ready,
            ("POST", "/finish"): self._finish_now,
            ("GET", "/differences"): lambda _: sorted(self._parts().differences),
            ("GET", "/types"): lambda _: {
                token: sorted(by) for token, by in self._parts().provider.replaced_by().items()
            },
            ("GET", "/resources"): lambda query: [
                resource.to_json()
                for resource in self._parts().provider.resources()
                if query.get("type") in (None, resource.key.type)
            ],
            ("GET", "/resources/keys"): lambda _: [
                [resource.key.type, resource.key.name] for resource in self._parts().provider.resources()
            ],
            ("POST", "/resources/create"): lambda body: self._parts().provider.create(_declared(body)).to_json(),
            ("POST", "/resources/adopt"): lambda body: _or_null(self._parts().provider.adopt(_declared(body))),
            ("POST", "/resources/read"): lambda body: _or_null(self._parts().provider.read(_key(body))),
            ("POST", "/resources/update"): lambda body: self._parts().provider.update(_declared(body)).to_json(),
            ("POST", "/resources/delete"): lambda body: self._parts().provider.delete(_key(body)),
            ("POST", "/invoke"): lambda body: self._parts().provider.invoke(body["token"], body["arguments"]),
            ("POST", "/tasks"): self._task,
            ("POST", "/emulator/restart"): lambda _: {"secondsAway": self._parts().restart_emulator()},
            ("GET", "/calls"): lambda query: self._parts().call_recorder.calls(client_id=query.get("client")),
            ("GET", "/mails"): lambda query: [
                mail.to_json() for mail in self._parts().mailbox.mails(to=query.get("to"))
            ],
            ("GET", "/mail-limits"): lambda _: self._parts().mail_recorder.limits.to_json(),
            ("POST", "/mail-limits"): self._set_mail_limits,
        }

    def answer(self, request: Request) -> Reply:
        """The reply to a request."""
        address = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(address.query))
        if not names_loopback(request):
            return json_reply({"error": "the control API answers to 127.0.0.1 and localhost only"}, status=403)
        if not _same(request.header("Authorization"), f"Bearer {self._token}"):
            return json_reply({"error": "the token in the stage's folder is needed"}, status=401)
        verb = self._verbs.get((request.method, address.path))
        if verb is None:
            return json_reply({"error": f"no such verb: {request.method} {address.path}"}, status=400)
        try:
            return json_reply(verb(query if request.method == "GET" else request.json()))
        except ProcessError as error:
            return json_reply({"error": str(error)}, status=503)
        except InvokeError as error:
            return json_reply({"error": str(error)}, status=404)
        except (HandlerError, ClientError, BotoCoreError) as error:
            return json_reply({"error": str(error)}, status=409)
        except (KeyError, ValueError, TypeError) as error:
            self._report(traceback.format_exc())
            return json_reply({"error": f"{type(error).__name__}: {error}"}, status=400)
        except Exception as error:  # noqa: BLE001 - a driver waits for an answer, whatever went wrong
            self._report(traceback.format_exc())
            return json_reply({"error": f"{type(error).__name__}: {error} (see platform.log)"}, status=500)

    def _parts(self) -> Parts:
        return self._readiness.wait(120)

    def _ready(self, body: Any) -> object:
        self._readiness.wait(float(body.get("seconds", 60)))
        return {}

    def _finish_now(self, _: Any) -> object:
        self._finish()
        return {}

    def _task(self, body: Any) -> object:
        exit_code, output = self._parts().run_task(
            command=body["command"], environment=body.get("environment", {}), seconds=float(body.get("seconds", 60))
        )
        return {"exitCode": exit_code, "output": output}

    def _set_mail_limits(self, body: Any) -> object:
        recorder = self._parts().mail_recorder
        recorder.limits = SendingLimits.from_json(body)
        return recorder.limits.to_json()


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _key(body: Mapping[str, Any]) -> Key:
    return Key(type=body["type"], name=body["name"])


def _declared(body: Mapping[str, Any]) -> Declared:
    return Declared(
        key=_key(body),
        inputs=body["inputs"],
        depends_on=tuple(Key(type=token, name=name) for token, name in body.get("dependsOn", [])),
        is_protected=bool(body.get("protect", False)),
    )


def _or_null(resource: StoredResource | None) -> object:
    return None if resource is None else resource.to_json()
