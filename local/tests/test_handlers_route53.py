"""Records of a hosted zone: made, changed, taken away, and never taken over from somebody else."""

import secrets
from typing import Any

import pytest

from local.handlers.handler import HandlerError
from tests.fixtures.handled_stage import HandledStage

pytestmark = pytest.mark.integration

RECORD = "route53/record:Record"


@pytest.fixture
def zone(stage: HandledStage) -> str:
    """A hosted zone's id."""
    reference = secrets.token_hex(4)
    made = stage.aws("route53").create_hosted_zone(Name=f"{reference}.example.org", CallerReference=reference)
    return str(made["HostedZone"]["Id"]).removeprefix("/hostedzone/")


def _alias(zone: str, target: str) -> dict[str, Any]:
    aliases = [{"name": target, "zoneId": "Z35SXDOTRQ7X7K", "evaluateTargetHealth": False}]
    return {"zoneId": zone, "name": "tickets.example.org", "type": "A", "aliases": aliases, "allowOverwrite": False}


def _targets(stage: HandledStage, zone: str) -> list[str]:
    listed = stage.aws("route53").list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]
    return [entry["AliasTarget"]["DNSName"].rstrip(".") for entry in listed if "AliasTarget" in entry]


def test_an_alias_follows_the_load_balancer_and_goes_with_it(stage: HandledStage, zone: str) -> None:
    made = stage.create(RECORD, "api", **_alias(zone, "one.example.internal"))
    assert (made["fqdn"], _targets(stage, zone)) == ("tickets.example.org", ["one.example.internal"])

    stage.update(RECORD, "api", **_alias(zone, "two.example.internal"))
    assert _targets(stage, zone) == ["two.example.internal"]

    stage.delete(RECORD, "api")
    assert _targets(stage, zone) == []


def test_a_record_that_is_there_is_refused_and_adopted_only_when_it_was_forgotten(
    stage: HandledStage, zone: str
) -> None:
    stage.create(RECORD, "api", **_alias(zone, "one.example.internal"))

    with pytest.raises(HandlerError, match="InvalidChangeBatch: Tried to create resource record set"):
        stage.create(RECORD, "again", **_alias(zone, "two.example.internal"))
    stage.forget(RECORD, "api")
    assert stage.adopt(RECORD, "api", **_alias(zone, "one.example.internal")) is not None


def test_a_zone_that_is_not_there_is_refused(stage: HandledStage) -> None:
    with pytest.raises(HandlerError, match="NoSuchHostedZone"):
        stage.create(RECORD, "api", **_alias("Z0NOWHERE", "one.example.internal"))
