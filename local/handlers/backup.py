"""AWS Backup: vaults, plans and what they select. Nothing is backed up here: the emulator keeps what it is told."""

from collections.abc import Mapping
from typing import Any

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.handlers.permissions import require_trust
from local.handlers.refusals import found, gone
from local.handlers.shapes import chosen, tags_gone, tags_of


class Vault(Handler):
    """A vault. A name in use is refused, and so is the end of one that holds backups, unless the program forces it."""

    resource_type = "aws:backup/vault:Vault"
    replaced_by = frozenset({"kmsKeyArn", "name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        vault = str(inputs["name"])
        made = self.platform.aws("backup").create_backup_vault(
            BackupVaultName=vault, EncryptionKeyArn=self._key(inputs), BackupVaultTags=tags_of(inputs)
        )
        return Made(vault, self._outputs(made["BackupVaultArn"], 0, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        vault = id or str(inputs["name"])
        live = found(lambda: self.platform.aws("backup").describe_backup_vault(BackupVaultName=vault))
        if live is None:
            return None
        return Made(vault, self._outputs(live["BackupVaultArn"], live["NumberOfRecoveryPoints"], inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        _tag(self, old["arn"], old, new)
        return self._outputs(old["arn"], old["recoveryPoints"], new)

    def delete(self, id: str, outputs: Outputs) -> None:
        live = self.read(id, outputs)
        if live is not None and live.outputs["recoveryPoints"] and not outputs.get("forceDestroy"):
            raise HandlerError(
                f"InvalidRequestException: Backup vault {id} cannot be deleted because it contains recovery points"
            )
        gone(lambda: self.platform.aws("backup").delete_backup_vault(BackupVaultName=id))

    def _key(self, inputs: Inputs) -> str:
        # AWS encrypts every vault, with its own key where it is told none; the emulator would keep none.
        own = f"arn:aws:kms:{self.platform.region}:{self.platform.account}:alias/aws/backup"
        return str(inputs.get("kmsKeyArn") or own)

    def _outputs(self, arn: str, held: int, inputs: Inputs) -> Outputs:
        key = self._key(inputs)
        return {**inputs, "arn": arn, "kmsKeyArn": key, "recoveryPoints": held, "tagsAll": tags_of(inputs)}


class Plan(Handler):
    """A plan. Its id is AWS's; plans of one name may be many, so none is adopted by its name."""

    resource_type = "aws:backup/plan:Plan"
    replaced_by = frozenset({"name"})

    def create(self, name: str, inputs: Inputs) -> Made:
        made = self.platform.aws("backup").create_backup_plan(BackupPlan=_plan(inputs), BackupPlanTags=tags_of(inputs))
        return Made(made["BackupPlanId"], _plan_outputs(made, inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        live = found(lambda: self.platform.aws("backup").get_backup_plan(BackupPlanId=id)) if id else None
        return None if live is None else Made(id, _plan_outputs(live, inputs))

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        made = self.platform.aws("backup").update_backup_plan(BackupPlanId=id, BackupPlan=_plan(new))
        _tag(self, old["arn"], old, new)
        return _plan_outputs(made, new)

    def delete(self, id: str, outputs: Outputs) -> None:
        backup = self.platform.aws("backup")
        selections = found(lambda: backup.list_backup_selections(BackupPlanId=id)["BackupSelectionsList"])
        if selections:
            raise HandlerError(
                "InvalidRequestException: Related backup plan selections must be deleted prior to backup plan deletion"
            )
        gone(lambda: backup.delete_backup_plan(BackupPlanId=id))


class Selection(Handler):
    """What a plan backs up. AWS changes none: another is another."""

    resource_type = "aws:backup/selection:Selection"
    replaced_by = frozenset(
        {"conditions", "iamRoleArn", "name", "notResources", "planId", "resources", "selectionTags"}
    )

    def create(self, name: str, inputs: Inputs) -> Made:
        names = {"name": "SelectionName", "iamRoleArn": "IamRoleArn", "resources": "Resources"}
        refusal = f"InvalidParameterValueException: IAM Role {inputs['iamRoleArn']} cannot be assumed by AWS Backup"
        require_trust(self.platform, inputs["iamRoleArn"], "backup.amazonaws.com", refusal)
        selection = {**chosen(inputs, names), "NotResources": list(inputs.get("notResources") or [])}
        made = self.platform.aws("backup").create_backup_selection(
            BackupPlanId=inputs["planId"], BackupSelection=selection
        )
        return Made(made["SelectionId"], dict(inputs))

    def read(self, id: str, inputs: Inputs) -> Made | None:
        # The id that it is imported by has its plan's in front.
        selection, plan = id.rpartition("|")[2], inputs.get("planId") or id.partition("|")[0]
        if not selection:
            return None
        backup = self.platform.aws("backup")
        live = found(lambda: backup.get_backup_selection(BackupPlanId=plan, SelectionId=selection))
        return None if live is None else Made(selection, {**inputs, "planId": plan})

    def delete(self, id: str, outputs: Outputs) -> None:
        backup, plan = self.platform.aws("backup"), outputs["planId"]
        gone(lambda: backup.delete_backup_selection(BackupPlanId=plan, SelectionId=id))


def _plan(inputs: Inputs) -> dict[str, Any]:
    return {"BackupPlanName": inputs["name"], "Rules": [_rule(rule) for rule in inputs["rules"]]}


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    names = {
        "ruleName": "RuleName",
        "targetVaultName": "TargetBackupVaultName",
        "schedule": "ScheduleExpression",
        "startWindow": "StartWindowMinutes",
        "completionWindow": "CompletionWindowMinutes",
        "enableContinuousBackup": "EnableContinuousBackup",
    }
    shaped = chosen(rule, names)
    if lifecycle := rule.get("lifecycle"):
        days = {"deleteAfter": "DeleteAfterDays", "coldStorageAfter": "MoveToColdStorageAfterDays"}
        shaped["Lifecycle"] = chosen(lifecycle, days)
    return shaped


def _plan_outputs(live: Mapping[str, Any], inputs: Inputs) -> Outputs:
    return {**inputs, "arn": live["BackupPlanArn"], "version": live["VersionId"], "tagsAll": tags_of(inputs)}


def _tag(handler: Handler, arn: str, old: Inputs, new: Inputs) -> None:
    backup = handler.platform.aws("backup")
    if removed := tags_gone(old, new):
        backup.untag_resource(ResourceArn=arn, TagKeyList=removed)
    if tags := tags_of(new):
        backup.tag_resource(ResourceArn=arn, Tags=tags)
