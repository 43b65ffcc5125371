"""What training commands share: opening a run, describing it, and what they write at its end."""

from __future__ import annotations

import ctypes
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from heedful import checkpoints
from heedful.data.run_options import absolute_value
from heedful.errors import UserError, unknown
from heedful.inference.devices import find_device
from heedful.models import Model
from heedful.options.training import NOT_IN_CONFIG, LoopOptions
from heedful.options.values import check_bounds
from heedful.runs.directory import CONFIG, ENVIRONMENT, RESULTS, Run
from heedful.runs.environment import environment, peak_memory_gb
from heedful.runs.schemas import Checks, Results
from heedful.text import Tokenizer
from heedful.training import resume
from heedful.training.checkpoint import TrainingState
from heedful.training.optimizers import OPTIMIZERS
from heedful.training.precision import choose_precision
from heedful.training.ranks import current_ranks
from heedful.training.schedules import SCHEDULES
from heedful.training.signals import StopSignals

O = TypeVar("O", bound=LoopOptions)  # noqa: E741
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of glibc's malloc.h: how much freed memory is kept, and from which size on a piece is mapped by itself."""


@dataclass(frozen=True)
class Finished:
    """A finished run: where it is and how it did."""

    folder: Path
    results: Results
    checks: Checks


@dataclass(frozen=True)
class Machine:
    """Where and in which format a run computes."""

    device: torch.device
    precision: str
    threads: int


def settle_machine(options: LoopOptions) -> Machine:
    """Find device, precision and threads, and say when a measurement decided."""
    threads = options.threads or current_ranks().threads
    torch.set_num_threads(threads)
    device = current_ranks().device(find_device(options.device))
    precision, notice = choose_precision(options.precision, device)
    if notice is not None:
        say_once(notice)
    return Machine(device, precision, threads)


@cache
def say_once(notice: str) -> None:
    """Tell the person something that holds for all runs of this process."""
    print(f"heedful: {notice}", file=sys.stderr)


def keep_memory() -> None:
    """Let the C library keep freed memory: giving it back, every step would have to find its pages anew.

    For steps of much the same shapes: where they differ a lot, what is kept never fits and only grows. Where
    the library has no such setting (not glibc), nothing changes.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, 2**25)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def check_loop_options(options: LoopOptions) -> None:
    """Refuse values outside their bounds and names that do not exist, before a run begins."""
    check_bounds(options)
    OPTIMIZERS.find(options.optimizer)
    if options.schedule not in SCHEDULES:
        raise unknown("schedule", options.schedule, SCHEDULES)


def refuse_unread(options: LoopOptions, owners: Mapping[str, tuple[bool, Sequence[str]]]) -> None:
    """Refuse options that change nothing: those of a choice (its words) that was not made."""
    defaults = type(options)()
    for owner, (made, names) in owners.items():
        for name in names:
            if not made and getattr(options, name) != getattr(defaults, name):
                raise UserError(f"--{name.replace('_', '-')} belongs to {owner}")


def resolved(options: LoopOptions, lr: float) -> dict[str, Any]:
    """The options as config.toml has them: with the learning rate that is used, and whole paths.

    How many processes there are, `describe` says.
    """
    left_out = (*NOT_IN_CONFIG, "processes")
    values = {k: v for k, v in asdict(options).items() if k not in left_out and v is not None}
    return {k: absolute_value(k, v) for k, v in values.items()} | {"lr": lr}


def conduct(
    options: O,
    stored: Callable[[O], Mapping[str, Any]],
    work: Callable[[O, StopSignals], Finished],
    command: str,
) -> Finished:
    """Do a command's work in a run directory. Resuming a finished run gives its results again."""
    ranks = current_ranks()
    if options.processes not in (None, ranks.size):
        raise UserError(f"--processes {options.processes}: here it is {ranks.size}")
    options = replace(options, processes=ranks.size)
    if options.resume and options.out is not None:
        out = options.out
        options = resume.restore_stored_options(options, stored(options), command)
        if (out / RESULTS).is_file():
            return finished(Run.open(out))
    new = ranks.first and not (options.resume or options.overwrite)
    if new and options.out is not None and options.out.exists():
        Run.create(options.out)  # refuses a folder that is not empty, before anything is loaded
    stopping = StopSignals(silent=ranks.launched or not ranks.first)
    with stopping.listen():
        return work(options, stopping)


def finished(run: Run) -> Finished:
    """What a finished run's directory says."""
    return Finished(run.path, run.results(), run.checks())


def followed(run: Run) -> Finished:
    """What a process that is not the first does at the end: wait until the first has written everything."""
    current_ranks().barrier()
    return finished(run)


def describe(
    run: Run, machine: Machine, command: str, options: Mapping[str, Any], settled: Mapping[str, Any]
) -> None:
    """Write the configuration and the environment; of a run that goes on, those of its beginning stay.

    `settled` are options that the model or the data decided; they must be what they were.
    """
    if not current_ranks().first:
        return
    now = environment(threads=machine.threads, device=str(machine.device), precision=machine.precision)
    if (run.path / CONFIG).is_file() and (run.path / ENVIRONMENT).is_file():
        begun = resume.stored_options(run.path, command)
        for name, value in settled.items():
            if begun.get(name) != value:
                raise resume.option_mismatch(run.path, name, begun.get(name), value)
        resume.warn_of_other_environment(run, now)
        return
    found = {
        "threads": machine.threads,
        "processes": current_ranks().size,
        "precision": machine.precision,
        **settled,
    }
    run.write_environment(now)
    run.write_config({"command": command, command: {**options, **found}})


def measures(
    run: Run,
    model: nn.Module,
    parameters: Mapping[str, nn.Parameter],
    progress: TrainingState,
    more: float = 0.0,
) -> dict[str, Any]:
    """What results.json says of any run's cost; `more` are seconds before the first step."""
    seconds = max(progress.seconds + more, 1e-9)
    return {
        "trainable_parameters": sum(p.numel() for p in parameters.values()),
        "total_parameters": sum(p.numel() for p in model.parameters()),
        "seconds": seconds,
        "examples_per_second": progress.examples / seconds,
        "tokens_per_second": progress.tokens / seconds,
        "memory_gb": peak_memory_gb(),
        "best_step": progress.best_step,
        "best_epoch": next((row.epoch for row in run.metrics() if row.step == progress.best_step), None),
    }


def save_whole(run: Run, model: Model, tokenizer: Tokenizer) -> None:
    """Write best/: the whole model with its tokenizer."""
    shutil.rmtree(run.best, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(Path(folder))
        checkpoints.save(model, run.best, tokenizer=folder)
