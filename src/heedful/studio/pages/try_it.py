"""The page on which a model is asked: one text or many, with reasons."""

from __future__ import annotations

import secrets
import shutil
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from heedful.data.cache import PRIVATE
from heedful.data.text_files import split_name
from heedful.errors import UserError
from heedful.inference.row_writers import SUFFIXES
from heedful.server.requests import read_body
from heedful.studio.calls import CLIENT, PROGRESS, make_response, stream_result, work_route
from heedful.studio.folder import StudioFolder
from heedful.studio.pages.page import Page
from heedful.studio.worker import Result, Worker

API, WORK = "/api/try_it", "heedful.studio.work.try_it"
MOST_UPLOADED = 32 << 20
"""The largest file to label here; heedful predict labels larger ones."""
KEPT = 4
"""Labeled files that wait to be downloaded; older ones are forgotten."""
UPLOADS = ".heedful-studio"
"""Where a file is while it is labeled, in the studio's folder."""
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".arrow", ".xlsx", ".txt")
PACKED = (".gz", ".bz2", ".xz", ".zst")


async def label_file(request: Request) -> Response:
    """Label the rows of the file in the body; the answer names the labeled file, which can then be got."""
    given = request.query_params
    body = await read_body(request, MOST_UPLOADED)
    name = name_upload(given.get("name", ""))
    folder: StudioFolder = request.app.state.folder
    worker: Worker = request.app.state.worker
    suffix = given.get("suffix", SUFFIXES[0])
    wanted = {
        "model": given.get("model", ""),
        "suffix": suffix,
        "calibrate": given.get("calibrate", "1") == "1",
        "probabilities": given.get("probabilities") == "1",
    }

    async def call(progress: Callable[[float, str], None] | None = None) -> Result:
        place = await run_in_threadpool(store_upload, folder, name, body)
        try:
            source = {"source": folder.name(place / name)}
            client = request.headers.get(CLIENT, "")[:100]
            result = await worker.call(
                f"{WORK}:label_file", {**wanted, **source}, progress=progress, client=client
            )
            assert isinstance(result, dict)
            content = await run_in_threadpool((place / str(result["file"])).read_bytes)
        finally:
            await run_in_threadpool(shutil.rmtree, place, True)
        return {**result, "download": keep(request.app.state, content)}

    if PROGRESS in request.headers.get("accept", ""):
        return StreamingResponse(stream_result(call), media_type=PROGRESS)
    waiting: Awaitable[Result] = call()
    return make_response(await waiting)


def name_upload(name: str) -> str:
    """Return a harmless name for an uploaded file, with the ending of its own."""
    file = Path(name.replace("\\", "/").rpartition("/")[2].lower())
    kind = split_name(file)[1]
    packed = file.suffix if file.suffix in PACKED else ""
    if kind not in FORMATS:
        raise UserError(f"files to label end in {', '.join(FORMATS)}; this name does not")
    return f"texts{kind}{packed}"


def store_upload(folder: StudioFolder, name: str, body: bytes) -> Path:
    """Write an uploaded file into a folder of its own."""
    place = folder.root / UPLOADS / secrets.token_hex(8)
    try:
        place.parent.mkdir(mode=PRIVATE, exist_ok=True)
        place.mkdir(mode=PRIVATE, parents=True)
        if not place.resolve().is_relative_to(folder.root):
            raise UserError(f"{UPLOADS} is a link that leads out of the studio's folder; remove it")
        (place / name).write_bytes(body)
    except OSError as error:
        raise UserError(f"the file could not be stored in {UPLOADS}: {error.strerror}") from None
    return place


def keep(state: Any, content: bytes) -> str:
    """Keep a labeled file in memory until it is downloaded, and return its key."""
    if not hasattr(state, "labeled"):
        state.labeled = OrderedDict()
    key = secrets.token_urlsafe(16)
    state.labeled[key] = content
    while len(state.labeled) > KEPT:
        state.labeled.popitem(last=False)
    return key


async def get_labeled(request: Request) -> Response:
    """Return a labeled file."""
    content = getattr(request.app.state, "labeled", {}).get(request.path_params["key"])
    if content is None:
        raise HTTPException(404, "this labeled file is not kept any more; label the texts again")
    return Response(content, media_type="application/octet-stream")


PAGE = Page(
    "try_it",
    "Try it",
    "try_it.html",
    (
        work_route(f"{API}/describe", f"{WORK}:describe", group="try it describe"),
        work_route(f"{API}/answer", f"{WORK}:answer", group="try it answer"),
        work_route(f"{API}/answer-other", f"{WORK}:answer", group="try it other answer"),
        work_route(f"{API}/explain", f"{WORK}:explain", group="try it explain"),
        work_route(f"{API}/neighbors", f"{WORK}:find_neighbors", group="try it neighbors"),
        work_route(f"{API}/mistakes", f"{WORK}:list_mistakes", group="try it mistakes"),
        Route(f"{API}/file", label_file, methods=["POST"]),
        Route(f"{API}/labeled/{{key}}", get_labeled),
    ),
)
