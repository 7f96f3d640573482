"""The driver's small engine, its diff and its reading of the stack's configuration, without a platform."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from local.control_client import RefusedError
from local.drivers.diff import difference
from local.drivers.small_engine import Options, RegistrationError, SmallEngine
from local.drivers.stack_config import StackConfigError, load_stack_config
from local.resource_store import Key, ResourceStore, StoredResource

pytestmark = pytest.mark.unit

QUEUE = "aws:sqs/queue:Queue"
JOBS = Key(type=QUEUE, name="jobs")
DLQ = Key(type=QUEUE, name="jobs-dlq")


class FakePlatform:
    """The control API over a dictionary. ``refused`` are creates and deletes that AWS refuses, by name."""

    def __init__(self) -> None:
        self.resources: dict[Key, StoredResource] = {}
        self.calls: list[tuple[str, str]] = []
        self.refused: set[tuple[str, str]] = set()
        self.existing: dict[str, Mapping[str, Any]] = {}

    def get(self, path: str, **_: str) -> Any:
        if path == "/types":
            return {QUEUE: ["name"]}
        assert path == "/resources"
        return [resource.to_json() for resource in self.resources.values()]

    def post(self, path: str, document: Any, *, seconds: float = 1) -> Any:
        verb = path.rpartition("/")[2]
        name = document["name"]
        self.calls.append((verb, name))
        if (verb, name) in self.refused:
            raise RefusedError("AWS says no")
        key = Key(type=document["type"], name=name)
        if verb == "delete":
            del self.resources[key]
            return None
        if verb == "adopt" and name not in self.existing:
            return None
        known = self.resources.get(key)
        self.resources[key] = StoredResource(
            key=key,
            id=f"id-{name}",
            inputs=document["inputs"],
            outputs=document["inputs"],
            depends_on=tuple(Key(type=token, name=other) for token, other in document["dependsOn"]),
            is_protected=document["protect"],
            order=known.order if known else len(self.resources) + 1,
        )
        return self.resources[key].to_json()


@pytest.fixture
def fake() -> FakePlatform:
    return FakePlatform()


def _run(fake: FakePlatform, *declared: tuple[Key, Mapping[str, Any], Options]) -> SmallEngine:
    fake.calls.clear()
    engine = SmallEngine(fake)  # type: ignore[arg-type]  # a fake
    for key, inputs, options in declared:
        engine.register(key, inputs, options)
    engine.prune()
    return engine


def test_what_is_unknown_is_created_and_what_is_unchanged_is_left_alone(fake: FakePlatform) -> None:
    _run(fake, (JOBS, {"name": "jobs"}, Options()))
    assert fake.calls == [("create", "jobs")]

    engine = _run(fake, (JOBS, {"name": "jobs"}, Options()))

    assert fake.calls == []
    assert engine.summary.unchanged == 1


def test_a_changed_input_updates_in_place(fake: FakePlatform) -> None:
    _run(fake, (JOBS, {"name": "jobs", "delaySeconds": 1.0}, Options()))

    _run(fake, (JOBS, {"name": "jobs", "delaySeconds": 2.0}, Options()))

    assert fake.calls == [("update", "jobs")]
    assert fake.resources[JOBS].inputs["delaySeconds"] == 2.0


def test_a_changed_input_that_replaces_deletes_and_creates(fake: FakePlatform) -> None:
    _run(fake, (JOBS, {"name": "jobs"}, Options()))

    engine = _run(fake, (JOBS, {"name": "other"}, Options()))

    assert fake.calls == [("delete", "jobs"), ("create", "jobs")]
    assert engine.summary.replaced == [JOBS]


def test_an_ignored_input_keeps_what_is_stored(fake: FakePlatform) -> None:
    _run(fake, (JOBS, {"name": "jobs", "secret": "first"}, Options()))

    _run(fake, (JOBS, {"name": "jobs", "secret": "second", "delaySeconds": 1.0}, Options(ignore_changes=("secret",))))

    assert fake.resources[JOBS].inputs == {"name": "jobs", "secret": "first", "delaySeconds": 1.0}


def test_what_is_no_longer_declared_goes_newest_first(fake: FakePlatform) -> None:
    _run(fake, (DLQ, {"name": "dlq"}, Options()), (JOBS, {"name": "jobs"}, Options(depends_on=(DLQ,))))

    engine = _run(fake)

    assert fake.calls == [("delete", "jobs"), ("delete", "jobs-dlq")]
    assert engine.summary.deleted == [JOBS, DLQ]


def test_what_exists_without_being_on_record_is_adopted(fake: FakePlatform) -> None:
    fake.refused.add(("create", "jobs"))
    fake.existing["jobs"] = {}

    engine = _run(fake, (JOBS, {"name": "jobs"}, Options()))

    assert fake.calls == [("create", "jobs"), ("adopt", "jobs")]
    assert engine.summary.adopted == 1


def test_a_refusal_names_the_resource_and_what_aws_says(fake: FakePlatform) -> None:
    fake.refused.add(("create", "jobs"))
    engine = SmallEngine(fake)  # type: ignore[arg-type]  # a fake

    with pytest.raises(RegistrationError, match=r"Queue jobs .*AWS says no"):
        engine.register(JOBS, {"name": "jobs"}, Options())

    assert engine.summary.failures == [f"Queue jobs ({QUEUE}): AWS says no"]


def test_a_protected_resource_is_not_replaced(fake: FakePlatform) -> None:
    _run(fake, (JOBS, {"name": "jobs"}, Options(protect=True)))
    engine = SmallEngine(fake)  # type: ignore[arg-type]  # a fake

    with pytest.raises(RegistrationError, match=r"protected.*name"):
        engine.register(JOBS, {"name": "other"}, Options(protect=True))

    assert fake.resources[JOBS].inputs == {"name": "jobs"}


def test_a_resource_that_is_declared_twice_is_refused(fake: FakePlatform) -> None:
    engine = SmallEngine(fake)  # type: ignore[arg-type]  # a fake
    engine.register(JOBS, {"name": "jobs"}, Options())

    with pytest.raises(RegistrationError, match="twice"):
        engine.register(JOBS, {"name": "jobs"}, Options())


@pytest.mark.parametrize(
    ("old", "new", "ignored", "changed"),
    [
        ({"a": 1}, {"a": 1}, [], set()),
        ({"a": 1}, {"a": 2}, [], {"a"}),
        ({"a": 1}, {}, [], {"a"}),
        ({}, {"a": None}, [], {"a"}),
        ({"a": 1}, {"a": 2}, ["a"], set()),
        ({"a": 1}, {}, ["a"], set()),
        ({}, {"a": 2}, ["a"], set()),
        ({"t": {"x": 1, "y": 1}}, {"t": {"x": 2, "y": 1}}, ["t.x"], set()),
        ({"t": {"x": 1, "y": 1}}, {"t": {"x": 2, "y": 2}}, ["t.x"], {"t"}),
        ({"t": {"x": 1}}, {"t": {"x": 2}}, ["t[x]"], set()),
    ],
)
def test_a_difference_is_what_changed_and_is_not_ignored(
    old: dict[str, Any], new: dict[str, Any], ignored: list[str], changed: set[str]
) -> None:
    found = difference(old=old, new=new, ignored=ignored, replaced_by=())

    assert found.changed == changed
    if not changed:
        assert dict(found.inputs) == old


def test_ignoring_a_part_leaves_the_programs_own_inputs_as_they_are() -> None:
    new = {"t": {"x": 2}}

    difference(old={"t": {"x": 1}}, new=new, ignored=["t.x"], replaced_by=())

    assert new == {"t": {"x": 2}}


def _project(tmp_path: Path, *, stage: str) -> Path:
    (tmp_path / "Pulumi.yaml").write_text(
        "name: shop\nconfig:\n"
        "  dataEnabled: {type: boolean, default: true}\n"
        "  sizes: {type: array, default: [1, 2]}\n"
        "  title: plain\n"
        "  required: {type: string}\n"
    )
    (tmp_path / "Pulumi.dev.yaml").write_text(stage)
    return tmp_path


def test_the_stages_file_counts_over_the_projects_defaults_and_what_is_set_over_both(tmp_path: Path) -> None:
    root = _project(
        tmp_path, stage="config:\n  aws:region: us-east-1\n  shop:title: staged\n  shop:dataEnabled: false\n"
    )

    name, config = load_stack_config(root, stage="dev", overrides={"dataEnabled": "true"})

    assert name == "shop"
    assert config == {
        "shop:dataEnabled": "true",
        "shop:sizes": "[1, 2]",
        "shop:title": "staged",
        "aws:region": "us-east-1",
    }


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        ("config:\n  shop:key:\n    secure: v1:abc\n", "encrypted"),
        ("config: [\n", "not valid YAML"),
        ("- a\n", "mapping"),
    ],
)
def test_a_stage_file_that_cannot_be_used_says_why(tmp_path: Path, stage: str, message: str) -> None:
    with pytest.raises(StackConfigError, match=message):
        load_stack_config(_project(tmp_path, stage=stage), stage="dev", overrides={})


def test_a_stage_without_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StackConfigError, match=r"Pulumi\.prod\.yaml"):
        load_stack_config(_project(tmp_path, stage="config: {}\n"), stage="prod", overrides={})


def test_the_store_keeps_order_and_everything_else_over_a_restart(tmp_path: Path) -> None:
    store = ResourceStore(tmp_path / "resources.json")
    store.put(StoredResource(key=DLQ, id="1", inputs={"a": 1.0}, outputs={}))
    store.put(StoredResource(key=JOBS, id="2", inputs={}, outputs={"b": [1]}, depends_on=(DLQ,), is_protected=True))
    store.put(StoredResource(key=DLQ, id="1", inputs={"a": 2.0}, outputs={}))  # changed later, made first

    again = ResourceStore(tmp_path / "resources.json").all()

    assert [resource.key for resource in again] == [DLQ, JOBS]
    assert again == store.all()
    assert again[1].depends_on == (DLQ,)
    assert again[1].is_protected
    assert (tmp_path / "resources.json").stat().st_mode & 0o077 == 0
