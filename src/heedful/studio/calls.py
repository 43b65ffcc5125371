"""Requests of pages to the worker: JSON in, JSON or bytes out, with progress where the page shows it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from heedful.errors import UserError
from heedful.server.errors import HANDLERS, error_response
from heedful.server.requests import read_body
from heedful.studio.worker import CanceledError, Result, Worker, WorkerDiedError, WorkerError

MOST_BYTES = 8 << 20
"""The largest body of a request that is computed."""
CLIENT, PROGRESS = "x-heedful-client", "application/x-ndjson"
"""The header that names a page in a tab, and the type of an answer that begins with lines of progress."""
STATUS_CANCELED, STATUS_FAILED, STATUS_DIED = 409, 500, 503


async def read_params(request: Request, limit: int = MOST_BYTES) -> dict[str, Any]:
    """Return the JSON object that a page sent: the body of a POST, or the query of a GET."""
    if request.method != "POST":
        return dict(request.query_params)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be JSON, with Content-Type: application/json")
    try:
        params = json.loads(await read_body(request, limit))
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    if not isinstance(params, dict):
        raise HTTPException(422, "the body is not a JSON object")
    return params


def work_route(path: str, target: str, group: str | None = None) -> Route:
    """Return a route that runs a function of the worker with what the page sent, and sends its result.

    `target` is `heedful.studio.work.MODULE:function`. A newer request of the same tab replaces an older one
    for the same function, or for the same `group`.
    """

    async def endpoint(request: Request) -> Response:
        params = await read_params(request)
        worker: Worker = request.app.state.worker
        client = request.headers.get(CLIENT, "")[:100]

        def call(progress: Callable[[float, str], None] | None = None) -> Awaitable[Result]:
            return worker.call(target, params, progress=progress, client=client, group=group)

        if PROGRESS in request.headers.get("accept", ""):
            return StreamingResponse(stream_result(call), media_type=PROGRESS)
        return make_response(await call())

    return Route(path, endpoint, methods=["GET", "POST"])


def make_response(result: Result) -> Response:
    if isinstance(result, bytes):
        return Response(result, media_type="application/octet-stream")
    return JSONResponse(result)


async def stream_result(
    call: Callable[[Callable[[float, str], None]], Awaitable[Result]],
) -> AsyncIterator[bytes]:
    """Yield lines `{"progress": share, "message": text}`, and then one with the result.

    That is `{"result": {...}}`, `{"error": {...}}`, or `{"bytes": n}`, which n bytes follow.
    """
    lines: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def report(share: float, message: str) -> None:
        lines.put_nowait({"progress": share, "message": message})

    working = asyncio.ensure_future(call(report))
    working.add_done_callback(lambda _: lines.put_nowait(None))
    try:
        while (line := await lines.get()) is not None:
            yield json.dumps(line).encode() + b"\n"
    finally:
        working.cancel()  # the page has gone; of work that is done this does nothing
    try:
        result = working.result()
    except (CanceledError, WorkerError, UserError) as error:
        content = bytes((await answer_worker_error(None, error)).body)
        yield content + b"\n"
        return
    if isinstance(result, bytes):
        yield json.dumps({"bytes": len(result)}).encode() + b"\n" + result
    else:
        yield json.dumps({"result": result}).encode() + b"\n"


async def answer_worker_error(request: Request | None, error: Exception) -> Response:
    """Answer what went wrong in the worker, in the form of the server's errors."""
    if isinstance(error, UserError):
        return error_response(422, str(error))
    if isinstance(error, CanceledError):
        return error_response(STATUS_CANCELED, "a newer request has replaced this one")
    status = STATUS_DIED if isinstance(error, WorkerDiedError) else STATUS_FAILED
    return error_response(status, str(error))


ERROR_HANDLERS = {**HANDLERS, CanceledError: answer_worker_error, WorkerError: answer_worker_error}
