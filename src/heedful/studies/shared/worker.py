"""A worker claims runs until none is left. Any number of workers share a folder, on any machines."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.errors import UserError
from heedful.runs.answers import write_answer
from heedful.runs.files import WriteError, write_json
from heedful.runs.json_files import read_record
from heedful.runs.leases import Lease, newest_number, read_holder
from heedful.runs.processes import process_name
from heedful.runs.studies import LEASES, Configuration, Outcome, StudyFolder
from heedful.studies import open_study
from heedful.studies.base import Study, drop_weights
from heedful.training import resume
from heedful.training.signals import StopSignals

POLL_SECONDS = 1.0
TTL_SECONDS = 1.5 * resume.TTL_SECONDS
"""Longer than a run's own lease: a process that takes a job over finds its run free."""
MOST_DEATHS = 2
"""A run whose process is killed is tried once more; then it failed."""
PLAN, END = ".plan", ".end"
"""Leases to add configurations, and to conclude."""


def work(path: str | Path, threads: int | None = None) -> None:
    """Work on a study until it is concluded; waits while others hold what is left."""
    folder = StudyFolder.open(path)
    if folder.concluded:
        return
    study = open_study(folder)
    with StopSignals().listen():
        study.check()
        while not folder.concluded:
            if work_on_next(study, threads):
                continue
            if added := add_configurations(study):
                continue
            if added is None or not all(outcome.over for outcome in folder.read_outcomes()):
                time.sleep(POLL_SECONDS)
            else:
                conclude(study)


def work_on_next(study: Study, threads: int | None) -> bool:
    """Claim a job and make its runs; return False when there is none to claim."""
    open_jobs: dict[str, list[Configuration]] = {}
    for outcome in study.folder.read_outcomes():
        if not outcome.over:
            open_jobs.setdefault(outcome.configuration.claim, []).append(outcome.configuration)
    for name, job in open_jobs.items():
        with hold_lease(study.folder, name) as died:
            if died is None:
                continue
            left = [c for c in job if not study.folder.read_outcome(c).over]
            if died and left:
                record_death(study.folder, left[0])
                left = [c for c in left if not study.folder.read_outcome(c).over]
            if left:
                study.work_on_job(left, threads)
                write_current_answer(study)
            return True
    return False


@contextmanager
def hold_lease(folder: StudyFolder, name: str) -> Iterator[bool | None]:
    """Hold a lease inside; yields None when another has it, else whether its last holder died at work."""
    lease = claim(folder, name)
    if lease is None:
        yield None
        return
    held, died = lease
    with held.held():
        yield died


def claim(folder: StudyFolder, name: str) -> tuple[Lease, bool] | None:
    """Take a lease that is free, expired, or held by a process of this machine that is gone.

    Returns the lease and whether its last holder died at work; None when another process has it.
    """
    path = folder.lease(name)
    newest = newest_number(path)
    try:
        died = newest > 0 and not read_holder(path, newest).released
        resume.refuse_held(path)
    except WriteError:
        raise
    except UserError:
        return None
    lease = Lease.claim(path, process_name(os.getpid()), TTL_SECONDS)
    return None if lease is None else (lease, died)


@dataclass(frozen=True)
class Deaths:
    """How many processes have died at a run."""

    deaths: int


def record_death(folder: StudyFolder, configuration: Configuration) -> None:
    """Count the processes that died at a run; after `MOST_DEATHS` it failed."""
    path = folder.path / LEASES / f"{configuration.name}.deaths"
    deaths = 1 + (read_record(Deaths, path).deaths if path.is_file() else 0)
    write_json(path, {"deaths": deaths})
    if deaths >= MOST_DEATHS:
        reason = f"its process was killed {deaths} times; most likely it does not fit in memory"
        folder.fail(configuration.name, reason)


def add_configurations(study: Study) -> bool | None:
    """Add the configurations that follow from the runs so far; return whether there are any.

    None while another process is planning.
    """
    with hold_lease(study.folder, PLAN) as died:
        if died is None:
            return None
        study.record = study.folder.read()
        if new := study.grow(study.folder.read_outcomes()):
            study.folder.add(new)
            study.record = study.folder.read()
        return bool(new)


def conclude(study: Study) -> None:
    """Do what comes after the last run, and write the answer."""
    with hold_lease(study.folder, END) as died:
        if died is None:
            time.sleep(POLL_SECONDS)
            return
        # Another may have concluded, or added runs, since this process last looked.
        if study.folder.concluded or add_configurations(study) is not False:
            return
        if not all(outcome.over for outcome in study.folder.read_outcomes()):
            return
        if not study.answers_failure(study.folder.read_outcomes()):
            refuse_all_failed(study.folder, study.folder.read_outcomes())
        study.finish(study.folder.read_outcomes())
        drop_weights(study.record.keep, study.folder.read_outcomes())
        answer = study.answer(study.folder.read_outcomes())
        write_answer(study.folder.path, replace(answer, finished=True, command=study.record.command))


def write_current_answer(study: Study) -> None:
    """Write the answer so far, for those who look while the study is running."""
    study.record = study.folder.read()
    outcomes = study.folder.read_outcomes()
    if any(not o.over for o in outcomes) and any(o.state == "finished" for o in outcomes):
        answer = study.answer(outcomes)
        write_answer(study.folder.path, replace(answer, finished=False, command=study.record.command))


def refuse_all_failed(folder: StudyFolder, outcomes: Sequence[Outcome]) -> None:
    """Raise when every run failed: there is nothing to conclude."""
    if outcomes and all(o.state == "failed" for o in outcomes):
        reasons = list(dict.fromkeys(o.ended.reason for o in outcomes if o.ended))
        more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        raise UserError(f"{folder.path}: every run failed: {reasons[0]}{more}; --retry tries them again")
