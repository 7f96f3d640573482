"""The registry against the provider's own SDK: every type and every replacing input that it names exists."""

import importlib
import inspect
import keyword
import re
import shutil

import pytest

from local.handlers.handler import HandlerError
from local.handlers.refusals import refusals
from local.handlers.registry import HANDLERS, REMEMBERED_ONLY

# The SDK's own modules name what they deprecate while they are imported.
pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.mark.parametrize("resource_type", sorted(HANDLERS))
def test_a_handled_type_and_its_replacing_inputs_exist_in_the_provider(resource_type: str) -> None:
    package, _, name = resource_type.partition(":")[2].replace("/", ":").split(":")
    module = importlib.import_module(
        f"pulumi_aws.{package}_" if keyword.iskeyword(package) else f"pulumi_aws.{package}"
    )
    parameters = inspect.signature(getattr(module, name)._internal_init).parameters
    inputs = {_camel_case(parameter) for parameter in parameters}

    missing = HANDLERS[resource_type].replaced_by - inputs - _FORMER_INPUTS - {"region"}
    assert missing == set()
    assert "region" in HANDLERS[resource_type].replaced_by


# Inputs of earlier versions of the provider, kept for a program that was written for one.
_FORMER_INPUTS = {"securityGroupNames", "vpc", "iamRole", "globalReplicationGroupId"}


def test_what_is_only_remembered_belongs_to_types_that_there_are() -> None:
    for resource_type in REMEMBERED_ONLY:
        prefix = resource_type.removesuffix("*")
        assert any(handled.startswith(prefix) for handled in HANDLERS), resource_type


def _camel_case(name: str) -> str:
    return re.sub(r"_(.)", lambda match: match[1].upper(), name)


def test_a_full_disk_is_a_refusal_in_one_line_however_many_files_failed() -> None:
    reason = "[Errno 28] No space left on device: '/cache/1' -> '/state/1'"

    with pytest.raises(HandlerError) as refused, refusals():
        raise shutil.Error([("/cache/1", "/state/1", reason), ("/cache/2", "/state/2", reason)])

    assert str(refused.value) == "this machine: [Errno 28] No space left on device: /state/1 (and 1 more)"
    with pytest.raises(HandlerError, match="this machine: Read-only file system: /state/3"), refusals():
        raise OSError(30, "Read-only file system", "/state/3")
