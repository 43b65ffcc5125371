"""A study from its beginning to its answer: workers in child processes, watched until the last run.

The watching process never imports torch, so that a run that kills its worker leaves the study alive.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from heedful.errors import UserError
from heedful.options.studies import StudyOptions
from heedful.options.values import check_bounds
from heedful.runs.answers import Answer
from heedful.runs.environment import usable_cores
from heedful.runs.studies import LOGS, StudyFolder, StudyRecord, begin, place_of
from heedful.studies.shared import cluster
from heedful.studies.shared.live_table import watched
from heedful.studies.shared.worker import work
from heedful.training.signals import StoppedError, StopSignals

LOOK_SECONDS = 0.5


def run(
    record: StudyRecord, options: StudyOptions, parts: Sequence[str], threads: int | None = None
) -> tuple[StudyFolder, Answer]:
    """Begin a study or continue it, and give its answer. `parts` name its folder where none is given."""
    check_bounds(options)
    if options.launch.elsewhere and options.jobs != 1:
        raise UserError("--jobs is for workers here; --max-parallel says how many a cluster gives")
    record = replace(record, keep=options.keep)
    place = place_of(record, options.out, parts)
    if options.launch.elsewhere and options.launch.dry_run:
        cluster.show(record, options.launch, place, threads)
    new = [path for path in (place.path, place.path.parent) if not path.exists()]
    folder = begin(record, place.path, parts, overwrite=options.overwrite)
    if options.retry:
        folder.retry()
    whole = threads or usable_cores()
    try:
        if not folder.concluded and options.launch.elsewhere:
            cluster.work(folder, options.launch, threads)
        elif not folder.concluded and options.jobs == 0:
            work(folder.path, whole)
        elif not folder.concluded:
            supervise(folder, options.jobs, max(1, whole // options.jobs))
    except StoppedError as error:
        raise stopped(folder, error) from None
    except LostWorkersError:
        raise  # the logs say why
    except UserError:
        forget_unbegun(folder, new)
        raise
    answer = folder.answer()
    assert answer is not None
    return folder, answer


def stopped(folder: StudyFolder, error: StoppedError) -> StoppedError:
    """Say how far the study is."""
    outcomes = folder.outcomes()
    over = sum(outcome.over for outcome in outcomes)
    said = str(error).partition(" after ")[0].partition(";")[0]
    return StoppedError(
        f"{said}: {over} of {len(outcomes)} runs of {folder.path} are done; the same command continues"
    )


class LostWorkersError(UserError):
    """Workers ended without a word about why, other than in their logs."""


def forget_unbegun(folder: StudyFolder, new: Sequence[Path]) -> None:
    """A mistake found before the first run leaves no study behind, and of the folders none that is new."""
    if all(not outcome.folder.exists() for outcome in folder.outcomes()):
        folder.clear()
        for path in new:
            with suppress(OSError):  # not empty
                path.rmdir()


def supervise(folder: StudyFolder, jobs: int, threads: int) -> None:
    """Keep workers at work until the study is concluded, and show how far it is."""
    stopping = StopSignals()
    crew = Crew(folder, threads)
    with stopping.defer(), watched(folder) as live:
        try:
            while not folder.concluded:
                crew.look()
                if stopping.asked:
                    raise StoppedError(f"stopped by {stopping.asked.name}")
                while len(crew.alive) < jobs:
                    crew.start(jobs)
                live.update()
                time.sleep(LOOK_SECONDS)
        finally:
            crew.dismiss()
            live.update()


class Crew:
    """The workers of one study that this process has started."""

    def __init__(self, folder: StudyFolder, threads: int) -> None:
        self.folder, self.threads = folder, threads
        self.alive: dict[subprocess.Popen[bytes], Path] = {}
        self.started = 0

    def start(self, jobs: int) -> None:
        """Start one more."""
        self.started += 1
        if self.started > jobs + 2 * len(self.folder.outcomes()) + 2:
            said = f"{self.folder.path}: workers die again and again; {LOGS}/ has what they said"
            raise LostWorkersError(said)
        log = self.folder.path / LOGS / f"worker-{self.started}.txt"
        log.parent.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "heedful", "study", "worker", str(self.folder.path)]
        with log.open("wb") as file:
            worker = subprocess.Popen(
                [*command, "--threads", str(self.threads), "--parent", str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,  # Ctrl-C reaches this process alone, which asks the workers to stop
            )
        self.alive[worker] = log

    def look(self) -> None:
        """See who has ended; a mistake that a worker found is a mistake of the study's."""
        for worker, log in list(self.alive.items()):
            status = worker.poll()
            if status is None:
                continue
            del self.alive[worker]
            if status == UserError.status:
                raise UserError(last_words(log))
            if status > 0 and status != StoppedError.status:
                raise LostWorkersError(f"a worker ended with status {status}: {last_words(log)}; see {log}")

    def dismiss(self) -> None:
        """Ask all to stop, and wait until they have: each writes a checkpoint first."""
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


def last_words(log: Path) -> str:
    """The last line that a worker said."""
    lines: Sequence[str] = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
    return lines[-1].removeprefix("heedful: ")
