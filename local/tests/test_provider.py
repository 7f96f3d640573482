"""The provider's verbs over a store: handlers act, the store remembers, resuming follows dependencies."""

import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

from local.handlers.handler import Handler, HandlerError, Inputs, Made, Outputs
from local.processes import ProcessError
from local.provider import Declared, Provider
from local.resource_store import Key, ResourceStore, StoredResource

pytestmark = pytest.mark.unit

THING = "test:thing:Thing"


class Thing(Handler):
    """Things exist by name; what happens to them is written down."""

    resource_type = THING
    events: ClassVar[list[str]] = []
    exists: ClassVar[set[str]] = set()
    broken: ClassVar[set[str]] = set()

    def create(self, name: str, inputs: Inputs) -> Made:
        if inputs["name"] in self.exists:
            raise HandlerError(f"AlreadyExists: {inputs['name']}")
        self.exists.add(inputs["name"])
        return Made(inputs["name"], {**inputs, "arn": f"arn:{inputs['name']}"})

    def read(self, id: str, inputs: Inputs) -> Made | None:
        name = id or inputs["name"]
        return Made(name, {"name": name, "size": 0.0}) if name in self.exists else None

    def update(self, id: str, old: Outputs, new: Inputs) -> Outputs:
        self.events.append(f"update {id} {old.get('size')} -> {new.get('size')}")
        return dict(new)

    def delete(self, id: str, outputs: Outputs) -> None:
        if id in self.broken:
            raise HandlerError("DependencyViolation: in use")
        self.exists.discard(id)

    def resume(self, id: str, outputs: Outputs) -> None:
        if id in self.broken:
            raise ProcessError("no such file")
        self.events.append(f"resume {id}")


class FakePlatform:
    def say(self, text: str) -> None:
        """Nobody listens."""


@pytest.fixture
def store(tmp_path: Path) -> ResourceStore:
    return ResourceStore(tmp_path / "resources.json")


@pytest.fixture
def provider(store: ResourceStore) -> Provider:
    Thing.events.clear()
    Thing.exists.clear()
    Thing.broken.clear()
    platform: Any = FakePlatform()
    return Provider(platform, store, handlers={THING: Thing}, look_up=lambda *_: {})


def _declared(name: str, **inputs: object) -> Declared:
    return Declared(key=Key(type=THING, name=name), inputs={"name": name, **inputs})


def test_a_created_resource_is_on_record_with_its_outputs(provider: Provider, store: ResourceStore) -> None:
    provider.create(_declared("a"))

    kept = store.get(Key(type=THING, name="a"))
    assert kept is not None
    assert (kept.id, kept.outputs["arn"]) == ("a", "arn:a")


def test_a_type_without_a_handler_is_an_error_that_names_it(provider: Provider) -> None:
    with pytest.raises(HandlerError, match=r"aws:kms/key:Key \(mine\)"):
        provider.create(Declared(key=Key(type="aws:kms/key:Key", name="mine"), inputs={}))


def test_a_refused_create_leaves_nothing_on_record(provider: Provider, store: ResourceStore) -> None:
    Thing.exists.add("a")

    with pytest.raises(HandlerError, match="AlreadyExists"):
        provider.create(_declared("a"))

    assert store.all() == []


def test_what_a_killed_platform_made_is_adopted_and_brought_up_to_date(
    provider: Provider, store: ResourceStore
) -> None:
    Thing.exists.add("a")

    adopted = provider.adopt(_declared("a", size=3.0))

    assert adopted is not None
    assert Thing.events == ["update a 0.0 -> 3.0"]
    assert store.all() == [adopted]


def test_nothing_is_adopted_where_nothing_is(provider: Provider, store: ResourceStore) -> None:
    assert provider.adopt(_declared("a")) is None
    assert store.all() == []


def test_a_refused_delete_keeps_the_resource_on_record(provider: Provider, store: ResourceStore) -> None:
    provider.create(_declared("a"))
    Thing.broken.add("a")

    with pytest.raises(HandlerError, match="DependencyViolation"):
        provider.delete(Key(type=THING, name="a"))

    assert [resource.id for resource in store.all()] == ["a"]


def test_a_protected_resource_is_not_deleted(provider: Provider) -> None:
    provider.create(Declared(key=Key(type=THING, name="a"), inputs={"name": "a"}, is_protected=True))

    with pytest.raises(HandlerError, match="protected"):
        provider.delete(Key(type=THING, name="a"))
    assert Thing.exists == {"a"}


def test_resources_resume_after_what_they_depend_on_and_beside_what_they_do_not(
    provider: Provider, store: ResourceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, service, cache = (Key(type=THING, name=name) for name in ("database", "service", "cache"))
    store.put(StoredResource(key=database, id="database", inputs={}, outputs={}))
    store.put(StoredResource(key=service, id="service", inputs={}, outputs={}, depends_on=(database,)))
    store.put(StoredResource(key=cache, id="cache", inputs={}, outputs={}))
    cache_is_up = threading.Event()

    def resume(self: Thing, id: str, outputs: Outputs) -> None:
        if id == "database":  # slow: it ends only after something that need not wait for it
            assert cache_is_up.wait(5)
        self.events.append(id)
        if id == "cache":
            cache_is_up.set()

    monkeypatch.setattr(Thing, "resume", resume)

    provider.resume()

    assert Thing.events == ["cache", "database", "service"]


def test_more_resources_than_threads_resume_though_each_waits_for_the_one_before(
    provider: Provider, store: ResourceStore
) -> None:
    keys = [Key(type=THING, name=str(number)) for number in range(40)]
    for number, key in enumerate(keys):
        store.put(
            StoredResource(
                key=key, id=key.name, inputs={}, outputs={}, depends_on=tuple(keys[max(0, number - 1) : number])
            )
        )

    provider.resume()

    assert Thing.events == [f"resume {number}" for number in range(40)]


def test_what_cannot_be_resumed_is_named_and_nothing_waits_for_it_for_ever(
    provider: Provider, store: ResourceStore
) -> None:
    first, second = Key(type=THING, name="first"), Key(type=THING, name="second")
    store.put(StoredResource(key=first, id="first", inputs={}, outputs={}))
    store.put(StoredResource(key=second, id="second", inputs={}, outputs={}, depends_on=(first,)))
    Thing.broken.add("first")

    with pytest.raises(ProcessError, match=r"first cannot be resumed: no such file"):
        provider.resume()


def test_two_drivers_cannot_change_one_resource_at_a_time(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.create(_declared("a"))
    entered, leave = threading.Event(), threading.Event()

    def slow_update(self: Thing, id: str, old: Outputs, new: Inputs) -> Outputs:
        entered.set()
        assert leave.wait(5)
        return dict(new)

    monkeypatch.setattr(Thing, "update", slow_update)
    first = threading.Thread(target=provider.update, args=(_declared("a", size=1.0),))
    first.start()
    assert entered.wait(5)

    with pytest.raises(HandlerError, match="another driver"):
        provider.update(_declared("a", size=2.0))

    leave.set()
    first.join(5)
