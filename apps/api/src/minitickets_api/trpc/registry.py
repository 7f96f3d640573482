"""The procedures that exist: typed functions, found by name. Protocol and OpenAPI description both read this."""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from minitickets_api.refusals import Code, Refusal

C = TypeVar("C")
I = TypeVar("I", bound=BaseModel)  # noqa: E741 - read as "input", beside C and O
O = TypeVar("O", bound=BaseModel)  # noqa: E741 - as "output"

_SHOWN_PROBLEMS = 5


class Input(BaseModel):
    """What a procedure takes. Nothing is coerced, and what nobody asked for is refused, so that a typo is seen."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=False,
        hide_input_in_errors=True,
    )


class NoInput(Input):
    """For procedures that take nothing."""


class Output(BaseModel):
    """What a procedure returns, in camel case on the wire."""

    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, from_attributes=True)


class Kind(Enum):
    """A query changes nothing and comes by GET; a mutation comes by POST."""

    QUERY = "GET"
    MUTATION = "POST"


@dataclass(frozen=True, kw_only=True)
class Procedure(Generic[C]):
    """One procedure. ``session``: whether it needs a signed-in person, checked before its input is looked at."""

    name: str
    kind: Kind
    summary: str
    session: bool
    input: type[BaseModel]
    output: type[BaseModel]
    handler: Callable[[C, Any], Awaitable[BaseModel]]

    def read(self, value: object) -> BaseModel:
        """``value`` as this procedure's input. Raises Refusal (BAD_REQUEST), which names the field, never its value."""
        if value is None:  # tRPC leaves an undefined input out
            value = {}
        if not isinstance(value, dict):
            raise Refusal(Code.BAD_REQUEST, "The input must be a JSON object.")
        try:
            return self.input.model_validate(value)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)[:_SHOWN_PROBLEMS]
            issues = [
                {
                    # An unknown field's name is the client's own text: its place is told, its name is not repeated.
                    "path": ""
                    if problem["type"] == "extra_forbidden"
                    else ".".join(str(part) for part in problem["loc"]),
                    "message": "holds a field that does not exist"
                    if problem["type"] == "extra_forbidden"
                    else problem["msg"].removeprefix("Value error, "),
                }
                for problem in problems
            ]
            told = "; ".join(f"{issue['path'] or 'input'}: {issue['message']}" for issue in issues)
            raise Refusal(Code.BAD_REQUEST, told, issues=issues) from None


class Registry(Generic[C]):
    """Procedures by name. ``C`` is what each is called with: who asks, and the services it may use."""

    def __init__(self) -> None:
        self._procedures: dict[str, Procedure[C]] = {}

    def query(
        self, name: str, *, session: bool
    ) -> Callable[[Callable[[C, I], Awaitable[O]]], Callable[[C, I], Awaitable[O]]]:
        """Register the decorated function as a query."""
        return self._register(name, Kind.QUERY, session=session)

    def mutation(
        self, name: str, *, session: bool
    ) -> Callable[[Callable[[C, I], Awaitable[O]]], Callable[[C, I], Awaitable[O]]]:
        """Register the decorated function as a mutation."""
        return self._register(name, Kind.MUTATION, session=session)

    def find(self, name: str) -> Procedure[C]:
        """The procedure of that name. Raises Refusal (NOT_FOUND)."""
        procedure = self._procedures.get(name)
        if procedure is None:
            raise Refusal(Code.NOT_FOUND, "No such procedure. /openapi.json lists those that there are.")
        return procedure

    def __contains__(self, name: str) -> bool:
        return name in self._procedures

    def __iter__(self) -> Iterator[Procedure[C]]:
        return iter(self._procedures.values())

    def _register(
        self, name: str, kind: Kind, *, session: bool
    ) -> Callable[[Callable[[C, I], Awaitable[O]]], Callable[[C, I], Awaitable[O]]]:
        def register(handler: Callable[[C, I], Awaitable[O]]) -> Callable[[C, I], Awaitable[O]]:
            if name in self._procedures:
                raise ValueError(f"procedure {name} is registered twice")
            hints = get_type_hints(handler)
            takes = list(inspect.signature(handler).parameters)[1]
            self._procedures[name] = Procedure(
                name=name,
                kind=kind,
                summary=inspect.cleandoc(handler.__doc__ or ""),
                session=session,
                input=hints[takes],
                output=hints["return"],
                handler=handler,
            )
            return handler

        return register
