"""What the platform offers to its handlers, made of its parts (``handlers.handler.PlatformServices``)."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from local.balancer import Balancer
from local.children import Children
from local.credentials import CredentialsEndpoint
from local.emulator import ACCOUNT, REGION, Clients, assume_role
from local.processes import Child, start
from local.progress import Progress
from local.stage_folder import REPOSITORY, StageFolder


class Platform:
    """One stage's services: clients, processes, credentials, load balancing, ports, progress."""

    def __init__(
        self,
        *,
        folder: StageFolder,
        root_clients: Clients,
        children: Children,
        progress: Progress,
        mailbox_url: str,
    ) -> None:
        self.account = ACCOUNT
        self.region = REGION
        self.root = REPOSITORY
        self.state = folder.path
        self.endpoint = f"http://127.0.0.1:{folder.port('emulator')}"
        self.mail_endpoint = f"http://127.0.0.1:{folder.port('mail')}"
        self.mailbox_url = mailbox_url
        self.calls_port = folder.port("calls")
        self.credentials = CredentialsEndpoint(port=folder.port("credentials"), root=root_clients)
        self.balancer = Balancer()
        self.differences: set[str] = set()
        self._lent: dict[str, Mapping[str, str]] = {}  # environments of the processes that run
        self._folder = folder
        self._clients = root_clients
        self._children = children
        self._progress = progress

    def aws(self, service: str) -> Any:
        return self._clients(service)

    def aws_as(self, service: str, role_arn: str) -> Any:
        return Clients(self.endpoint, credentials=assume_role(self._clients, role_arn, session_name="local-platform"))(
            service
        )

    def start_process(
        self,
        name: str,
        argv: list[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        on_exit: Callable[[int], None] | None = None,
    ) -> Child:
        def ended(exit_code: int) -> None:
            self.credentials.revoke(self._lent.pop(name, {}))
            if on_exit is not None:
                on_exit(exit_code)

        child = start(name, argv, env=env, log=self.state / "logs" / f"{name}.log", cwd=cwd)
        self._lent[name] = env
        self._children.watch(child, on_exit=ended)
        return child

    def adopt_process(self, child: Child, *, on_exit: Callable[[int], None] | None = None) -> None:
        self._children.watch(child, on_exit=on_exit)

    def stop_process(self, name: str, *, seconds: float = 10) -> None:
        self._children.stop(name, seconds=seconds)
        self.credentials.revoke(self._lent.pop(name, {}))

    def lend_credentials(self, role_arn: str) -> Mapping[str, str]:
        return self.credentials.lend(role_arn)

    def balance(self, name: str, *, port: int) -> None:
        self.balancer.listen(name, port=port)

    def set_targets(self, name: str, ports: list[int]) -> None:
        self.balancer.set_targets(name, ports)

    def stop_balancing(self, name: str) -> None:
        self.balancer.close(name)

    def free_port(self) -> int:
        return self._folder.draw_port()

    def say(self, text: str) -> None:
        # Where this machine differs from AWS is the same at every start: in the log, and counted for the person.
        if not text.startswith(("loosened: ", "replaced: ")):
            self._progress.say(text)
        elif text not in self.differences:
            self.differences.add(text)
            self._progress.note(text)
