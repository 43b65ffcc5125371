"""The OpenAPI description of a served model: exactly the requests that it accepts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful import __version__
from heedful.server.requests import MOST_CHARACTERS, MOST_TEXTS, VISIBLE

Schema = dict[str, Any]
TEXT: Schema = {"type": "string", "minLength": 1, "maxLength": MOST_CHARACTERS, "pattern": VISIBLE}
ERROR: Schema = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
REASONS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    403: "The request comes from another site, or is addressed to another host.",
    413: "The body, a text or the number of texts is too large.",
    415: "The body is not declared as JSON.",
    422: "The request has another form, or a text is empty.",
    503: "Too many texts are waiting; try again after Retry-After seconds.",
}


def describe_answer(kind: str, labels: Sequence[str]) -> Schema:
    """Return what is answered for one text: a number, any number of labels, or one label."""
    if kind == "number":
        return closed_object({"value": {"type": "number"}})
    label: Schema = {"type": "string", "enum": list(labels)} if labels else {"type": "string"}
    probabilities: Schema = {"type": "object", "additionalProperties": SHARE}
    if kind == "labels":
        return closed_object({"labels": {"type": "array", "items": label}, "probabilities": probabilities})
    return closed_object({"label": label, "confidence": SHARE, "probabilities": probabilities})


def describe_api(answer: Schema, pairs: bool | None, *, token: bool) -> Schema:
    """Return the description; `pairs` is whether the model reads pairs, None if it takes both."""
    several = closed_object({"predictions": {"type": "array", "items": answer}})
    predict = {
        "operationId": "predict",
        "summary": "Label a text, a pair of texts, or a list of either.",
        "requestBody": {"required": True, "content": as_json({"oneOf": request_forms(pairs)})},
        "responses": {
            "200": {"description": "The labels.", "content": as_json({"anyOf": [answer, several]})},
            **errors(400, 401, 403, 413, 415, 422, 503),
        },
    }
    described: Schema = {
        "openapi": "3.1.0",
        "info": {"title": "A model served by heedful", "version": __version__},
        "paths": {
            "/predict": {"post": predict},
            "/health": {"get": get("health", "Whether the server works.", [])},
            "/model": {"get": get("model", "The labels, scores, checks and card of the model.")},
            "/metrics": {"get": get("metrics", "Counters for Prometheus.", media="text/plain")},
            "/openapi.json": {"get": get("openapi", "This description.")},
        },
        "components": {"securitySchemes": {}},
    }
    if token:
        described["components"]["securitySchemes"]["token"] = {"type": "http", "scheme": "bearer"}
        described["security"] = [{"token": []}]
    return described


def request_forms(pairs: bool | None) -> list[Schema]:
    """Return the bodies that a model takes: a text, or a pair, and a list."""
    couple = {"type": "array", "prefixItems": [TEXT, TEXT], "items": False, "minItems": 2}
    items = TEXT if pairs is False else couple if pairs else {"anyOf": [TEXT, couple]}
    forms = [] if pairs else [closed_object({"text": TEXT})]
    forms += [] if pairs is False else [closed_object({"text": TEXT, "pair": TEXT})]
    texts = {"type": "array", "minItems": 1, "maxItems": MOST_TEXTS, "items": items}
    return [*forms, closed_object({"texts": texts})]


def closed_object(properties: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "required": list(properties),
        "properties": dict(properties),
        "additionalProperties": False,
    }


def as_json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def errors(*statuses: int) -> Schema:
    return {str(one): {"description": REASONS[one], "content": as_json(ERROR)} for one in statuses}


def get(
    name: str, summary: str, security: list[Any] | None = None, media: str = "application/json"
) -> Schema:
    schema: Schema = {"type": "object"} if media == "application/json" else {"type": "string"}
    operation: Schema = {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": "Found.", "content": {media: {"schema": schema}}},
            **errors(403, *(() if security == [] else (401,))),
        },
    }
    return operation if security is None else {**operation, "security": security}
