"""How a command with `--on slurm` is sent to the cluster, and what is printed then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
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
    replacing: Callable[[], object] | None = None,
) -> int:
    """Submit a command as a batch job that belongs to `folder`; the status to leave with.

    `replacing` removes what the job is to replace.
    """
    from heedful.launch.submitting import prepare, submit

    prepared = prepare(words, settled(launch), folder, workers)
    if launch.dry_run:
        if json:
            print_json({"folder": str(prepared.folder), "script": prepared.script})
        else:
            print(prepared.script, end="")
        return 0
    submitted = submit(prepared, replacing)
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
    names: tuple[str, str, str, int],
    *,
    json: bool,
) -> int:
    """Submit a command that makes a run: its folder is made now, and the job resumes it, first from nothing.

    `options` have `out`, `resume` and `overwrite`; without `out` the folder is named after `names`: what is
    trained on, the model, how, and the seed.
    """
    from heedful.launch.words import command_words
    from heedful.runs.directory import Run, run_paths

    out = options.out
    if out is None:
        source, model, how, seed = names
        stem = Path(source).stem if Path(source).exists() else source
        out = next(path for path in run_paths("runs", stem, model, how, seed) if not path.exists())
    elif out.exists() and not options.overwrite:
        Run.create(out, resume=options.resume)  # refuses a folder that is not empty, or holds no run
    out = out.expanduser().absolute()
    told = replace(options, out=out, resume=True, overwrite=False)
    flags = ["--json"] if json and launch.wait else []
    words = (*command_words([command], arguments, told, leave_out=("model", "task", "corpus")), *flags)
    replacing = partial(Run.create, out, overwrite=True) if options.overwrite else None
    return send(words, launch, out, json=json, replacing=replacing)
