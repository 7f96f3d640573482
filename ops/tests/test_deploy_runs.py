"""What a deploy runs, in which order, and what stays untouched when it is refused. `pulumi` is a stub."""

import json
import socket
import subprocess
import sys

import pytest

from ops.aws_account import LiveDatabase
from ops.pulumi_cli import PulumiCli
from ops.refusal import Failure, Refusal
from ops.tests.stages import STAGE_FILE, ScriptedConsole, Stage, final_snapshots, preview, resource, state, step

pytestmark = pytest.mark.integration

DATABASE = "aws:rds/instance:Instance"
OFF_FILE = STAGE_FILE.replace("dataEnabled: true", "dataEnabled: false").replace(
    "computeEnabled: true", "computeEnabled: false"
)
BOTH_OFF = {"computeEnabled": False, "dataEnabled": False}
BOTH_ON = {"computeEnabled": True, "dataEnabled": True}
AVAILABLE = LiveDatabase(status="available", deletion_protection=False)
PROTECTED = LiveDatabase(status="available", deletion_protection=True)
FAILED_PREVIEW = {
    "code": 1,
    "out": preview(diagnostics=[{"severity": "error", "message": "error: minitickets:sender 'x' is no address\n"}]),
}


def _locked(process: int, host: str | None = None) -> dict[str, object]:
    text = (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        "lock file with `pulumi cancel`.\n  file:///locks/1.json: "
        f"created by ada@{host or socket.gethostname()} (pid {process}) at 2026-11-29T15:12:42Z\n"
    )
    return {"code": 1, "err": text}


def _dead_process() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_up_reads_the_state_previews_asks_and_applies(stage: Stage) -> None:
    console = ScriptedConsole()
    stage.deployment(console=console).up({})
    assert stage.pulumi.commands == ["stack export", "preview", "up"]
    assert console.questions == ["Do this in dev?"]
    assert "  + aws:sqs:Queue jobs" in console.said
    up = stage.pulumi.call("up")
    assert {"--yes", "--skip-preview", "--non-interactive"} <= set(up["arguments"])
    assert stage.file.path.read_text() == STAGE_FILE


def test_every_call_names_the_stack(stage: Stage) -> None:
    stage.deployment().up({})
    for call in stage.pulumi.calls:
        assert call["arguments"][call["arguments"].index("--stack") + 1] == "dev"


def test_a_plan_that_loses_data_is_refused_before_up(stage: Stage) -> None:
    stage.pulumi.answers(preview={"out": preview(step("replace", DATABASE, "db", replaceReasons=["username"]))})
    stage.refuses(lambda: stage.deployment().up({}), "replace the database aws:rds:Instance db: a change of username")


def test_a_failed_preview_changes_nothing_and_says_why(stage: Stage) -> None:
    stage.pulumi.answers(preview=FAILED_PREVIEW)
    with pytest.raises(Failure, match=r"nothing was changed in dev:\n  minitickets:sender 'x' is no address"):
        stage.deployment().up(BOTH_OFF)
    assert "up" not in stage.pulumi.commands
    assert stage.file.path.read_text() == STAGE_FILE


def test_a_preview_without_a_document_is_a_failure(stage: Stage) -> None:
    stage.pulumi.answers(preview={"code": 255, "err": "error: the backend is gone\n"})
    with pytest.raises(Failure, match="The preview failed, nothing was changed: the backend is gone"):
        stage.deployment().up({})


def test_a_missing_passphrase_is_refused_with_the_variable_to_set(stage: Stage) -> None:
    text = "error: get stack secrets manager: passphrase must be set with PULUMI_CONFIG_PASSPHRASE or …\n"
    stage.pulumi.answers(preview={"code": 1, "err": text})
    stage.refuses(lambda: stage.deployment().up({}), "set PULUMI_CONFIG_PASSPHRASE")


def test_declining_leaves_the_stage_file_as_it_was(stage: Stage) -> None:
    with pytest.raises(Failure, match="Declined: nothing was changed"):
        stage.deployment(console=ScriptedConsole(agrees=False)).up(BOTH_OFF)
    assert "up" not in stage.pulumi.commands
    assert stage.file.path.read_text() == STAGE_FILE


def test_a_flip_is_previewed_under_a_draft_and_written_only_for_up(stage: Stage) -> None:
    stage.deployment().up(BOTH_OFF)
    looked, done = stage.pulumi.call("preview"), stage.pulumi.call("up")
    assert looked["draft"] == OFF_FILE
    assert looked["stage_files"] == {"Pulumi.dev.yaml": STAGE_FILE}
    assert done["stage_files"] == {"Pulumi.dev.yaml": OFF_FILE}
    assert stage.file.path.read_text() == OFF_FILE


