"""Forms as browsers post them: read, checked by the procedure's own model, shown again with what is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ValidationError
from starlette.requests import Request

from minitickets_api.refusals import Code, Refusal
from minitickets_api.request_body import read_body

MAX_BYTES = 64 * 1024
# A hall has 5,000 seats, and nothing keeps a browser without script from ticking all of them.
_MAX_FIELDS = 6000

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class Form:
    """What somebody filled in, and what is wrong with it.

    ``problems`` says by field what to do; under the empty name stands what belongs to no field.
    """

    values: Mapping[str, Sequence[str]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """The field's first value; empty if it is absent."""
        return next(iter(self.values.get(name, ())), "")

    def texts(self, name: str) -> list[str]:
        """All values of a field that may come several times."""
        return list(self.values.get(name, ()))

    def refused(self, reason: Refusal, *, fields: Sequence[str] = ()) -> "Form":
        """This form with the refusal's problems: each beside its field if that is one of ``fields``, else on top."""
        problems: dict[str, str] = {}
        issues = reason.details.get("issues")
        for issue in issues if isinstance(issues, list) else []:
            path = str(issue["path"]).partition(".")[0]
            problems.setdefault(path if path in fields else "", _sentence(str(issue["message"])))
        return Form(values=self.values, problems=problems or {"": reason.message})


def read_input(model: type[M], given: Mapping[str, object]) -> M:
    """``given``, by the model's names on the wire, as a procedure's input.

    Raises Refusal (BAD_REQUEST) with an issue for each field, in words for the person who filled it in.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        issues: dict[str, str] = {}
        for problem in error.errors(include_url=False, include_input=False):
            issues.setdefault(str(problem["loc"][0]) if problem["loc"] else "", _advice(problem))
        raise Refusal(
            Code.BAD_REQUEST,
            "Something needs another look.",
            issues=[{"path": path, "message": message} for path, message in issues.items()],
        ) from None


async def read_form(request: Request) -> Form:
    """The form that a request posts. Raises Refusal: PAYLOAD_TOO_LARGE, UNSUPPORTED_MEDIA_TYPE, BAD_REQUEST."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/x-www-form-urlencoded":
        raise Refusal(Code.UNSUPPORTED_MEDIA_TYPE, "This page takes forms alone (application/x-www-form-urlencoded).")
    body = await read_body(request.headers, request.receive, max_bytes=MAX_BYTES)
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, encoding="utf-8", errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:
        raise Refusal(Code.BAD_REQUEST, "The form cannot be read. Load its page again and send it once more.") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        if "\x00" in name or "\x00" in value:  # PostgreSQL cannot keep it
            raise Refusal(Code.BAD_REQUEST, "The form holds a NUL character.")
        values.setdefault(name, []).append(value)
    return Form(values=values)


def _advice(problem: Mapping[str, Any]) -> str:
    """A sentence of pydantic's about a field, as a person would say it."""
    limits = problem.get("ctx", {})
    match problem["type"]:
        case "missing":
            return "Fill this in."
        case "string_too_short":
            return (
                "Fill this in." if limits.get("min_length") == 1 else f"Use at least {limits['min_length']} characters."
            )
        case "string_too_long":
            return f"Use at most {limits['max_length']} characters."
        case "string_pattern_mismatch":
            # The pattern is for programs; a person did not type what has one.
            return "This form is not whole. Load its page again and send it once more."
        case "too_short":
            return f"Choose at least {limits['min_length']}."
        case "too_long":
            return f"Choose at most {limits['max_length']}."
        case _:
            return _sentence(str(problem["msg"]).removeprefix("Value error, "))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")
