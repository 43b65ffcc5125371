"""Continuing a run: with the same options, alone, and aware of what would change its bits."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import UserError, shorten
from heedful.logs import notice, warn
from heedful.options.training import (
    FIXED_SETTINGS,
    NOT_IN_CONFIG,
    LoopOptions,
    add_fixed_settings,
    has_prompt_length,
    named_after,
)
from heedful.runs.directory import CONFIG, Run, last_run_path, run_paths
from heedful.runs.leases import Lease, holder_of, release_dead
from heedful.runs.processes import process_name
from heedful.runs.schemas import Environment
from heedful.runs.toml import to_toml
from heedful.training.ranks import current_ranks

O = TypeVar("O", bound=LoopOptions)  # noqa: E741
LEASE = ".lease"
TTL_SECONDS = 60.0
SETTLED_LATER = ("threads", "precision", "processes", "max_len", "block")
"""Options that config.toml has as they were resolved, not as they were given."""


CHOSEN_SETTINGS = ("kind", "objective", "lr", "eval_every", *FIXED_SETTINGS)
"""Options that are found from the data, or that the rules of `training.build.settings` choose, where they
are not given."""


def resolve_resumed_folder(options: O) -> O:
    """With --resume and no --out, the folder is that of the last run of the same name."""
    if not options.resume or options.out is not None:
        return options
    name = named_after(options)
    last = last_run_path("runs", *name)
    if last is None:
        first = next(run_paths("runs", *name))
        raise UserError(f"--resume: there is no {first} to go on with; --out names the run")
    return replace(options, out=last)


def restore_stored_options(options: O, resolved: Mapping[str, Any], command: str = "adapt") -> O:
    """Return the options of a resumed run; `resolved` must be those that it began with.

    Threads and precision, where they are not given, are those of the beginning, so that the bits are too.
    With another number of processes they cannot be, and the threads are shared out anew.
    """
    assert options.out is not None
    if not (options.out / CONFIG).is_file():
        return options
    stored = stored_options(options.out, command)
    refuse_other_options(options.out, stored, resolved, options, SETTLED_LATER)
    precision = stored.get("precision", options.precision)
    if options.precision not in ("auto", precision):
        raise option_mismatch(options.out, "precision", precision, options.precision)
    if stored.get("processes", 1) != current_ranks().size:
        return replace(options, precision=precision)
    threads = stored.get("threads")
    if options.threads not in (None, threads):
        warn(
            f"{options.out}: was begun with {threads} threads, goes on with {options.threads}: "
            "its bits will not be those of a run that never stopped"
        )
        threads = options.threads
    return replace(options, precision=precision, threads=threads)


def refuse_other_options(
    out: Path,
    stored: Mapping[str, Any],
    resolved: Mapping[str, Any],
    options: LoopOptions,
    but: Collection[str],
    asked: str = "--resume",
) -> None:
    """Refuse options other than those that the run in `out` was begun with, some apart."""
    new = tomllib.loads(to_toml(resolved))
    for field in fields(options):
        if field.name in NOT_IN_CONFIG or field.name in but:
            continue
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        was, now = stored.get(field.name, default), new.get(field.name, default)
        if was != now:
            raise option_mismatch(out, field.name, was, now, asked)


def stored_options(out: Path, command: str = "adapt") -> dict[str, Any]:
    stored = Run.open(out).read_config().get(command)
    if not isinstance(stored, dict):
        raise UserError(f"{out / CONFIG}: is not the configuration of a run of {command}")
    return add_fixed_settings(stored) if command == "adapt" else stored


def restore_choices(options: O) -> O:
    """Return the options with the settings that were chosen when the run began, where none are given."""
    assert options.out is not None
    if not (options.out / CONFIG).is_file():
        return options
    stored = stored_options(options.out)
    missing = [name for name in CHOSEN_SETTINGS if getattr(options, name) in (None, "auto")]
    method_options = getattr(options, "method_options", ())
    if getattr(options, "method", "") == "prompt" and not has_prompt_length(method_options):
        missing.append("method_options")
        stored["method_options"] = tuple(stored.get("method_options", ()))
    if getattr(options, "method", "") == "contrastive" and options.steps is None and options.epochs is None:
        missing.append("steps")
    return replace(options, **{name: stored[name] for name in missing if name in stored})


def option_mismatch(out: Path, name: str, was: Any, now: Any, asked: str = "--resume") -> UserError:
    option = name if name in ("model", "task", "corpus") else "--" + name.replace("_", "-")
    had, has = (shorten(" ".join(v) if isinstance(v, list) else str(v)) for v in (was, now))
    before = f"without {option}" if was is None else f"with {option} {had}"
    after = "not given" if now is None else has
    instead = ", --overwrite starts anew" if asked == "--resume" else ""
    return UserError(f"{out}: was begun {before}, now it is {after}; {asked} takes the same options{instead}")


def warn_of_other_environment(run: Run, now: Environment) -> None:
    """Say what is not as it was when the run began, if that changes its bits."""
    facts = [
        {"processor": e.cpu, "device": e.device, "torch": e.packages.get("torch")}
        for e in (run.read_environment(), now)
    ]
    changed = [
        f"{name} {was} is now {facts[1][name]}" for name, was in facts[0].items() if was != facts[1][name]
    ]
    if changed:
        warn(f"{run.path}: {', '.join(changed)}: the run's bits will not be those of one that never stopped")


@contextmanager
def open_run(out: Path, options: LoopOptions) -> Iterator[tuple[Run, Lease]]:
    """Create or continue the run in `out`, as the only process that writes there.

    Of processes that train together that is the first; the others come when the folder is there.
    """
    path = out / "checkpoints" / LEASE
    if not current_ranks().first:
        current_ranks().barrier()
        yield Run(out), Lease(path, 0, "", TTL_SECONDS)
        return
    if options.resume and (out / CONFIG).is_file():
        path.parent.mkdir(exist_ok=True)
        lease = claim_lease(path)
        run = Run.create(out, resume=True)
    else:
        if path.parent.is_dir():
            refuse_held(path)
        if options.resume:
            notice(f"{out}: there is no run yet; it begins")
        run = Run.create(out, overwrite=options.overwrite, resume=options.resume)
        path.parent.mkdir(exist_ok=True)
        lease = claim_lease(path)
    with lease.held():
        current_ranks().barrier()
        yield run, lease


def claim_lease(path: Path) -> Lease:
    """Take the run's lease, from a process that is dead if need be."""
    refuse_held(path)
    lease = Lease.claim(path, process_name(os.getpid()), TTL_SECONDS)
    if lease is None:
        raise held_error(path)
    return lease


def refuse_held(path: Path) -> None:
    """Refuse a run that another process works on; a lease whose process on this machine is gone is freed."""
    release_dead(path)
    if holder_of(path) is not None:
        raise held_error(path)


def held_error(path: Path) -> UserError:
    by = holder_of(path)
    who = f"another process ({by})" if by else "another process"
    return UserError(f"{path.parent.parent}: {who} is working on this run; wait for it, or stop it first")
