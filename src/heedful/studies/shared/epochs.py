"""Shared epochs: runs that differ only in their number of epochs train the epochs they have in common once.

With a constant learning rate after a warm-up in steps, no step depends on how many follow it. So a run of
seven epochs takes over the checkpoint of the run of five and resumes, which by the contract of resuming gives
the bits of a separate run. Grade: same bits.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.runs.directory import CHECKPOINTS, ENVIRONMENT, METRICS, TIMING, Run
from heedful.runs.files import new_folder
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord


def can_share_epochs(run: Mapping[str, Any]) -> bool:
    """Whether a run's steps do not depend on how many there will be; `run` holds what differs from adapt."""
    warmup = float(run.get("warmup", 0.06))
    return run.get("schedule") == "constant" and (warmup == 0 or warmup >= 1)


def find_shorter(folder: StudyFolder, record: StudyRecord, configuration: Configuration) -> Outcome | None:
    """Return the longest of the shorter runs that a run can continue."""
    epochs = configuration.settings.get("epochs")
    if not configuration.job or epochs is None or not can_share_epochs(record.options["run"]):
        return None
    shorter = [
        other
        for other in record.configurations
        if other.chain == configuration.chain and other.settings["epochs"] < epochs
    ]
    return folder.read_outcome(max(shorter, key=lambda c: int(c.settings["epochs"]))) if shorter else None


def continue_run(shorter: Path, longer: Path, configuration: Configuration) -> None:
    """Begin a longer run with what a finished shorter one has learned.

    The checkpoints move: the shorter run is finished and has its model. Whatever a kill in between loses is
    trained again.
    """
    if longer.exists() or not (shorter / CHECKPOINTS).is_dir():
        return
    with new_folder(longer) as new:
        for name in (METRICS, TIMING, ENVIRONMENT):
            shutil.copyfile(shorter / name, new / name)
        config = Run(shorter).read_config()
        epochs = int(configuration.settings["epochs"])
        Run(new).write_config({**config, "adapt": {**config["adapt"], "epochs": epochs}})
        (new / CHECKPOINTS).mkdir()
        for step in (shorter / CHECKPOINTS).glob("step-*"):
            step.rename(new / CHECKPOINTS / step.name)