def test_a_flip_may_delete_the_database_and_says_how_long_that_takes(stage: Stage) -> None:
    stage.pulumi.answers(preview={"out": preview(step("delete", DATABASE, "db"))})
    console = ScriptedConsole()
    stage.deployment(console=console).up(BOTH_OFF)
    assert "up" in stage.pulumi.commands
    assert any("ten minutes" in line for line in console.said)


def test_an_up_that_fails_part_of_the_way_keeps_the_switch_and_says_so(stage: Stage) -> None:
    stage.pulumi.answers(up={"code": 1, "err": "error: update failed\n"})
    with pytest.raises(Failure, match=r"keeps computeEnabled: false and dataEnabled: false, as the state follows it"):
        stage.deployment().up(BOTH_OFF)
    assert stage.file.path.read_text() == OFF_FILE


def test_a_database_with_live_deletion_protection_is_refused_before_anything_is_looked_at(stage: Stage) -> None:
    stage.aws.live = PROTECTED
    stage.refuses(lambda: stage.deployment().up(BOTH_OFF), "deletion protection.*make up STAGE=dev, then try again")
    assert "preview" not in stage.pulumi.commands


def test_compute_without_data_is_refused(stage: Stage) -> None:
    stage.set(dataEnabled=False)
    stage.refuses(lambda: stage.deployment().up({}), "compute needs data")
    assert stage.pulumi.commands == []


def test_without_an_image_the_end_says_what_to_do_next(stage: Stage) -> None:
    console = ScriptedConsole()
    stage.deployment(console=console).up({})
    assert "Next: make image, make push STAGE=dev, make up STAGE=dev" in console.said[-1]
    stage.set(image="repository@sha256:1")
    stage.deployment(console=console).up({})
    assert "make push" not in console.said[-1]


def test_the_first_up_makes_the_stack_and_keeps_the_stage_file_s_comments(stage: Stage) -> None:
    mangled = 'config:\n  minitickets:computeEnabled: "true"\nencryptionsalt: v1:abc\n'
    stage.pulumi.answers(
        stack_export={"code": 6, "err": "error: no stack named 'dev' found\n"},
        stack_init={"writes": {str(stage.file.path): mangled}},
    )
    stage.deployment().up({})
    assert stage.pulumi.commands == ["stack export", "stack init", "preview", "up"]
    assert stage.file.path.read_text() == STAGE_FILE + "encryptionsalt: v1:abc\n"


def test_a_restore_is_asked_for_in_preview_and_up_only(stage: Stage) -> None:
    stage.set(**BOTH_OFF)
    stage.aws.kept = final_snapshots(2)
    stage.deployment(restore_from="minitickets-dev-db-final-1").up(BOTH_ON)
    asked = {call["arguments"][0]: call["restore_from"] for call in stage.pulumi.calls}
    assert asked == {"stack": None, "preview": "minitickets-dev-db-final-1", "up": "minitickets-dev-db-final-1"}
    assert "final-1" not in stage.file.path.read_text()


def test_a_restore_is_refused_while_data_is_on_or_stays_off(stage: Stage) -> None:
    stage.aws.live = AVAILABLE
    stage.refuses(lambda: stage.deployment(restore_from="none").up({}), "is refused while database .* is there")
    stage.aws.live = None
    stage.set(**BOTH_OFF)
    stage.refuses(lambda: stage.deployment(restore_from="none").up({}), "use it with make wake or make data-on")


def test_a_database_that_came_back_prunes_old_snapshots_after_up(stage: Stage) -> None:
    stage.set(**BOTH_OFF)
    stage.aws.kept = final_snapshots(8)
    stage.aws.live = AVAILABLE
    stage.aws.remembered = frozenset({"minitickets-dev-db-final-2"})
    stage.deployment().up(BOTH_ON)
    assert sorted(stage.aws.deleted) == ["minitickets-dev-db-final-1", "minitickets-dev-db-final-3"]


def test_no_snapshot_is_pruned_when_up_fails_or_the_database_was_there_all_along(stage: Stage) -> None:
    stage.aws.kept = final_snapshots(8)
    stage.aws.live = AVAILABLE
    stage.pulumi.answers(up={"code": 1})
    with pytest.raises(Failure):
        stage.deployment().up({})
    stage.pulumi.answers(up={}, stack_export={"out": state(resource(DATABASE, "db"))})
    stage.deployment().up({})
    assert stage.aws.deleted == []


