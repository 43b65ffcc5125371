"""Training in several processes: torch's launcher starts them on this machine, `srun` on a cluster's nodes.

The command itself does not train: it starts the processes, forwards signals to them, and reports in one
line how they ended. They report to it by small files in a folder: `N.pid`, and at the end `N.json`.
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

from heedful.data.workers import STATUS_KILLED
from heedful.errors import UserError
from heedful.launch.rank_environment import detect_ranks
from heedful.launch.worker import OPTIONS, STOP
from heedful.linear.folders import is_linear
from heedful.options.training import AdaptOptions, PretrainOptions, named_after
from heedful.options.values import check_bounds
from heedful.runs.directory import RESULTS, Run, run_paths
from heedful.runs.json_files import read_json_if_intact
from heedful.runs.memory import require_memory
from heedful.training.signals import STOP_SIGNALS, StoppedError, announce_signal, handle_signals

if TYPE_CHECKING:
    from heedful.training.record import Finished

Options = AdaptOptions | PretrainOptions
COMMANDS: dict[type[Options], str] = {AdaptOptions: "adapt", PretrainOptions: "pretrain"}
LEAST_BYTES = 2e8
"""What a process that trains holds at least."""
HINT = {-STATUS_KILLED: " (which is how a system that is short of memory ends one)"}


def launch_training(options: Options) -> Finished:
    """Train in as many processes as the options or the machine ask for.

    This decides where a run happens: in which folder, if it is resumed, and in how many processes. Then it
    hands over to `heedful.training.train` once, in this process or in each of those that it starts.
    """
    from heedful.training.resume import resolve_resumed_folder
    from heedful.training.train import train_run

    ranks = detect_ranks()
    if ranks is None:
        options = resolve_resumed_folder(options)
        number = count_processes(options)
        finished = options.resume and options.out is not None and (options.out / RESULTS).is_file()
        if number > 1 and not finished:
            require_memory(number * LEAST_BYTES, f"--processes {number:,}: each loads torch, and all of them")
            return start_processes(options, number)
        return train_run(replace(options, processes=None))
    from heedful.training.ranks import LostError, join_processes

    try:
        with join_processes(ranks, options.device):
            return train_run(resolve_resumed_folder(options))
    except LostError as lost:
        if ranks.launched or options.out is None:
            raise
        raise LostError(f"{lost}; {describe_last_checkpoint(options.out)}") from lost


def is_first_process() -> bool:
    """Whether this process prints: of several that a launcher started, only the first one does."""
    ranks = detect_ranks()
    return ranks is None or ranks.first


def count_processes(options: Options) -> int:
    """Return the number of processes: as given, as in a run that is resumed, or one per GPU."""
    import torch

    from heedful.inference.devices import find_device
    from heedful.training.resume import stored_options

    if is_linear(options.model) and options.processes is None:
        return 1
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


def choose_run_folder(options: Options) -> Path:
    if options.out is not None:
        return options.out
    return next(path for path in run_paths("runs", *named_after(options)) if not path.exists())


def start_processes(options: Options, number: int) -> Finished:
    from heedful.training.train import refuse_used_folder
    from heedful.training.validation import validate

    validate(options)  # mistakes are found before any process is started
    refuse_used_folder(options)
    options = replace(options, out=choose_run_folder(options), processes=number)
    with tempfile.TemporaryDirectory(prefix="heedful-") as name:
        folder = Path(name)
        values = {k: v for k, v in asdict(options).items() if v is not None}
        command = {"command": COMMANDS[type(options)], "options": values}
        (folder / OPTIONS).write_text(json.dumps(command, default=str), encoding="utf-8")
        with forward_signals(folder) as asked:
            codes = run_torch_launcher(folder, number)
        reports = {rank: read_json_if_intact(folder / f"{rank}.json") or {} for rank in range(number)}
    raise_failure(reports, codes, asked, number, lambda: describe_last_checkpoint(options.out))
    from heedful.training.record import read_finished

    assert options.out is not None
    return read_finished(Run.open(options.out))


def run_torch_launcher(folder: Path, number: int) -> dict[int, int]:
    """Let torch's launcher start the processes, and return the exit codes of those that failed.

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
    """Suppress the launcher's own log lines, and restore its signal handler afterwards."""
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
def forward_signals(folder: Path) -> Iterator[list[signal.Signals]]:
    """Forward signals to the processes, and yield the list of those that have come.

    The processes are in sessions of their own, so that Ctrl-C reaches them from here alone. One that has not
    written its process number yet finds the note in the folder.
    """
    asked: list[signal.Signals] = []

    def forward(number: int, frame: object) -> None:
        name = signal.Signals(number)
        if not asked:
            announce_signal(name)
        asked.append(name)
        (folder / STOP).write_text(name.name)
        for file in folder.glob("*.pid"):
            with suppress(ProcessLookupError, ValueError):
                os.kill(int(file.read_text()), number)

    with handle_signals(forward, *STOP_SIGNALS):
        yield asked


def raise_failure(
    reports: Mapping[int, Mapping[str, Any]],
    codes: Mapping[int, int],
    asked: list[signal.Signals],
    number: int,
    last_checkpoint: Callable[[], str],
) -> None:
    """Raise the reason why the processes failed, if they did: of several, the one that caused the others."""
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
            reason = f"process {rank + 1} of {number} failed: {report['message']}"
            raise LostError(f"{reason}; {last_checkpoint()}")
    for rank, code in codes.items():
        if code < 0 and -code != signal.SIGTERM:
            by = signal.Signals(-code).name + HINT.get(signal.Signals(-code), "")
            raise LostError(f"process {rank + 1} of {number} was ended by {by}; {last_checkpoint()}")
    lost = next((r["message"] for r in reports.values() if r.get("kind") == "lost"), None)
    rank, code = next(iter(codes.items()))
    ended = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    raise LostError(f"{lost or f'process {rank + 1} of {number} {ended}'}; {last_checkpoint()}")


def describe_last_checkpoint(out: Path | None) -> str:
    """Say where the last checkpoint is, and how to continue."""
    from heedful.training import checkpoint

    steps = checkpoint.steps(Run(out)) if out is not None else []
    if not steps:
        return "there is no checkpoint yet"
    return f"the last checkpoint is step {steps[-1]} in {out}; the same command with --resume continues"
