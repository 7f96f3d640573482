"""What a test changes of a running platform for a while: SES's limits, a function's environment, how soon messages
come back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from local.loopback import Reply, Request, json_reply, serve
from local.processes import free_port
from tests.faults.boundary import action_of
from tests.fixtures.platform import RunningPlatform

_QUEUES = ("jobsQueueUrl", "jobsDlqUrl", "ticketsQueueUrl", "ticketsDlqUrl")


def purge(platform: RunningPlatform) -> None:
    """Forget what other tests left in queues and among dead letters: it would be tried in the midst of this one."""
    for queue in _QUEUES:
        platform.aws("sqs").purge_queue(QueueUrl=platform.outputs[queue])


@contextmanager
def mail_limits(platform: RunningPlatform, **limits: Any) -> Iterator[None]:
    """SES with ``perSecond``, ``perDay`` or ``rejected`` (mail_recorder.py) until the end of the block."""
    platform.session.client.post("/mail-limits", limits)
    try:
        yield
    finally:
        platform.session.client.post("/mail-limits", {})


@contextmanager
def function_environment(platform: RunningPlatform, function: str, **variables: str) -> Iterator[None]:
    """A function with more in its environment; its processes start anew for it, and once more at the end."""
    aws, name = platform.aws("lambda"), f"minitickets-dev-{function}"
    before = aws.get_function_configuration(FunctionName=name)["Environment"]["Variables"]
    aws.update_function_configuration(FunctionName=name, Environment={"Variables": {**before, **variables}})
    try:
        yield
    finally:
        aws.update_function_configuration(FunctionName=name, Environment={"Variables": before})


@contextmanager
def coming_back_sooner(platform: RunningPlatform, *, times: int) -> Iterator[list[int]]:
    """The worker's messages come back in a ``times``-th of the seconds that it says, but not in less than one.

    Gives the seconds that it said. It is what makes minutes of backing off fit into a test: the zip, the queue and its
    mapping are the stage's own.
    """
    sqs = platform.aws("sqs")
    said: list[int] = []

    def answer(request: Request) -> Reply:
        if action_of(request) != "ChangeMessageVisibilityBatch":
            return json_reply({"__type": "InvalidAction", "message": f"not here: {action_of(request)}"}, status=400)
        asked = request.json()
        said.extend(entry["VisibilityTimeout"] for entry in asked["Entries"])
        sooner = [
            {**entry, "VisibilityTimeout": max(1, entry["VisibilityTimeout"] // times)} for entry in asked["Entries"]
        ]
        # A changed body has no valid signature any more: asked anew, as the account's root.
        done = sqs.change_message_visibility_batch(QueueUrl=asked["QueueUrl"], Entries=sooner)
        return json_reply({"Successful": done.get("Successful", []), "Failed": done.get("Failed", [])})

    port = free_port()
    stop = serve("sooner", port=port, answer=answer)
    try:
        with function_environment(platform, "worker", AWS_ENDPOINT_URL_SQS=f"http://127.0.0.1:{port}"):
            yield said
    finally:
        stop()
