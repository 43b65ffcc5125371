"""The web application of a served model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heedful.inference.predictions import PredictedLabel, PredictedLabels, PredictedNumber
from heedful.options.serve import ServeOptions
from heedful.server.batching import Batcher, QueueFullError
from heedful.server.errors import HANDLERS
from heedful.server.guard import Guard, is_loopback
from heedful.server.openapi import describe_answer, describe_api
from heedful.server.page import HEADERS, PAGE
from heedful.server.requests import parse_items, read_body
from heedful.server.served_model import ServedModel
from heedful.server.statistics import Statistics

WATCH_SECONDS = 1.0
OPEN_PATHS = ("/", "/health")
"""Paths that need no token: the page reads the token from its own address."""


class CountRequests:
    """Middleware that counts requests and their time, also those that are refused."""

    def __init__(self, app: ASGIApp, statistics: Statistics, paths: tuple[str, ...]) -> None:
        self.app, self.statistics, self.paths = app, statistics, paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_and_remember(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_and_remember)
        finally:
            path = scope["path"] if scope["path"] in self.paths else "other"
            self.statistics.count_request(path, status, time.perf_counter() - began)


def make_application(model: ServedModel, options: ServeOptions, token: str | None) -> Starlette:
    """Return the application, which loads new models while it runs."""
    statistics = Statistics()

    @asynccontextmanager
    async def run_background(app: Starlette) -> AsyncIterator[None]:
        app.state.batcher = Batcher(
            model.label_items, wait_seconds=options.wait_ms / 1000, limit=options.queue, statistics=statistics
        )
        watching = asyncio.create_task(model.watch(statistics, WATCH_SECONDS))
        working = asyncio.create_task(app.state.batcher.work())
        yield
        for task in (watching, working):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def predict(request: Request) -> Response:
        body = await read_body(request, options.max_bytes)
        items, single = parse_items(body, request.headers.get("content-type", ""), model.pairs)
        try:
            answers = await request.app.state.batcher.label(items)
        except QueueFullError:
            raise HTTPException(503, "too many texts are waiting", {"Retry-After": "1"}) from None
        if single:
            return JSONResponse(to_json(answers[0]))
        return JSONResponse({"predictions": [to_json(one) for one in answers]})

    async def describe(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(model.describe))

    async def openapi(request: Request) -> Response:
        predictor = model.labeler.predictor
        answer = describe_answer(predictor.kind, predictor.classes)
        return JSONResponse(describe_api(answer, model.pairs, token=token is not None))

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(statistics.to_prometheus())

    async def page(request: Request) -> Response:
        return HTMLResponse(PAGE, headers=HEADERS)

    gets: dict[str, Callable[[Request], Awaitable[Response]]] = {
        "/": page,
        "/health": health,
        "/model": describe,
        "/metrics": metrics,
        "/openapi.json": openapi,
    }
    routes = [Route(path, endpoint) for path, endpoint in gets.items()]
    guard: dict[str, Any] = {"token": token, "loopback": is_loopback(options.host), "open_paths": OPEN_PATHS}
    return Starlette(
        routes=[*routes, Route("/predict", predict, methods=["POST"])],
        middleware=[
            Middleware(CountRequests, statistics=statistics, paths=("/predict", *gets)),
            Middleware(Guard, **guard),
        ],
        exception_handlers=HANDLERS,
        lifespan=run_background,
    )


def to_json(answer: PredictedLabel) -> dict[str, Any]:
    """Return an answer as `openapi.describe_answer` describes it, by its kind."""
    if isinstance(answer, PredictedNumber):
        return {"value": answer.value}
    if isinstance(answer, PredictedLabels):
        return {"labels": list(answer.labels), "probabilities": answer.probabilities}
    return {
        "label": answer.label,
        "confidence": answer.confidence,
        "probabilities": answer.probabilities,
    }
