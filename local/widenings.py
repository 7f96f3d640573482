"""The one list of places where this machine loosens a policy of the program, because the emulator cannot judge it.

The true policies are asserted by the infra tests; what each widening changes, and that it changes nothing else, by
this module's. A widening is a pure function on a policy document; handlers say aloud where one was applied.
"""

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Statement = dict[str, Any]


class Kind(StrEnum):
    """Which document it is: what a role may do, who may use a resource, or who may become a role."""

    IDENTITY = "identity"
    RESOURCE = "resource"
    TRUST = "trust"


@dataclass(frozen=True, kw_only=True)
class Widening:
    """One loosening. ``widen`` returns what becomes of a statement: itself, a wider one, two, or none."""

    name: str
    reason: str
    kinds: frozenset[Kind]
    widen: Callable[[Statement], list[Statement]]


@dataclass(frozen=True, kw_only=True)
class Widened:
    """A policy document as JSON text, and the widenings that changed it."""

    document: str
    applied: tuple[Widening, ...]


# AWS authorises a batch by the single action (AWS documents no batch actions for these); the emulator asks for the
# name of the call.
_BATCH_TWINS = {
    "sns:Publish": "sns:PublishBatch",
    "sqs:SendMessage": "sqs:SendMessageBatch",
    "sqs:DeleteMessage": "sqs:DeleteMessageBatch",
    "sqs:ChangeMessageVisibility": "sqs:ChangeMessageVisibilityBatch",
}
_SEND_EMAIL = "ses:SendEmail"
_FROM_ADDRESS = "ses:FromAddress"
_SECURE_TRANSPORT = "aws:SecureTransport"
_SOURCES = frozenset({"aws:SourceArn", "aws:SourceAccount"})


def _as_list(value: str | list[str] | None) -> list[str]:
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def _without_keys(condition: Mapping[str, Mapping[str, Any]], keys: frozenset[str]) -> dict[str, dict[str, Any]]:
    kept = {
        operator: {key: value for key, value in tests.items() if key not in keys}
        for operator, tests in condition.items()
    }
    return {operator: tests for operator, tests in kept.items() if tests}


def _with_condition(statement: Statement, condition: dict[str, dict[str, Any]]) -> Statement:
    changed = {key: value for key, value in statement.items() if key != "Condition"}
    return {**changed, "Condition": condition} if condition else changed


def _send_email_anywhere(statement: Statement) -> list[Statement]:
    actions = _as_list(statement.get("Action"))
    if statement.get("Effect") != "Allow" or _SEND_EMAIL not in actions:
        return [statement]
    condition = _without_keys(statement.get("Condition", {}), frozenset({_FROM_ADDRESS}))
    sending = _with_condition({**statement, "Action": [_SEND_EMAIL], "Resource": "*"}, condition)
    if others := [action for action in actions if action != _SEND_EMAIL]:
        return [{**statement, "Action": others}, {**sending, "Sid": f"{statement.get('Sid', '')}SendEmail"}]
    return [sending]


def _batch_twins(statement: Statement) -> list[Statement]:
    actions = _as_list(statement.get("Action"))
    twins = [_BATCH_TWINS[action] for action in actions if action in _BATCH_TWINS]
    missing = [twin for twin in twins if twin not in actions]
    if statement.get("Effect") != "Allow" or not missing:
        return [statement]
    return [{**statement, "Action": [*actions, *missing]}]


def _no_tls_only_deny(statement: Statement) -> list[Statement]:
    tests = [(key, value) for operator in statement.get("Condition", {}).values() for key, value in operator.items()]
    only_tls = [key for key, _ in tests] == [_SECURE_TRANSPORT] and str(tests[0][1]).lower() == "false"
    return [] if statement.get("Effect") == "Deny" and only_tls else [statement]


def _trust_from_anywhere(statement: Statement) -> list[Statement]:
    condition = statement.get("Condition", {})
    kept = _without_keys(condition, _SOURCES)
    return [statement] if kept == condition else [_with_condition(statement, kept)]


WIDENINGS = (
    Widening(
        name="mail from any identity",
        reason="the emulator asks for ses:SendEmail on *, and does not know ses:FromAddress",
        kinds=frozenset({Kind.IDENTITY}),
        widen=_send_email_anywhere,
    ),
    Widening(
        name="batch calls beside single ones",
        reason="AWS authorises a batch by its single action, the emulator by the batch's name",
        kinds=frozenset({Kind.IDENTITY}),
        widen=_batch_twins,
    ),
    Widening(
        name="plain HTTP let in",
        reason="the emulator has no TLS here; the deny would refuse every call",
        kinds=frozenset({Kind.IDENTITY, Kind.RESOURCE}),
        widen=_no_tls_only_deny,
    ),
    Widening(
        name="a role assumed by this machine",
        reason="the platform itself assumes it, so there is no source ARN or account to compare",
        kinds=frozenset({Kind.TRUST}),
        widen=_trust_from_anywhere,
    ),
)


def widen(document: str, kind: Kind) -> Widened:
    """``document`` as this machine needs it; the same text where nothing applies. No statement left is ``""``.

    ValueError (json's) if it is not JSON.
    """
    policy = json.loads(document)
    written = policy.get("Statement", [])
    statements: list[Statement] = copy.deepcopy([written] if isinstance(written, dict) else written)
    applied = []
    for widening in WIDENINGS:
        if kind not in widening.kinds:
            continue
        widened = [wider for statement in statements for wider in widening.widen(statement)]
        if widened != statements:
            applied.append(widening)
            statements = widened
    if not applied:
        return Widened(document=document, applied=())
    text = json.dumps({**policy, "Statement": statements}, separators=(",", ":")) if statements else ""
    return Widened(document=text, applied=tuple(applied))