def test_an_up_whose_old_snapshots_cannot_be_pruned_says_that_it_is_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(identifier: str) -> None:
        raise Failure("AWS did not let us look up database minitickets-dev-db (Throttling)")

    monkeypatch.setattr(stage.aws, "database", fails)
    with pytest.raises(Failure, match=r"dev is up, but its old snapshots could not be looked after: .*Throttling"):
        stage.deployment().up({})


def test_a_killed_run_is_cancelled_written_down_and_refreshed_before_up(stage: Stage) -> None:
    database = resource(DATABASE, "db", identifier="minitickets-dev-db")
    cut_off = state(resource("aws:sqs/queue:Queue", "jobs"), pending=[database])
    stage.pulumi.answers(stack_export={"out": cut_off}, stack_import=[_locked(_dead_process()), {}])
    console = ScriptedConsole()
    stage.deployment(console=console).up({})
    assert stage.pulumi.commands == [
        "stack export",
        "stack import",
        "cancel",
        "stack import",
        "refresh",
        "preview",
        "up",
    ]
    written = json.loads(stage.pulumi.call("stack import")["stdin"])["deployment"]
    assert [found.get("id") for found in written["resources"]] == [None, "minitickets-dev-db"]
    said = "\n".join(console.said)
    assert "cut off while creating aws:rds/instance:Instance db: finishing it" in said
    assert said.index("cancel: its process is gone") < said.index("refresh: reading every resource")


def test_a_run_that_goes_on_elsewhere_is_left_alone(stage: Stage) -> None:
    cut_off = state(pending=[resource("aws:sqs/queue:Queue", "jobs", name="q")])
    stage.pulumi.answers(stack_export={"out": cut_off}, stack_import=_locked(1, host="elsewhere"))
    with pytest.raises(Refusal, match="ada on elsewhere"):
        stage.deployment().up(BOTH_OFF)
    assert stage.pulumi.commands == ["stack export", "stack import"]
    assert stage.file.path.read_text() == STAGE_FILE


def test_a_lock_without_unfinished_work_is_found_by_up_and_the_file_put_back_meanwhile(stage: Stage) -> None:
    stage.pulumi.answers(up=[_locked(_dead_process()), {}])
    stage.deployment().up(BOTH_OFF)
    assert stage.pulumi.commands == [
        "stack export",
        "preview",
        "up",
        "cancel",
        "stack export",
        "stack import",
        "refresh",
        "preview",
        "up",
    ]
    assert stage.pulumi.call("cancel")["stage_files"] == {"Pulumi.dev.yaml": STAGE_FILE}
    assert stage.file.path.read_text() == OFF_FILE


def test_a_lock_of_another_machine_puts_the_file_back(stage: Stage) -> None:
    stage.pulumi.answers(up=_locked(1, host="elsewhere"))
    with pytest.raises(Refusal, match="UNLOCK=1"):
        stage.deployment().up(BOTH_OFF)
    assert stage.file.path.read_text() == STAGE_FILE
    assert "cancel" not in stage.pulumi.commands


def test_pulumi_cloud_does_not_tell_whose_run_it_is_so_the_operator_must(stage: Stage) -> None:
    conflict = {"code": 255, "err": "error: [409] Conflict: Another update is currently in progress.\n"}
    stage.pulumi.answers(up=[conflict, {}])
    with pytest.raises(Refusal, match=r"someone else.*UNLOCK=1"):
        stage.deployment().up(BOTH_OFF)
    assert stage.file.path.read_text() == STAGE_FILE
    stage.pulumi.answers(up=[conflict, conflict, {}])
    stage.deployment(unlock=True).up(BOTH_OFF)
    assert stage.pulumi.commands[-7:] == [
        "up",
        "cancel",
        "stack export",
        "stack import",
        "refresh",
        "preview",
        "up",
    ]


def test_a_run_begun_meanwhile_is_not_fought_with(stage: Stage) -> None:
    stage.pulumi.answers(up=_locked(_dead_process()))
    with pytest.raises(Failure, match="Another run on dev began meanwhile: nothing was changed"):
        stage.deployment().up(BOTH_OFF)
    assert stage.pulumi.commands.count("up") == 2
    assert stage.file.path.read_text() == STAGE_FILE


def test_a_failed_refresh_stops_before_up(stage: Stage) -> None:
    cut_off = state(pending=[resource("aws:sqs/queue:Queue", "jobs", name="q")])
    stage.pulumi.answers(stack_export={"out": cut_off}, refresh={"code": 1})
    with pytest.raises(Failure, match="The refresh after a killed run failed"):
        stage.deployment().up(BOTH_OFF)
    assert "up" not in stage.pulumi.commands
    assert stage.file.path.read_text() == STAGE_FILE


