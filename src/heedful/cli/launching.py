"""How a command with `--on slurm` is sent to the cluster, and what is printed then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.cli.output import console, print_json
from heedful.launch.options import LaunchOptions

if TYPE_CHECKING:
    from heedful.launch.records import Submitted


def settled(launch: LaunchOptions) -> LaunchOptions:
    """The options with what heedful.toml says about this cluster; flags first, then the nearer file."""
    from heedful.cli.settings import site_tables
    from heedful.launch.options import with_site

    for path, table in site_tables():
        launch = with_site(launch, table, str(path))
    return launch


def send(
    words: tuple[str, ...],
    launch: LaunchOptions,
    folder: Path,
    *,
    json: bool = False,
    workers: int | None = None,
    make_room: Callable[[], object] = lambda: None,
) -> int:
    """Submit a command as a batch job that belongs to `folder`; the status to leave with.

    `make_room` is called when nothing speaks against the job any more, just before it is submitted.
    """
    from heedful.launch.submitting import prepare, refuse_busy, submit

    prepared = prepare(words, settled(launch), folder, workers)
    if launch.dry_run:
        if json:
            print_json({"folder": str(prepared.folder), "script": prepared.script})
        else:
            print(prepared.script, end="")
        return 0
    refuse_busy(prepared.folder)
    make_room()
    submitted = submit(prepared)
    if not launch.wait:
        announce(prepared.folder, submitted, json=json)
        return 0
    from heedful.launch.following import follow, status

    return status(follow(prepared.folder, submitted))


def announce(folder: Path, submitted: Submitted, *, json: bool) -> None:
    """Say which job it is, where it writes, and how to follow it."""
    from heedful.launch.records import log_file
    from heedful.launch.script import SCRIPT, command_line

    logs = [log_file(folder, task) for task in submitted.tasks]
    if json:
        facts = {"job": submitted.job, "folder": str(folder), "workers": submitted.workers}
        print_json({**facts, "script": str(folder / SCRIPT), "logs": [str(log) for log in logs]})
        return
    many = "" if submitted.workers is None else f", an array of {submitted.workers} workers"
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    log = log_file(shown, submitted.tasks[0])
    out = console()
    for name, text in (
        (f"job {submitted.job}", f"queued{many}"),
        ("folder", command_line([str(shown)])),
        ("log", command_line([str(log)])),
        (
            "follow",
            f"{command_line(['heedful', 'jobs', str(shown)])}  or  {command_line(['tail', '-f', str(log)])}",
        ),
        ("cancel", f"heedful jobs cancel {submitted.job}"),
    ):
        out.print(f"{name + ':':<8} {text}", markup=False, soft_wrap=True)


def send_run(
    command: str,
    arguments: Sequence[str],
    options: Any,
    launch: LaunchOptions,
    names: Iterator[Path],
    *,
    json: bool,
) -> int:
    """Submit a command that makes a run: its folder is made now, and the job resumes it, first from nothing.

    `options` have `out`, `resume` and `overwrite`; without `out` the folder is the first free one of `names`.
    """
    from heedful.launch.words import command_words
    from heedful.runs.directory import Run

    out = options.out
    if out is None:
        out = next(path for path in names if not path.exists())
    elif out.exists() and not (options.resume or options.overwrite):
        Run.create(out)  # refuses a folder that is not empty
    out = out.expanduser().absolute()
    told = replace(options, out=out, resume=True, overwrite=False)
    flags = ["--json"] if json and launch.wait else []
    words = (*command_words([command], arguments, told, leave_out=("model", "task")), *flags)

    def make_room() -> None:
        Run.create(out, overwrite=options.overwrite, resume=options.resume)

    return send(words, launch, out, json=json, make_room=make_room)
