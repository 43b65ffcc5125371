"""Training in several processes: torch's launcher starts them on this machine, `srun` on a cluster's nodes.

The command itself stays outside: it starts the processes, hands signals on to them, and tells in one line how
they ended. What they say to it are small files in a folder of their own: `N.pid`, and at the end `N.json`.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError
from heedful.launch.rank_environment import detect_ranks
from heedful.launch.worker import OPTIONS, STOP
from heedful.options.training import AdaptOptions, PretrainOptions, named_after
from heedful.options.values import check_bounds
from heedful.runs.directory import RESULTS, Run, run_paths
from heedful.runs.json_files import read_json_if_intact
from heedful.training.signals import StoppedError, announce_signal

if TYPE_CHECKING:
    from heedful.training.running import Finished

Options = AdaptOptions | PretrainOptions
COMMANDS: dict[type[Options], str] = {AdaptOptions: "adapt", PretrainOptions: "pretrain"}
FORWARDED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
HINT = {signal.SIGKILL: " (which is how a system that is short of memory ends one)"}


def carry_out(options: Options) -> Finished:
    """Adapt or pretrain, in as many processes as the options or the machine ask for."""
    from heedful.training.ranks import LostError, join_processes
    from heedful.training.resume import resolve_resumed_folder

    place = detect_ranks()
    if place is not None:
        try:
            with join_processes(place, options.device):
                return work(options)
        except LostError as lost:
            if place.launched or options.out is None:
                raise
            raise LostError(f"{lost}; {kept(options.out)}") from lost
    options = resolve_resumed_folder(options)
    number = count(options)
    over = options.resume and options.out is not None and (options.out / RESULTS).is_file()
    if number == 1 or over:
        return work(replace(options, processes=None))
    return launch(options, number)


def speaks() -> bool:
    """Whether this process prints: of several that a launcher started, only the first one does."""
    place = detect_ranks()
    return place is None or place.first


def work(options: Options) -> Finished:
    """Do it in this process."""
    from heedful.training.build.adapt import adapt
    from heedful.training.build.pretrain import pretrain

    return adapt(options) if isinstance(options, AdaptOptions) else pretrain(options)


def count(options: Options) -> int:
    """How many processes: those asked for, those of a run that goes on, or one for each of several GPUs."""
    import torch

    from heedful.inference.devices import find_device
    from heedful.training.resume import stored_options

    device = find_device(options.device)
    gpus = torch.cuda.device_count() if device.type == "cuda" and device.index is None else 1
    wanted = options.processes
    if wanted is None:
        begun = options.resume and options.out is not None and (options.out / "config.toml").is_file()
        stored = stored_options(options.out, COMMANDS[type(options)]) if begun and options.out else {}
        before = int(stored.get("processes", gpus))
        return before if device.type == "cpu" else min(before, gpus)
    check_bounds(options)
    if wanted > gpus and device.type != "cpu":
        has = {"cuda": f"there are {gpus} GPUs here" if gpus > 1 else f"{options.device} is one GPU"}
        raise UserError(f"--processes {wanted}: {has.get(device.type, 'this device takes one')}")
    return wanted


def place_of(options: Options) -> Path:
    """The run's folder: the one that was named, or a new one named after what is trained on what."""
    if options.out is not None:
        return options.out
    return next(path for path in run_paths("runs", *named_after(options)) if not path.exists())


def launch(options: Options, number: int) -> Finished:
    """Start the processes here, and wait for them."""
    refuse(options)
    told = replace(options, out=place_of(options), processes=number)
    with tempfile.TemporaryDirectory(prefix="heedful-") as name:
        folder = Path(name)
        values = {k: v for k, v in asdict(told).items() if v is not None}
        command = {"command": COMMANDS[type(options)], "options": values}
        (folder / OPTIONS).write_text(json.dumps(command, default=str), encoding="utf-8")
        with forwarding(folder) as asked:
            codes = run(folder, number)
        reports = {rank: read_json_if_intact(folder / f"{rank}.json") or {} for rank in range(number)}
    judge(reports, codes, asked, number, lambda: kept(told.out))
    from heedful.training.running import finished

    assert told.out is not None
    return finished(Run.open(told.out))