def test_a_preview_of_a_killed_run_only_tells(stage: Stage) -> None:
    cut_off = state(pending=[resource("aws:sqs/queue:Queue", "jobs", name="q")])
    stage.pulumi.answers(stack_export={"out": cut_off})
    console = ScriptedConsole()
    stage.deployment(console=console).preview(difference=False)
    assert stage.pulumi.commands == ["stack export", "preview"]
    assert "make up STAGE=dev finishes it first" in console.said[0]


def test_destroy_asks_for_the_name_deletes_the_snapshots_and_forgets_the_image(stage: Stage) -> None:
    stage.set(image="repository@sha256:1")
    stage.aws.kept = final_snapshots(2)
    stage.pulumi.answers(stack_export={"out": state(resource("aws:sqs/queue:Queue", "jobs"))})
    stage.deployment(console=ScriptedConsole(types="dev")).destroy()
    assert stage.pulumi.commands == ["stack export", "destroy"]
    assert stage.aws.kept == []
    assert stage.file.path.read_text() == STAGE_FILE


def test_destroy_without_the_right_name_deletes_nothing(stage: Stage) -> None:
    stage.aws.kept = final_snapshots(2)
    with pytest.raises(Failure, match="Declined"):
        stage.deployment(console=ScriptedConsole(types="prod")).destroy()
    assert (stage.pulumi.commands, stage.aws.deleted) == (["stack export"], [])


def test_a_failed_destroy_keeps_the_snapshots(stage: Stage) -> None:
    stage.aws.kept = final_snapshots(2)
    stage.pulumi.answers(stack_export={"out": state(resource("aws:sqs/queue:Queue", "jobs"))}, destroy={"code": 1})
    with pytest.raises(Failure, match="make destroy STAGE=dev again"):
        stage.deployment(console=ScriptedConsole(types="dev")).destroy()
    assert stage.aws.deleted == []


def test_a_destroy_cut_off_before_the_snapshots_is_finished_by_the_next(stage: Stage) -> None:
    stage.aws.kept = final_snapshots(2)
    stage.deployment(console=ScriptedConsole(types="dev")).destroy()
    assert "destroy" not in stage.pulumi.commands, "an empty state has nothing to destroy"
    assert stage.aws.kept == []


@pytest.mark.parametrize(
    ("found", "setting"),
    [
        (resource(DATABASE, "db", deletionProtection=True), "minitickets:deletionProtection to false"),
        (resource("aws:dynamodb/table:Table", "t", deletionProtectionEnabled=True), "deletionProtection to false"),
        (resource("aws:s3/bucket:Bucket", "assets"), "minitickets:forceDestroy to true"),
        (resource("aws:ecr/repository:Repository", "api", forceDelete=False), "minitickets:forceDestroy to true"),
        (resource("aws:secretsmanager/secret:Secret", "signing"), "minitickets:secretRecoveryDays to 0"),
        ({**resource("aws:sqs/queue:Queue", "jobs"), "protect": True}, "pulumi state unprotect"),
    ],
)
def test_destroying_what_is_protected_or_would_stay_behind_is_refused(
    stage: Stage, found: dict[str, object], setting: str
) -> None:
    stage.pulumi.answers(stack_export={"out": state(found)})
    stage.refuses(lambda: stage.deployment(console=ScriptedConsole(types="dev")).destroy(), setting)


def test_a_stage_whose_file_protects_it_is_not_destroyed(stage: Stage) -> None:
    stage.set(deletionProtection=None)  # the project's default protects
    stage.refuses(lambda: stage.deployment(console=ScriptedConsole(types="dev")).destroy(), "dev is protected")
    assert stage.pulumi.commands == []


def test_a_live_protection_that_the_state_does_not_know_counts(stage: Stage) -> None:
    stage.aws.live = PROTECTED
    stage.refuses(lambda: stage.deployment(console=ScriptedConsole(types="dev")).destroy(), "deletion protection")


def test_the_outputs_of_a_stack_that_is_not_there_are_refused(stage: Stage) -> None:
    stage.pulumi.answers(stack_export={"code": 6, "err": "error: no stack named 'dev' found\n"})
    cli = PulumiCli(project=stage.project, stage="dev", environment=stage.environment)
    with pytest.raises(Refusal, match="no stack dev yet: run make up STAGE=dev"):
        cli.outputs()
