"""The control API over real sockets: who may ask, and how each kind of failure comes back."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from local.call_recorder import CallRecorder
from local.control_api import ControlApi, Parts, Readiness
from local.control_client import ControlClient, NothingFoundError, RefusedError
from local.handlers.handler import Handler, HandlerError, Inputs, InvokeError, Made, Outputs
from local.loopback import serve
from local.mail_recorder import MailRecorder
from local.mailbox import Mailbox
from local.processes import ProcessError, free_port
from local.provider import Provider
from local.resource_store import ResourceStore

pytestmark = pytest.mark.unit

THING = "test:thing:Thing"


class Thing(Handler):
    """Creates by name; some names are trouble."""

    resource_type = THING
    replaced_by = frozenset({"name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        if name == "refused":
            raise HandlerError("QueueNameExists: in use")
        if name == "denied":
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not yours"}}, "CreateQueue")
        if name == "broken":
            raise ZeroDivisionError("a fault of ours")
        return Made(name, dict(inputs))

    def delete(self, id: str, outputs: Outputs) -> None:
        """Nothing to do."""


class FakePlatform:
    def say(self, text: str) -> None:
        """Nobody listens."""


def _look_up(platform: object, token: str, arguments: object) -> Outputs:
    if token == "known":
        return {"id": "x"}
    raise InvokeError("Your query returned no results.")


def _run_task(*, command: list[str], environment: Any, seconds: float) -> tuple[int, str]:
    return 3, " ".join([*command, *environment])


class _Api:
    def __init__(self, tmp_path: Path) -> None:
        platform: Any = FakePlatform()
        self.port = free_port()
        self.reports: list[str] = []
        self.finished: list[bool] = []
        self.readiness = Readiness()
        mailbox = Mailbox(tmp_path / "mailbox")
        self.parts = Parts(
            provider=Provider(
                platform, ResourceStore(tmp_path / "resources.json"), handlers={THING: Thing}, look_up=_look_up
            ),
            mailbox=mailbox,
            mail_recorder=MailRecorder(port=1, upstream_port=1, mailbox=mailbox),
            call_recorder=CallRecorder(port=1, file=tmp_path / "calls.jsonl"),
            run_task=_run_task,
            restart_emulator=lambda: 1.5,
            differences=[],
        )
        api = ControlApi(
            token="token",
            readiness=self.readiness,
            status=lambda: {"stage": "dev"},
            finish=lambda: self.finished.append(True),
            report=self.reports.append,
        )
        self.stop: Callable[[], None] = serve("control API", port=self.port, answer=api.answer)
        self.client = ControlClient(port=self.port, token="token")


@pytest.fixture
def api(tmp_path: Path) -> Iterator[_Api]:
    api = _Api(tmp_path)
    api.readiness.succeed(api.parts)
    yield api
    api.client.close()
    api.stop()


def _create(api: _Api, name: str) -> Any:
    return api.client.post("/resources/create", {"type": THING, "name": name, "inputs": {"name": name}})


def test_a_resource_goes_through_its_life_over_the_wire(api: _Api) -> None:
    made = _create(api, "queue")
    assert (made["id"], made["outputs"], made["order"]) == ("queue", {"name": "queue"}, 1)
    assert api.client.get("/types") == {THING: ["name"]}
    assert [resource["name"] for resource in api.client.get("/resources")] == ["queue"]
    assert [resource["name"] for resource in api.client.get("/resources", type=THING)] == ["queue"]
    assert api.client.get("/resources", type="another") == []
    assert api.client.get("/resources/keys") == [[THING, "queue"]]

    api.client.post("/resources/delete", {"type": THING, "name": "queue"})

    assert api.client.get("/resources") == []


@pytest.mark.parametrize(("name", "message"), [("refused", "QueueNameExists"), ("denied", "AccessDenied.*not yours")])
def test_what_aws_refuses_comes_back_in_its_words(api: _Api, name: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        _create(api, name)
    assert api.reports == []


def test_a_fault_of_ours_comes_back_by_name_and_is_reported_whole(api: _Api) -> None:
    with pytest.raises(RefusedError, match="ZeroDivisionError"):
        _create(api, "broken")
    assert "Traceback" in api.reports[0]
    assert _create(api, "queue")["id"] == "queue"


def test_a_look_up_that_finds_nothing_says_what_the_provider_says(api: _Api) -> None:
    assert api.client.post("/invoke", {"token": "known", "arguments": {}}) == {"id": "x"}
    with pytest.raises(NothingFoundError, match="returned no results"):
        api.client.post("/invoke", {"token": "unknown", "arguments": {}})


def test_a_task_comes_back_with_its_exit_code_and_output(api: _Api) -> None:
    done = api.client.post("/tasks", {"command": ["python", "-m", "x"], "environment": {"SEED": "{}"}})
    assert done == {"exitCode": 3, "output": "python -m x SEED"}


def test_a_restart_of_the_emulator_tells_how_long_it_was_away(api: _Api) -> None:
    assert api.client.post("/emulator/restart", {}) == {"secondsAway": 1.5}


def test_limits_that_mean_nothing_change_nothing(api: _Api) -> None:
    api.client.post("/mail-limits", {"perSecond": 1.5})
    with pytest.raises(RefusedError, match="perDay"):
        api.client.post("/mail-limits", {"perDay": "many"})
    assert api.client.get("/mail-limits") == {"perSecond": 1.5, "perDay": None, "rejected": []}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/resources/create", b"{not json"),
        ("POST", "/resources/create", b"{}"),
        ("POST", "/resources/create", b"[]"),
        ("GET", "/nothing", b""),
        ("DELETE", "/resources", b""),
    ],
)
def test_a_request_that_makes_no_sense_is_answered_and_changes_nothing(
    api: _Api, method: str, path: str, body: bytes
) -> None:
    reply = httpx.request(
        method,
        f"http://127.0.0.1:{api.port}{path}",
        content=body,
        headers={"Authorization": "Bearer token"},
        trust_env=False,
    )

    assert reply.status_code == 400
    assert reply.json()["error"]
    assert api.client.get("/resources") == []


@pytest.mark.parametrize("path", ["/resources", "/status", "/finish", "/mails", "/nothing"])
def test_without_the_token_nothing_is_told_or_done(api: _Api, path: str) -> None:
    for method in ("GET", "POST"):
        for header in ("", "Bearer", "Bearer tokem", "token"):
            reply = httpx.request(
                method, f"http://127.0.0.1:{api.port}{path}", headers={"Authorization": header}, trust_env=False
            )
            assert reply.status_code == 401
    assert api.finished == []


@pytest.mark.parametrize("host", ["attacker.example", "attacker.example:80", "127.0.0.1.attacker.example", ""])
def test_a_site_whose_name_points_here_is_refused_even_with_the_token(api: _Api, host: str) -> None:
    reply = httpx.get(
        f"http://127.0.0.1:{api.port}/status",
        headers={"Host": host, "Authorization": "Bearer token"},
        trust_env=False,
    )

    assert (reply.status_code, "stage" in reply.json()) == (403, False)


def test_the_control_api_has_no_page_for_a_browser(api: _Api) -> None:
    assert httpx.get(f"http://127.0.0.1:{api.port}/mailbox", trust_env=False).status_code == 401


def test_a_platform_that_does_not_come_up_says_why_to_whoever_waits(tmp_path: Path) -> None:
    api = _Api(tmp_path)
    api.readiness.fail("PostgreSQL: no space left")

    with pytest.raises(ProcessError, match="no space left"):
        api.client.wait_until_ready(seconds=5)
    with pytest.raises(ProcessError, match="no space left"):
        api.client.get("/resources")

    api.client.close()
    api.stop()


def test_a_platform_that_is_gone_is_said(tmp_path: Path) -> None:
    client = ControlClient(port=free_port(), token="token")
    with pytest.raises(ProcessError, match="gone"):
        client.get("/status")
    client.close()


def test_many_drivers_at_once_get_their_own_answers(api: _Api) -> None:
    with ThreadPoolExecutor(max_workers=16) as pool:
        made = list(pool.map(lambda number: _create(api, f"queue-{number}")["id"], range(64)))

    assert made == [f"queue-{number}" for number in range(64)]
    assert sorted(resource["order"] for resource in api.client.get("/resources")) == list(range(1, 65))
