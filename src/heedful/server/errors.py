"""Errors of the server: always JSON of one form, `{"error": {"code": "...", "message": "..."}}`."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from heedful.errors import UserError, one_line
from heedful.logs import warn

CODES = {413: "too_large", 422: "unprocessable"}
"""Where the phrase for a status depends on the version of Python."""


def error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    code = CODES.get(status) or HTTPStatus(status).phrase.lower().replace(" ", "_")
    content = {"error": {"code": code, "message": one_line(message)}}
    return JSONResponse(content, status, headers=dict(headers or {}))


async def answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, error.detail, error.headers)


async def answer_user_error(request: Request, error: Exception) -> Response:
    """Answer a mistake in what was sent, such as a text without tokens."""
    return error_response(422, str(error))


async def answer_failure(request: Request, error: Exception) -> Response:
    """Answer a mistake of ours, whose details stay here."""
    warn(f"{request.method} {request.url.path} failed: {one_line(f'{type(error).__name__}: {error}')}")
    return error_response(500, "the server failed on this request; its log says why")


HANDLERS = {
    HTTPException: answer_http_error,
    UserError: answer_user_error,
    Exception: answer_failure,
}
