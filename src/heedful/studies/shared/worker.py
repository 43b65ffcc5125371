"""A worker: claims runs until none is left. Any number of them, on any machines that share the folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from heedful import studies
from heedful.errors import UserError
from heedful.runs.answers import write_answer
from heedful.runs.files import WriteError, write_json
from heedful.runs.json_files import read_json
from heedful.runs.leases import Lease, newest_number, read_holder
from heedful.runs.studies import LEASES, Configuration, Outcome, StudyFolder
from heedful.studies.base import Study, drop_weights
from heedful.training import resume
from heedful.training.signals import StopSignals

POLL_SECONDS = 1.0
TTL_SECONDS = 1.5 * resume.TTL_SECONDS
"""Longer than a run's own lease: who takes a job over finds its run free."""
MOST_DEATHS = 2
"""A run whose process is killed is tried once more; then it failed."""
PLAN, END = ".plan", ".end"
"""Leases to add configurations, and to conclude."""


def work(path: str | Path, threads: int | None = None) -> None:
    """Work on a study until it is concluded; waits while others hold what is left."""
    folder = StudyFolder.open(path)
    if folder.concluded:
        return
    study = studies.make(folder)
    with StopSignals().listen():
        study.check()
        while not folder.concluded:
            if work_one(study, threads):
                continue
            grown = grow(study)
            if grown:
                continue
            if grown is None or not all(outcome.over for outcome in folder.outcomes()):
                time.sleep(POLL_SECONDS)
            else:
                conclude(study)


def work_one(study: Study, threads: int | None) -> bool:
    """Claim a job and make its runs; False when there is none to claim."""
    open_jobs: dict[str, list[Configuration]] = {}
    for outcome in study.folder.outcomes():
        if not outcome.over:
            open_jobs.setdefault(outcome.configuration.claim, []).append(outcome.configuration)
    for name, job in open_jobs.items():
        with claimed(study.folder, name) as died:
            if died is None:
                continue
            left = [c for c in job if not study.folder.outcome(c).over]
            if died and left:
                bury(study.folder, left[0])
                left = [c for c in left if not study.folder.outcome(c).over]
            if left:
                study.work_all(left, threads)
                tell(study)
            return True
    return False


@contextmanager
def claimed(folder: StudyFolder, name: str) -> Iterator[bool | None]:
    """Hold a lease: None when another has it, else whether its former holder died at work."""
    lease = claim(folder, name)
    if lease is None:
        yield None
        return
    taken, died = lease
    with taken.held():
        yield died


def claim(folder: StudyFolder, name: str) -> tuple[Lease, bool] | None:
    """Take a lease that is free, expired, or held by a process of this machine that is gone."""
    place = folder.lease(name)
    newest = newest_number(place)
    try:
        died = newest > 0 and not read_holder(place, newest).released
        resume.refuse_held(place)
    except WriteError:
        raise
    except UserError:
        return None
    lease = Lease.claim(place, resume.process_name(os.getpid()), TTL_SECONDS)
    return None if lease is None else (lease, died)


def bury(folder: StudyFolder, configuration: Configuration) -> None:
    """Count the deaths at a run; after the last one that is allowed it failed."""
    place = folder.path / LEASES / f"{configuration.name}.deaths"
    deaths = 1 + (int(read_json(place)["deaths"]) if place.is_file() else 0)
    write_json(place, {"deaths": deaths})
    if deaths >= MOST_DEATHS:
        folder.fail(
            configuration.name,
            f"its process was killed {deaths} times; most likely it does not fit in memory",
        )


def grow(study: Study) -> bool | None:
    """Add the configurations that the runs so far ask for, if there are any; None while another plans."""
    with claimed(study.folder, PLAN) as died:
        if died is None:
            return None
        study.record = study.folder.read()
        new = study.grow(study.folder.outcomes())
        if new:
            study.folder.add(new)
            study.record = study.folder.read()
        return bool(new)


def conclude(study: Study) -> None:
    """Do what comes after the last run, and write the answer."""
    with claimed(study.folder, END) as died:
        if died is None:
            time.sleep(POLL_SECONDS)
            return
        # Another may have concluded, or added runs, since this process last looked.
        if study.folder.concluded or grow(study) is not False:
            return
        if not all(outcome.over for outcome in study.folder.outcomes()):
            return
        if not study.answers_failure(study.folder.outcomes()):
            refuse_all_failed(study.folder, study.folder.outcomes())
        study.finish(study.folder.outcomes())
        drop_weights(study.record.keep, study.folder.outcomes())
        answer = study.answer(study.folder.outcomes())
        write_answer(study.folder.path, replace(answer, finished=True, command=study.record.command))


def tell(study: Study) -> None:
    """Write what is known so far, for whoever looks while the study is at work."""
    study.record = study.folder.read()
    outcomes = study.folder.outcomes()
    if any(not o.over for o in outcomes) and any(o.state == "finished" for o in outcomes):
        answer = study.answer(outcomes)
        write_answer(study.folder.path, replace(answer, finished=False, command=study.record.command))


def refuse_all_failed(folder: StudyFolder, outcomes: Sequence[Outcome]) -> None:
    """Without a single finished run there is nothing to conclude."""
    if outcomes and all(o.state == "failed" for o in outcomes):
        reasons = list(dict.fromkeys(o.ended.reason for o in outcomes if o.ended))
        more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        raise UserError(f"{folder.path}: every run failed: {reasons[0]}{more}; --retry tries them again")
