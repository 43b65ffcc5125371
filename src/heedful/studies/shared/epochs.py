"""Runs that differ only in their number of epochs share their beginning.

A run of seven epochs is a run of five that goes on: with a constant rate after a warm-up in steps, no step
depends on how many follow it. So the longer run takes over the checkpoint of the shorter one and resumes,
which by the contract of resuming gives the bits of a run of its own.
Grade: the same bits.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.runs.directory import CHECKPOINTS, ENVIRONMENT, METRICS, TIMING, Run
from heedful.runs.files import new_folder
from heedful.runs.studies import Configuration, Outcome
from heedful.studies.base import Study, drop_checkpoints


def can_share(run: Mapping[str, Any]) -> bool:
    """Whether a run's steps do not depend on how many there will be; `run` holds what differs from adapt."""
    warmup = float(run.get("warmup", 0.06))
    return run.get("schedule") == "constant" and (warmup == 0 or warmup >= 1)


def go_on(shorter: Path, longer: Path, epochs: int) -> None:
    """Begin a longer run with what a finished shorter one has learnt.

    The checkpoints move: the shorter run is finished and has its model. Whatever is lost by a kill in between
    is trained again.
    """
    if longer.exists() or not (shorter / CHECKPOINTS).is_dir():
        return
    with new_folder(longer) as new:
        for name in (METRICS, TIMING, ENVIRONMENT):
            shutil.copyfile(shorter / name, new / name)
        config = Run(shorter).config()
        Run(new).write_config({**config, "adapt": {**config["adapt"], "epochs": epochs}})
        (new / CHECKPOINTS).mkdir()
        for step in (shorter / CHECKPOINTS).glob("step-*"):
            step.rename(new / CHECKPOINTS / step.name)


class Lengths(Study):
    """A study whose jobs are runs that differ only in their epochs, the shortest first."""

    def work_all(self, job: Sequence[Configuration], threads: int | None) -> None:
        """Each goes on from the one before; what that one failed of, the longer ones do too."""
        for configuration in job:
            before = self.shorter(configuration)
            if before is not None and before.state == "failed" and before.ended is not None:
                self.folder.fail(configuration.name, before.ended.reason)
                continue
            with self.attempt(configuration):
                if before is not None and before.results is not None:
                    go_on(before.folder, self.folder.run(configuration.name), self.epochs(configuration))
                self.work(configuration, threads)
        for configuration in (*self.record.configurations, *job):
            if configuration.claim == job[0].claim and self.folder.outcome(configuration).over:
                drop_checkpoints(self.folder.run(configuration.name))

    def epochs(self, configuration: Configuration) -> int:
        """How long a run is."""
        return int(configuration.settings["epochs"])

    def shorter(self, configuration: Configuration) -> Outcome | None:
        """The longest of the shorter runs that this one can go on from."""
        if not configuration.job or not can_share(self.record.options["run"]):
            return None
        found = [
            other
            for other in self.record.configurations
            if other.chain == configuration.chain and self.epochs(other) < self.epochs(configuration)
        ]
        return self.folder.outcome(max(found, key=self.epochs)) if found else None
