"""The page that makes the best model for a file of labeled texts, and shows how it gets there."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from heedful.data.text_files import split_name
from heedful.errors import UserError
from heedful.options.command_line import option_flags
from heedful.options.configuration import check_table
from heedful.options.solve import SolveOptions
from heedful.options.values import check_bounds
from heedful.runs.directory import STUDY, slug
from heedful.runs.processes import find_process
from heedful.runs.studies import StudyFolder
from heedful.studio import control
from heedful.studio.calls import read_params, work_route
from heedful.studio.children import Children
from heedful.studio.events import KEEP, KEEP_SECONDS, is_closing, stream_events, write_event
from heedful.studio.folder import StudioFolder
from heedful.studio.listing.activity import find_study_activity
from heedful.studio.listing.study_reader import SOLVE
from heedful.studio.offers import iterate_folders
from heedful.studio.pages.page import Page
from heedful.studio.pages.runs import get_children, read_name
from heedful.studio.solution import SolutionReader, describe_failure, list_solutions
from heedful.studio.uploads import FORMATS, name_data_file, store_data_file

API, WORK = "/api/solve", "heedful.studio.work.solve"
LOOK_SECONDS = 0.7
MOST_FILES = 200
CHOICES = (
    "minutes", "prefer", "metric", "text_column", "pair_column", "label_column", "kind", "group", "time",
)  # fmt: skip
"""The options of solve that the page has."""
SAME_FOLDER = ("--minutes", "--out", "--threads")
"""Options in which a command may differ from the one that began a folder, and still continue there."""


async def upload(request: Request) -> Response:
    """Store the file in the body, and return what pages call it."""
    folder: StudioFolder = request.app.state.folder
    name = name_data_file(request.query_params.get("name", ""))
    path = await store_data_file(request, folder, name)
    return JSONResponse({"source": folder.name(path)})


async def show_list(request: Request) -> Response:
    """Return the solutions, and the files that may be solved."""
    app = request.app

    def read() -> dict[str, Any]:
        solutions = list(list_solutions(app.state.folder, get_children(app)))
        solutions.sort(key=lambda one: (one["state"] not in ("running", "starting"), -one["changed"]))
        return {"solutions": solutions, "files": list_files(app.state.folder)}

    return JSONResponse(await run_in_threadpool(read))


def list_files(folder: StudioFolder) -> list[str]:
    """Return the files of data below the folder that are not part of a run."""
    files: list[str] = []
    for path in iterate_folders(folder):
        try:
            names = sorted(entry.name for entry in os.scandir(path) if entry.is_file(follow_symlinks=False))
        except OSError:
            continue
        if {"config.toml", "config.json", STUDY} & set(names):
            continue
        files += [folder.name(path / one) for one in names if split_name(Path(one))[1] in FORMATS[:-1]]
        if len(files) >= MOST_FILES:
            break
    return files[:MOST_FILES]


async def start(request: Request) -> Response:
    """Start to solve a file, in a process that goes on when the studio ends."""
    params = await read_params(request)
    folder: StudioFolder = request.app.state.folder
    children = get_children(request.app)
    name = await run_in_threadpool(start_solving, folder, children, params)
    return JSONResponse({"name": name})


def start_solving(folder: StudioFolder, children: Children, params: dict[str, Any]) -> str:
    path = folder.resolve(str(params.get("source", "")))
    stated = {name: params[name] for name in CHOICES if params.get(name) not in (None, "")}
    options = replace(SolveOptions(**check_table(SolveOptions, stated, "the form")), task=str(path))
    check_bounds(options)
    command = (SOLVE, str(path), *option_flags(options, ("task", "launch")))
    out = choose_folder(folder, path, command, children)
    out.parent.mkdir(exist_ok=True)
    name = folder.name(out)
    if find_study_activity(out) is not None:
        raise UserError(f"{name}: another process is working on it")
    return children.start(name, (*command, f"--out={out}")).name


def choose_folder(folder: StudioFolder, source: Path, command: tuple[str, ...], children: Children) -> Path:
    """Return the folder in which the same question was begun before, or a new one."""
    parent = folder.root if folder.root.name == "runs" else folder.root / "runs"
    if not parent.resolve().is_relative_to(folder.root):
        raise UserError("runs is a link that leads out of the studio's folder; remove it")
    stem = f"solve-{slug(split_name(source)[0])}"
    number = 1
    while True:
        out = parent / (stem if number == 1 else f"{stem}-{number}")
        child = children.known.get(folder.name(out))
        if (out / STUDY).is_file():
            begun: tuple[str, ...] | None = StudyFolder(out).read().command
        else:
            begun = child.command if child is not None and child.runs else None
        if (begun is None and not out.exists()) or (begun is not None and is_same(begun, command)):
            return out
        number += 1


def is_same(begun: tuple[str, ...], command: tuple[str, ...]) -> bool:
    """Whether a command continues what another one has begun."""

    def question(words: tuple[str, ...]) -> set[str]:
        return {word for word in words if word.partition("=")[0] not in SAME_FOLDER}

    return question(begun) == question(command)


async def extend(request: Request) -> Response:
    """Continue a solution with more minutes."""
    params = await read_params(request)
    name, folder = await read_name(request), request.app.state.folder
    options = SolveOptions(**check_table(SolveOptions, {"minutes": params.get("minutes")}, "the form"))
    check_bounds(options)

    def go_on() -> str:
        words = control.continue_study(folder.resolve(name), name)
        words = tuple(word for word in words if word.partition("=")[0] != "--minutes")
        return get_children(request.app).start(name, (*words, f"--minutes={options.minutes}")).name

    return JSONResponse({"name": await run_in_threadpool(go_on)})


async def end(request: Request) -> Response:
    """End a solution early, with the best model so far."""
    name, app = await read_name(request), request.app
    child = get_children(app).known.get(name)
    path = app.state.folder.root / name
    if child is not None and child.runs and find_study_activity(path) is None:
        process = find_process(child.process)
        if process is not None:
            control.send(process, signal.SIGINT, name)
        return JSONResponse({"message": "It is ended."})
    message = await run_in_threadpool(control.stop, app.state.folder, name)
    return JSONResponse({"message": message})


async def follow_solution(request: Request) -> Response:
    name = request.query_params.get("name", "")
    folder, children = request.app.state.folder, get_children(request.app)
    try:
        if name not in children.known:
            folder.resolve(name)
    except UserError as error:  # a page cannot see why a stream of events is refused
        return stream_events(follow(request.app, partial(describe_failure, name, str(error))))
    return stream_events(follow(request.app, SolutionReader(folder, children, name).read))


async def follow(app: Starlette, read: Callable[[], dict[str, Any]]) -> AsyncIterator[bytes]:
    """Yield what a solution looks like, whenever that has changed."""
    last, quiet = b"", 0.0
    while not is_closing(app):
        event = write_event(await run_in_threadpool(read), "solution")
        if event != last:
            last, quiet = event, 0.0
            yield event
        elif (quiet := quiet + LOOK_SECONDS) > KEEP_SECONDS:
            quiet = 0.0
            yield KEEP
        await asyncio.sleep(LOOK_SECONDS)


PAGE = Page(
    "solve",
    "Solve",
    "solve.html",
    (
        Route(f"{API}/upload", upload, methods=["POST"]),
        Route(f"{API}/list", show_list),
        work_route(f"{API}/describe", f"{WORK}:describe"),
        Route(f"{API}/start", start, methods=["POST"]),
        Route(f"{API}/extend", extend, methods=["POST"]),
        Route(f"{API}/end", end, methods=["POST"]),
        Route(f"{API}/events", follow_solution),
    ),
)
