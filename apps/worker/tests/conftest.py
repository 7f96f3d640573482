"""The worker's function as Lambda loads it."""

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

import boto3
import pytest

LoadFunction = Callable[[Mapping[str, str]], ModuleType]


@pytest.fixture
def load_function(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadFunction]:
    """Loads the entry point under an environment, and no other, as a fresh process would."""
    loaded: list[ModuleType] = []

    def load(environment: Mapping[str, str]) -> ModuleType:
        for name in list(os.environ):
            if name.startswith(("AWS_", "POWERTOOLS_")):
                monkeypatch.delenv(name)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        # boto3's own session keeps the credentials of whoever made the first client.
        monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
        sys.modules.pop("minitickets_worker.batch", None)
        loaded.append(importlib.import_module("minitickets_worker.batch"))
        return loaded[-1]

    yield load
    sys.modules.pop("minitickets_worker.batch", None)
    for module in loaded:
        for client in (module._clients.dynamodb, module._clients.ses, module._clients.sqs):
            client.close()
