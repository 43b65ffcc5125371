"""Run a study from its beginning to its answer: workers in child processes, watched until the last run.

The watching process makes no run itself, so that a run that kills its worker leaves the study alive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from heedful import __version__
from heedful.errors import UserError
from heedful.options.studies import StudyOptions
from heedful.options.training import AdaptOptions
from heedful.options.values import check_bounds
from heedful.runs.answers import Answer
from heedful.runs.environment import usable_cores
from heedful.runs.studies import LOGS, StudyFolder, StudyRecord, begin, choose_study_folder
from heedful.studies.base import Study
from heedful.studies.shared import cluster
from heedful.studies.shared.commands import write_command
from heedful.studies.shared.live_table import live_table
from heedful.studies.shared.worker import work
from heedful.training.signals import StoppedError, StopSignals

CHECK_SECONDS = 0.5


def run_study(
    kind: type[Study], options: StudyOptions, run: AdaptOptions | None = None
) -> tuple[StudyFolder, Answer]:
    """Begin a study or continue it, and return its folder and its answer.

    Parameters
    ----------
    kind
        The study's class.
    options
        The study's own options, an instance of `kind.options`.
    run
        The options of its runs, an instance of `kind.run_options` where it has one.

    """
    check_bounds(options)
    if options.launch.elsewhere and options.jobs != 1:
        raise UserError("--jobs is for workers on this machine; --max-parallel is for those of a cluster")
    threads: int | None = getattr(options if run is None else run, "threads", None)
    plan = kind.plan(options, run)
    command, configurations = write_command(kind, options, run), tuple(plan.configurations)
    record = StudyRecord(
        kind.name, plan.question, plan.seed, plan.options, configurations, command, options.keep, __version__
    )
    folder = choose_study_folder(record, options.out, plan.folder_words)
    if options.launch.elsewhere and options.launch.dry_run:
        cluster.show_script(record, options.launch, folder, threads)
    new_folders = [path for path in (folder.path, folder.path.parent) if not path.exists()]
    folder = begin(record, folder.path, plan.folder_words, overwrite=options.overwrite)
    if options.retry:
        folder.retry()
    all_threads = threads or usable_cores()
    try:
        if not folder.concluded and options.launch.elsewhere:
            cluster.submit_workers(folder, options.launch, threads)
        elif not folder.concluded and options.jobs == 0:
            work(folder.path, all_threads)
        elif not folder.concluded:
            supervise(folder, options.jobs, max(1, all_threads // options.jobs))
    except StoppedError as error:
        raise describe_stop(folder, error) from None
    except LostWorkersError:
        raise  # the logs say why
    except UserError:
        remove_unbegun(folder, new_folders)
        raise
    answer = folder.find_answer()
    assert answer is not None
    return folder, answer


def describe_stop(folder: StudyFolder, error: StoppedError) -> StoppedError:
    outcomes = folder.read_outcomes()
    over = sum(outcome.over for outcome in outcomes)
    cause = str(error).partition(" after ")[0].partition(";")[0]
    done = f"{over} of {len(outcomes)} runs of {folder.path} are done"
    return StoppedError(f"{cause}: {done}; the same command continues")


class LostWorkersError(UserError):
    """Workers ended, and only their logs say why."""


def remove_unbegun(folder: StudyFolder, new_folders: Sequence[Path]) -> None:
    """Remove a study whose mistake was found before its first run, and the folders made for it."""
    if all(not outcome.folder.exists() for outcome in folder.read_outcomes()):
        folder.clear()
        for path in new_folders:
            with suppress(OSError):  # not empty
                path.rmdir()


def supervise(folder: StudyFolder, jobs: int, threads: int) -> None:
    """Keep workers running until the study is concluded, and show its progress."""
    stopping = StopSignals()
    workers = Workers(folder, threads)
    with stopping.defer(), live_table(folder) as live:
        try:
            while not folder.concluded:
                workers.check()
                if stopping.asked:
                    raise StoppedError(f"stopped by {stopping.asked.name}")
                while len(workers.alive) < jobs:
                    workers.start(jobs)
                live.update()
                time.sleep(CHECK_SECONDS)
        finally:
            workers.stop()
            live.update()


class Workers:
    """The workers of one study that this process has started."""

    def __init__(self, folder: StudyFolder, threads: int) -> None:
        self.folder, self.threads = folder, threads
        self.alive: dict[subprocess.Popen[bytes], Path] = {}
        self.started = 0

    def start(self, jobs: int) -> None:
        self.started += 1
        if self.started > jobs + 2 * len(self.folder.read_outcomes()) + 2:
            raise LostWorkersError(f"{self.folder.path}: the workers keep dying; see their output in {LOGS}/")
        log = self.folder.path / LOGS / f"worker-{self.started}.txt"
        log.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "heedful", "study", "worker", str(self.folder.path)]
        command += ["--threads", str(self.threads), "--parent", str(os.getpid())]
        with log.open("wb") as file:
            # In a new session, Ctrl-C reaches this process alone, which asks the workers to stop.
            worker = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        self.alive[worker] = log

    def check(self) -> None:
        """Remove the workers that have ended; a user's mistake that a worker found is raised here."""
        for worker, log in list(self.alive.items()):
            status = worker.poll()
            if status is None:
                continue
            del self.alive[worker]
            if status == UserError.status:
                raise UserError(last_line(log))
            if status > 0 and status != StoppedError.status:
                raise LostWorkersError(f"a worker ended with status {status}: {last_line(log)}; see {log}")

    def stop(self) -> None:
        """Ask all workers to stop and wait for them: each writes a checkpoint first."""
        for worker in self.alive:
            worker.terminate()
        try:
            for worker in self.alive:
                worker.wait()
        except BaseException:
            for worker in self.alive:
                worker.kill()
            raise
        self.alive.clear()


def last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
    return lines[-1].removeprefix("heedful: ")
