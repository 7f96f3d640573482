"""The list of loosened policies: what each changes, and that nothing else changes."""

import json
from typing import Any

import pytest

from local.widenings import WIDENINGS, Kind, widen

pytestmark = pytest.mark.unit

ALLOW_READS = {
    "Sid": "ReadTickets",
    "Effect": "Allow",
    "Action": ["dynamodb:Query"],
    "Resource": "arn:aws:dynamodb:us-east-1:1:table/t",
    "Condition": {"StringEquals": {"aws:SourceAccount": "1"}},
}


def _document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Id": "mine", "Statement": list(statements)})


def _widened(*statements: dict[str, Any], kind: Kind = Kind.IDENTITY) -> list[dict[str, Any]]:
    text = widen(_document(*statements), kind).document
    return [] if text == "" else list(json.loads(text)["Statement"])


def test_a_policy_that_needs_no_widening_stays_the_same_text() -> None:
    document = _document(ALLOW_READS)

    for kind in (Kind.IDENTITY, Kind.RESOURCE):
        assert widen(document, kind).document == document
        assert widen(document, kind).applied == ()


def test_the_list_names_four_widenings_each_with_its_reason() -> None:
    assert [widening.name for widening in WIDENINGS] == [
        "mail from any identity",
        "batch calls beside single ones",
        "plain HTTP let in",
        "a role assumed by this machine",
    ]
    assert all(widening.reason for widening in WIDENINGS)


def test_sending_mail_loses_its_resource_and_its_from_address_and_keeps_other_conditions() -> None:
    sending = {
        "Sid": "SendEmail",
        "Effect": "Allow",
        "Action": ["ses:SendEmail"],
        "Resource": ["arn:aws:ses:us-east-1:1:identity/example.org"],
        "Condition": {
            "StringEquals": {"ses:FromAddress": "tickets@example.org", "aws:RequestedRegion": "us-east-1"},
            "StringLike": {"ses:FromAddress": "*"},
        },
    }

    widened = _widened(ALLOW_READS, sending)

    assert widened == [
        ALLOW_READS,
        {
            "Sid": "SendEmail",
            "Effect": "Allow",
            "Action": ["ses:SendEmail"],
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": "us-east-1"}},
        },
    ]


def test_what_a_statement_allows_beside_mail_keeps_its_resource_and_condition() -> None:
    mixed = {
        "Sid": "Mail",
        "Effect": "Allow",
        "Action": ["ses:SendEmail", "ses:GetEmailIdentity"],
        "Resource": "arn:one",
        "Condition": {"StringEquals": {"ses:FromAddress": "a@example.org"}},
    }

    assert _widened(mixed) == [
        {**mixed, "Action": ["ses:GetEmailIdentity"]},
        {"Sid": "MailSendEmail", "Effect": "Allow", "Action": ["ses:SendEmail"], "Resource": "*"},
    ]


@pytest.mark.parametrize(
    ("single", "batch"),
    [
        ("sns:Publish", "sns:PublishBatch"),
        ("sqs:SendMessage", "sqs:SendMessageBatch"),
        ("sqs:DeleteMessage", "sqs:DeleteMessageBatch"),
        ("sqs:ChangeMessageVisibility", "sqs:ChangeMessageVisibilityBatch"),
    ],
)
def test_a_single_action_gets_its_batch_beside_it_on_the_same_resource(single: str, batch: str) -> None:
    statement = {"Sid": "One", "Effect": "Allow", "Action": single, "Resource": "arn:one"}

    assert _widened(statement) == [{**statement, "Action": [single, batch]}]
    assert _widened({**statement, "Action": [single, batch]}) == [{**statement, "Action": [single, batch]}]


def test_a_denied_action_gets_no_batch() -> None:
    statement = {"Effect": "Deny", "Action": ["sns:Publish"], "Resource": "*"}

    assert _widened(statement) == [statement]


def test_only_the_deny_of_plain_http_is_dropped() -> None:
    plain_http = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": "*",
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    old_tls = {**plain_http, "Condition": {"NumericLessThan": {"s3:TlsVersion": "1.2"}}}
    both = {**plain_http, "Condition": {"Bool": {"aws:SecureTransport": "false", "aws:ViaAWSService": "false"}}}
    allow = {**plain_http, "Effect": "Allow"}

    assert _widened(plain_http, old_tls, both, allow, kind=Kind.RESOURCE) == [old_tls, both, allow]
    assert widen(_document(plain_http), Kind.RESOURCE).document == ""
    assert _widened(plain_http, kind=Kind.TRUST) == [plain_http]


def test_a_trust_policy_loses_its_source_conditions_and_no_other() -> None:
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"Service": "ecs-tasks.amazonaws.com"},
        "Condition": {
            "StringEquals": {"aws:SourceAccount": "1", "sts:ExternalId": "x"},
            "ArnLike": {"aws:SourceArn": "arn:aws:ecs:us-east-1:1:*"},
        },
    }

    assert _widened(trust, kind=Kind.TRUST) == [
        {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "ecs-tasks.amazonaws.com"},
            "Condition": {"StringEquals": {"sts:ExternalId": "x"}},
        }
    ]


def test_who_may_use_a_resource_keeps_its_source_conditions_and_gets_no_batch() -> None:
    let_in = {
        "Sid": "AllowBookingEvents",
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": "arn:queue",
        "Condition": {"ArnEquals": {"aws:SourceArn": "arn:topic"}, "StringEquals": {"aws:SourceAccount": "1"}},
    }

    assert _widened(let_in, kind=Kind.RESOURCE) == [let_in]


def test_version_and_id_of_a_widened_document_stay() -> None:
    statement = {"Effect": "Allow", "Action": ["sns:Publish"], "Resource": "arn:topic"}

    widened = json.loads(widen(_document(statement), Kind.IDENTITY).document)

    assert (widened["Version"], widened["Id"]) == ("2012-10-17", "mine")


def test_a_single_statement_without_a_list_is_widened_too() -> None:
    statement = {"Effect": "Allow", "Action": "sns:Publish", "Resource": "arn:topic"}
    document = json.dumps({"Version": "2012-10-17", "Statement": statement})

    assert json.loads(widen(document, Kind.IDENTITY).document)["Statement"] == [
        {**statement, "Action": ["sns:Publish", "sns:PublishBatch"]}
    ]
