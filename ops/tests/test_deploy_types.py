"""The resource types and inputs that deploying knows by name are those of the pinned AWS provider."""

import importlib.util
import re
from pathlib import Path

import pytest

from ops.deploy.interrupted import _IMPORT_IDS, _SECRET, _SECURITY_GROUP
from ops.deploy.plan import _GOES_WITH_DATA, _LASTING, _SLOW_TO_GO
from ops.deploy.protection import _GUARDS, _Guard

pytestmark = pytest.mark.unit

_TYPES = {*_LASTING, *_IMPORT_IDS, *(kind for kind, _ in _GOES_WITH_DATA), _SECRET, _SECURITY_GROUP, *_SLOW_TO_GO}


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