def refuse(options: Options) -> None:
    """Find mistakes before anything is started."""
    from heedful.training.build import adapt, pretrain

    if isinstance(options, AdaptOptions):
        adapt.refuse_impossible(options)
    else:
        pretrain.refuse_impossible(options)
    if options.out is not None and options.out.exists() and not (options.resume or options.overwrite):
        Run.create(options.out)  # refuses a folder that is not empty


def run(folder: Path, number: int) -> dict[int, int]:
    """Let torch's launcher start the processes; the exit codes of those that failed.

    When one fails the launcher ends the others, with SIGTERM, and after half a minute with SIGKILL.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=number,
        run_id=folder.name,
        rdzv_backend="c10d",
        rdzv_endpoint="127.0.0.1:0",
        local_addr="127.0.0.1",
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder / "logs")),
        signals_to_handle="SIGQUIT",  # the others are handed on, and the processes end by themselves
    )
    with silent_launcher():
        try:
            elastic_launch(config, sys.executable)("-m", "heedful.launch.worker", str(folder))
        except ChildFailedError as failed:
            return {rank: failure.exitcode for rank, failure in failed.failures.items()}
        except SignalException:
            raise KeyboardInterrupt from None
    return {}


@contextmanager
def silent_launcher() -> Iterator[None]:
    """Keep the launcher's own log lines back, since one line tells it all, and give its signal back."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("torch.distributed.")]
    loud = [logger for logger in map(logging.getLogger, names) if not logger.disabled]
    former = signal.getsignal(signal.SIGQUIT)
    for logger in loud:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loud:
            logger.disabled = False
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGQUIT, former)


@contextmanager
def forwarding(folder: Path) -> Iterator[list[signal.Signals]]:
    """Hand signals on to the processes; those that have come.

    They are in sessions of their own, so that Ctrl-C reaches them from here alone. One that has not yet left
    its number finds the note.
    """
    asked: list[signal.Signals] = []

    def hand_on(number: int, frame: object) -> None:
        name = signal.Signals(number)
        if not asked:
            announce_signal(name)
        asked.append(name)
        (folder / STOP).write_text(name.name)
        for file in folder.glob("*.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), number)

    former: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        former = {number: signal.signal(number, hand_on) for number in FORWARDED}
    try:
        yield asked
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def judge(
    reports: Mapping[int, Mapping[str, Any]],
    codes: Mapping[int, int],
    asked: list[signal.Signals],
    number: int,
    kept: Callable[[], str],
) -> None:
    """Tell how it ended, unless well: of several reasons the one that led to the others."""
    from heedful.training.ranks import LostError

    stopped = next((r for r in reports.values() if r.get("kind") == "stopped"), None)
    if stopped is not None:
        raise StoppedError(stopped["message"], signal.Signals[stopped["by"]])
    if not codes:
        return
    if asked:
        if asked[-1] is signal.SIGINT:
            raise KeyboardInterrupt
        raise StoppedError(f"stopped by {asked[0].name}; the same command with --resume continues", asked[0])
    for rank, report in reports.items():
        if report.get("kind") == "mistake":
            raise UserError(report["message"])
        if report.get("kind") == "failure":
            raise LostError(f"process {rank + 1} of {number} failed: {report['message']}; {kept()}")
    for rank, code in codes.items():
        if code < 0 and -code != signal.SIGTERM:
            name = signal.Signals(-code)
            hint = HINT.get(name, "")
            raise LostError(f"process {rank + 1} of {number} was ended by {name.name}{hint}; {kept()}")
    lost = next((r["message"] for r in reports.values() if r.get("kind") == "lost"), None)
    rank, code = next(iter(codes.items()))
    ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    raise LostError(f"{lost or f'process {rank + 1} of {number} {ended}'}; {kept()}")


def kept(out: Path | None) -> str:
    """Where the last checkpoint is, and how to go on."""
    from heedful.training import checkpoint

    steps = checkpoint.steps(Run(out)) if out is not None else []
    if not steps:
        return "there is no checkpoint yet"
    return f"the last checkpoint is step {steps[-1]} in {out}; the same command with --resume continues"
