"""The page of runs and studies, while they are made and after."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from heedful.studio import control
from heedful.studio.calls import read_params, work_route
from heedful.studio.children import Children
from heedful.studio.events import stream_events
from heedful.studio.folder import StudioFolder
from heedful.studio.listing.feed import Feed
from heedful.studio.pages.page import Page
from heedful.studio.worker import Worker

API, WORK = "/api/runs", "heedful.studio.work.runs"
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads allow-popups; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""A report is a page of its own, without an origin; its own policy allows its two scripts alone."""


def get_children(app: Starlette) -> Children:
    """Return the commands that this studio has started."""
    if not hasattr(app.state, "children"):
        app.state.children = Children(app.state.folder)
    children: Children = app.state.children
    return children


def get_feed(app: Starlette) -> Feed:
    if not hasattr(app.state, "feed"):
        app.state.feed = Feed(app, app.state.folder, get_children(app))
    feed: Feed = app.state.feed
    return feed


async def follow_rows(request: Request) -> Response:
    return stream_events(get_feed(request.app).follow())


async def stop(request: Request) -> Response:
    """Ask a run, a study or a solution to stop."""
    name = await read_name(request)
    message = await run_in_threadpool(control.stop, request.app.state.folder, name)
    return JSONResponse({"message": message})


async def resume(request: Request) -> Response:
    """Continue a run, a study or a solution in a process of its own."""
    name = await read_name(request)
    folder: StudioFolder = request.app.state.folder
    child = await run_in_threadpool(control.resume, folder, get_children(request.app), name)
    return JSONResponse({"command": list(child.command)})


async def read_name(request: Request) -> str:
    params: dict[str, Any] = await read_params(request)
    if not isinstance(name := params.get("name"), str):
        raise HTTPException(422, "name the folder of a run or a study")
    return name


async def show_report(request: Request) -> Response:
    """Return the report on runs and studies, which is a page that needs nothing else."""
    worker: Worker = request.app.state.worker
    params = {"names": request.query_params.getlist("name")}
    page = await worker.call(f"{WORK}:write_report", params)
    assert isinstance(page, bytes)
    return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY, "Cache-Control": "no-store"})


PAGE = Page(
    "runs",
    "Runs",
    "runs.html",
    (
        Route(f"{API}/events", follow_rows),
        Route(f"{API}/stop", stop, methods=["POST"]),
        Route(f"{API}/resume", resume, methods=["POST"]),
        Route(f"{API}/report", show_report),
        work_route(f"{API}/compare", f"{WORK}:compare"),
    ),
)
