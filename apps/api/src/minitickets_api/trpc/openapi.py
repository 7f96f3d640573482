"""An OpenAPI 3.1 description of the procedures, derived from their models."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic.json_schema import models_json_schema

from minitickets_api.refusals import Code
from minitickets_api.trpc.registry import Kind, NoInput, Procedure, Registry

C = TypeVar("C")
_REFERENCE = "#/components/schemas/{model}"


def describe(registry: Registry[C], *, version: str, session_cookie: str) -> dict[str, Any]:
    """The document as JSON-ready values. ``session_cookie`` is the name of the cookie that signs a person in."""
    procedures = list(registry)
    inputs = [(procedure.input, "validation") for procedure in procedures if procedure.input is not NoInput]
    outputs = [(procedure.output, "serialization") for procedure in procedures]
    schemas, definitions = models_json_schema(
        [*dict.fromkeys(inputs), *dict.fromkeys(outputs)],  # type: ignore[list-item] # str is no Literal
        ref_template=_REFERENCE,
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "MiniTickets",
            "version": version,
            "description": "Procedures in tRPC's HTTP format: any tRPC client can call them, also in batches.",
        },
        "paths": {
            f"/trpc/{procedure.name}": {procedure.kind.value.lower(): _operation(procedure, schemas)}
            for procedure in procedures
        },
        "components": {
            "schemas": {**definitions.get("$defs", {}), "Error": _error()},
            "securitySchemes": {"session": {"type": "apiKey", "in": "cookie", "name": session_cookie}},
        },
    }


def _operation(procedure: Procedure[C], schemas: Mapping[Any, Any]) -> dict[str, Any]:
    result = {
        "type": "object",
        "required": ["result"],
        "properties": {
            "result": {
                "type": "object",
                "required": ["data"],
                "properties": {"data": schemas[procedure.output, "serialization"]},
            }
        },
    }
    operation: dict[str, Any] = {
        "operationId": procedure.name,
        "tags": [procedure.name.partition(".")[0]],
        "summary": procedure.summary.partition("\n")[0],
        "description": procedure.summary,
        "responses": {
            "200": {"description": "It was done.", "content": {"application/json": {"schema": result}}},
            "default": {
                "description": "It was refused, and has changed nothing.",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
        "security": [{"session": []}] if procedure.session else [],
    }
    if procedure.input is not NoInput:
        content = {"application/json": {"schema": schemas[procedure.input, "validation"]}}
        required = any(field.is_required() for field in procedure.input.model_fields.values())
        if procedure.kind is Kind.QUERY:
            operation["parameters"] = [{"name": "input", "in": "query", "required": required, "content": content}]
        else:
            operation["requestBody"] = {"required": required, "content": content}
    return operation


def _error() -> dict[str, Any]:
    return {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["message", "code", "data"],
                "properties": {
                    "message": {"type": "string", "description": "What is wrong and what to do, for a person."},
                    "code": {"type": "integer", "description": "JSON-RPC 2.0 number."},
                    "data": {
                        "type": "object",
                        "required": ["code", "httpStatus"],
                        "properties": {
                            "code": {"type": "string", "enum": [code.name for code in Code]},
                            "httpStatus": {"type": "integer"},
                            "path": {"type": "string"},
                            "correlationId": {"type": "string"},
                        },
                    },
                },
            }
        },
    }
