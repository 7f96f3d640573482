"""Preview, up and destroy of one stage: looked at first, asked about, then done by Pulumi."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ops.deploy import interrupted
from ops.deploy.console import Console
from ops.deploy.database import SNAPSHOTS_KEPT, StageDatabase
from ops.deploy.import_ids import Place
from ops.deploy.interrupted import require_dead
from ops.deploy.plan import DATABASE, Plan, losses, read_plan
from ops.deploy.preflight import Ready, make_stack
from ops.deploy.protection import needed_settings, protected_by_engine
from ops.pulumi_cli import RESTORE_FROM, Answer, StackLocked, cannot_decrypt
from ops.refusal import Failure, Refusal
from ops.stage_file import COMPUTE_ENABLED, DATA_ENABLED, DELETION_PROTECTION, IMAGE, KEEP_SNAPSHOTS, StageSettings


@dataclass(frozen=True, kw_only=True)
class _Proposal:
    """An ``up`` that was previewed and may be done. ``content`` is the stage file that it needs, None as it is."""

    plan: Plan
    settings: StageSettings
    content: bytes | None


class Deployment:
    """One stage. A method either refuses with nothing changed, fails saying what holds now, or has done its work."""

    def __init__(self, ready: Ready, *, console: Console, restore_from: str | None, unlock: bool) -> None:
        self._ready = ready
        self._file = ready.file
        self._stage = ready.file.stage
        self._cli = ready.cli
        self._console = console
        self._database = StageDatabase(stage=self._stage, aws=ready.aws)
        self._restore_from = restore_from
        self._unlock = unlock

    def preview(self, *, difference: bool) -> None:
        """Show what ``up`` would do; with ``difference``, in Pulumi's own words too, property by property."""
        if self._restore_from is not None:
            self._database.require_restorable(self._restore_from)
        state = self._state_or_new_stack()
        left = interrupted.unfinished(state)
        if left:
            self._console.say(
                f"An earlier run was cut off while {', '.join(left)}: make up STAGE={self._stage} finishes it first"
            )
        proposal = self._propose({})
        for line in proposal.plan.lines():
            self._console.say(line)
        if difference and self._cli.show_difference() != 0:
            raise Failure(f"pulumi preview --diff failed, as said above. Nothing was changed in {self._stage}")

    def up(self, changes: Mapping[str, bool]) -> None:
        """Apply the program, with these switches set in the stage file just before.

        The file is written once the preview is through and agreed to. From then on it stays: the state follows it.
        """
        settings = self._file.settings(self._file.changed(changes))
        _require_data_for_compute(settings, file=self._file.path.name)
        if self._restore_from is not None:
            self._require_restore(settings)
        if not settings.keeps_data:
            self._database.require_deletable()
        state = self._state_or_new_stack()
        if interrupted.unfinished(state):
            self._finish(state or {})
        self._apply(changes, again=True)
        self._afterwards(state or {})

    def destroy(self) -> None:
        """Delete the stage whole, its final snapshots included, so that a later ``up`` begins anew."""
        settings = self._file.settings()
        if settings.flag(DELETION_PROTECTION, default=False):
            raise Refusal(
                f"{self._stage} is protected ({self._file.path.name}: minitickets:{DELETION_PROTECTION} is true): "
                f"set it to false, run make up STAGE={self._stage}, then try again"
            )
        self._database.require_deletable()
        state = self._cli.state() or {}
        self._require_unprotected(state)
        self._confirm_destroy(state)
        if interrupted.unfinished(state):
            self._finish(state)
        if _resources(state) or interrupted.unfinished(state):
            self._run_destroy(again=True)
        self._database.delete_final_snapshots(say=self._console.say)
        # The image's repository is gone, so its digest would let the next up's service wait for it for ever.
        self._file.write(self._file.changed({IMAGE: None}))
        self._console.say(f"{self._stage} is gone. Its file and its stack's history stay: make up makes it anew.")

    def _state_or_new_stack(self) -> Mapping[str, Any] | None:
        state = self._cli.state()
        if state is None:
            self._console.say(f"Making stack {self._stage} in the backend: this is its first run")
            make_stack(self._ready)
        return state

    def _require_restore(self, settings: StageSettings) -> None:
        if not settings.keeps_data:
            raise Refusal(
                f"{RESTORE_FROM}={self._restore_from} is for the run that switches the database on: "
                f"use it with make wake or make data-on STAGE={self._stage}"
            )
        self._database.require_restorable(self._restore_from or "")

    def _propose(self, changes: Mapping[str, bool]) -> _Proposal:
        """Preview under the changed file, which exists only as a draft so far. Refusal where the plan loses data."""
        before = self._file.read()
        content = self._file.changed(changes)
        self._console.say(f"Looking what would change in {self._stage} (nothing is changed yet)")
        if content == before:
            answer = self._cli.preview(restore_from=self._restore_from)
        else:
            with self._file.draft(content) as draft:
                answer = self._cli.preview(config=draft, restore_from=self._restore_from)
        plan = self._read(answer)
        settings = self._file.settings(content)
        refused = losses(plan, settings)
        if refused:
            raise Refusal(
                f"This run on {self._stage} would take away what must stay, so it is not begun:\n"
                + "\n".join(f"  - {loss}" for loss in refused)
                + f"\nTake that change back (or, if it is meant: pulumi up --stack {self._stage}, by hand)."
            )
        if plan.deletes_database:
            self._database.require_deletable()
        return _Proposal(plan=plan, settings=settings, content=None if content == before else content)

    def _read(self, answer: Answer) -> Plan:
        if answer.lacks_passphrase:
            raise Refusal(cannot_decrypt(self._stage))
        try:
            plan = read_plan(answer.output)
        except ValueError as error:
            raise Failure(f"The preview failed, nothing was changed: {answer.reason}") from error
        if answer.code != 0 or plan.errors:
            told = "\n".join(f"  {line}" for line in dict.fromkeys(plan.errors)) or f"  {answer.reason}"
            raise Failure(f"The preview failed, nothing was changed in {self._stage}:\n{told}")
        for warning in plan.warnings:
            self._console.say(f"  warning: {warning}")
        return plan

    def _apply(self, changes: Mapping[str, bool], *, again: bool) -> None:
        proposal = self._propose(changes)
        for line in proposal.plan.lines():
            self._console.say(line)
        if proposal.plan.steps and not self._console.agrees(f"Do this in {self._stage}?"):
            raise Failure(f"Declined: nothing was changed in {self._stage}")
        if proposal.plan.deletes_slowly:
            self._console.say("Deleting takes ten minutes and more: load balancers drain, databases write a snapshot")
        before = self._file.read()
        if proposal.content is not None:
            self._file.write(proposal.content)
        try:
            code = self._cli.up(restore_from=self._restore_from)
        except OSError as error:
            self._file.write(before)
            raise Failure(f"pulumi cannot be started ({error.strerror}): nothing was changed") from error
        except StackLocked as locked:
            self._file.write(before)  # nothing was begun
            require_dead(locked.owners, stage=self._stage, unlock=self._unlock)
            if not again:
                raise Failure(f"Another run on {self._stage} began meanwhile: nothing was changed") from locked
            self._cli.cancel()
            self._finish(self._cli.state() or {})
            self._apply(changes, again=False)
            return
        if code != 0:
            kept = f" {self._file.path.name} keeps {_switches(changes)}, as the state follows it." if changes else ""
            raise Failure(
                f"pulumi up failed in {self._stage} part of the way, as said above.{kept} "
                f"Mend the cause, then run make up STAGE={self._stage}: it goes on where this stopped"
            )

    def _afterwards(self, before: Mapping[str, Any]) -> None:
        settings = self._file.settings()
        if settings.computes and settings.image is None:
            self._console.say(
                "No image has been pushed yet, so no service runs. Next: make image, "
                f"make push STAGE={self._stage}, make up STAGE={self._stage}"
            )
        # Only the birth of a database comes after a final snapshot: any other up has nothing to prune.
        if settings.keeps_data and not any(found.get("type") == DATABASE for found in _resources(before)):
            keep = settings.count(KEEP_SNAPSHOTS, default=SNAPSHOTS_KEPT)
            try:
                self._database.prune(keep=keep, say=self._console.say)
            except Failure as failure:
                raise Failure(
                    f"{self._stage} is up, but its old snapshots could not be looked after: {failure}"
                ) from failure

    def _require_unprotected(self, state: Mapping[str, Any]) -> None:
        needed = needed_settings(state)
        if needed:
            wanted = ", ".join(f"minitickets:{key} to {str(value).lower()}" for key, value in needed.items())
            raise Refusal(
                f"{self._stage} is protected: parts of it could not be deleted, or would block their names. "
                f"Set {wanted}, run make up STAGE={self._stage}, then try again"
            )
        protected = protected_by_engine(state)
        if protected:
            raise Refusal(
                f"{self._stage} has protected resources ({', '.join(protected)}): pulumi state unprotect takes that off"
            )

    def _confirm_destroy(self, state: Mapping[str, Any]) -> None:
        count = sum(1 for found in _resources(state) if not str(found.get("type")).startswith("pulumi:"))
        snapshots = self._database.final_snapshots()
        self._console.say(
            f"This deletes all of {self._stage}: {count} resources with every booking and ticket in them, and "
            f"{len(snapshots)} final snapshots of its database. There is no way back."
        )
        if not self._console.require_typed(self._stage, f"Type {self._stage} to delete it"):
            raise Failure(f"Declined: nothing was changed in {self._stage}")

    def _run_destroy(self, *, again: bool) -> None:
        self._console.say("This takes ten minutes and more: load balancers drain, the database writes a last snapshot")
        try:
            code = self._cli.destroy()
        except StackLocked as locked:
            require_dead(locked.owners, stage=self._stage, unlock=self._unlock)
            if not again:
                raise Failure(f"Another run on {self._stage} began meanwhile: nothing was changed") from locked
            self._cli.cancel()
            self._finish(self._cli.state() or {})
            self._run_destroy(again=False)
            return
        if code != 0:
            raise Failure(
                f"pulumi destroy failed in {self._stage} part of the way, as said above. "
                f"Mend the cause, then run make destroy STAGE={self._stage} again"
            )

    def _finish(self, state: Mapping[str, Any]) -> None:
        interrupted.finish(
            self._cli,
            state,
            stage=self._stage,
            place=Place(account=self._ready.account, region=self._file.settings().region),
            finder=self._ready.aws,
            unlock=self._unlock,
            say=self._console.say,
        )


def _require_data_for_compute(settings: StageSettings, *, file: str) -> None:
    if settings.computes and not settings.keeps_data:
        raise Refusal(
            f"{file}: compute needs data. Set minitickets:{DATA_ENABLED} to true, or "
            f"minitickets:{COMPUTE_ENABLED} to false"
        )


def _resources(deployment: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(deployment.get("resources") or [])


def _switches(changes: Mapping[str, bool]) -> str:
    return " and ".join(f"{key}: {str(value).lower()}" for key, value in changes.items())
