"""What the pinned AWS provider's own types say of a resource: read from its SDK, so that it cannot differ from it."""

import functools
import importlib
import keyword


def takes_tags(token: str) -> bool:
    """Whether the provider's schema has tags for a type such as ``aws:sqs/queue:Queue``."""
    return hasattr(_class_of(token), "tags_all")


@functools.cache
def output_names(token: str) -> frozenset[str]:
    """All outputs of a type, inputs among them, as the engine spells them; empty for a type that the SDK lacks."""
    found = _class_of(token)
    getters = [] if found is None else [value.fget for value in vars(found).values() if isinstance(value, property)]
    return frozenset(getattr(getter, "_pulumi_name", getter.__name__) for getter in getters if getter is not None)


@functools.cache
def _class_of(token: str) -> type | None:
    _, module, name = token.split(":")
    package = module.partition("/")[0]
    package = f"{package}_" if keyword.iskeyword(package) else package
    try:
        found: type | None = getattr(importlib.import_module(f"pulumi_aws.{package}"), name, None)
    except ModuleNotFoundError:
        return None
    return found
