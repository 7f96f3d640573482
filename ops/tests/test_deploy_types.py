"""The resource types and inputs that deploying knows by name are those of the pinned AWS provider."""

import importlib.util
import re
import runpy
from pathlib import Path

import pytest

from ops.aws_look_ups import LOOK_UPS
from ops.deploy.import_ids import IMPORT_IDS, TAKEN_OVER
from ops.deploy.plan import _GOES_WITH_DATA, _LASTING, _SLOW_TO_GO
from ops.deploy.protection import _GUARDS, _Guard

pytestmark = pytest.mark.unit

_FOUND_AGAIN = {*IMPORT_IDS, *LOOK_UPS, *TAKEN_OVER}
_TYPES = {*_LASTING, *_FOUND_AGAIN, *(kind for kind, _ in _GOES_WITH_DATA), *_SLOW_TO_GO}
_PROGRAM = runpy.run_path(str(Path(__file__).resolve().parents[2] / "infra" / "tests" / "test_infra_switches.py"))


def _source(kind: str) -> str:
    found = importlib.util.find_spec("pulumi_aws")
    assert found is not None
    assert found.origin is not None
    module, _, rest = kind.removeprefix("aws:").partition("/")
    file = re.sub(r"(?<=[a-z0-9])[A-Z]", lambda capital: f"_{capital[0].lower()}", rest.partition(":")[0])
    folder = Path(found.origin).parent / ("lambda_" if module == "lambda" else module)
    return (folder / f"{file}.py").read_text()


@pytest.mark.parametrize("kind", sorted(_TYPES))
def test_the_provider_has_the_type(kind: str) -> None:
    assert f"'{kind}'" in _source(kind)


@pytest.mark.parametrize("guard", _GUARDS, ids=lambda guard: f"{guard.kind} {guard.name}")
def test_the_provider_has_the_input_that_protects(guard: _Guard) -> None:
    assert f'@pulumi.getter(name="{guard.name}")' in _source(guard.kind)


def test_whatever_the_program_makes_is_found_again_after_a_killed_run() -> None:
    assert {f"aws:{kind}" for kind in _PROGRAM["TYPES"]} <= _FOUND_AGAIN
    assert not IMPORT_IDS.keys() & LOOK_UPS.keys()
