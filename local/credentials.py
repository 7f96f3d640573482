"""Credentials of a task's role as ECS gives them: an endpoint on loopback that the SDK asks, and asks again."""

import secrets
import threading
from collections.abc import Callable, Mapping

from local.emulator import Clients
from local.loopback import Reply, Request, json_reply, serve


class CredentialsEndpoint:
    """Lends a role to whoever holds its token. What it gives lives an hour; the SDK comes back before that."""

    def __init__(self, *, port: int, root: Clients) -> None:
        self._port = port
        self._root = root
        self._roles: dict[str, str] = {}
        self._lock = threading.Lock()

    def start(self) -> Callable[[], None]:
        """Serve it; returns the call that stops it."""
        return serve("credentials", port=self._port, answer=self._answer)

    def lend(self, role_arn: str) -> Mapping[str, str]:
        """Environment by which a process finds the credentials of a role."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._roles[token] = role_arn
        return {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"http://127.0.0.1:{self._port}/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": token,
        }

    def revoke(self, environment: Mapping[str, str]) -> None:
        """Lend no more to the process that got this environment."""
        with self._lock:
            self._roles.pop(environment.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", ""), None)

    def _answer(self, request: Request) -> Reply:
        with self._lock:
            role_arn = self._roles.get(request.header("Authorization"))
        if role_arn is None or request.method != "GET":
            return json_reply({"code": "AccessDenied", "message": "no such token"}, status=403)
        try:
            given = self._root("sts").assume_role(RoleArn=role_arn, RoleSessionName="ecs-task")["Credentials"]
        except Exception as error:  # noqa: BLE001 - whatever it is, the task must hear of it
            return json_reply({"code": "AssumeRoleFailed", "message": str(error)}, status=500)
        return json_reply(
            {
                "RoleArn": role_arn,
                "AccessKeyId": given["AccessKeyId"],
                "SecretAccessKey": given["SecretAccessKey"],
                "Token": given["SessionToken"],
                "Expiration": given["Expiration"].strftime("%Y-%m-%dT%H:%M:%SZ"),
            }
        )
