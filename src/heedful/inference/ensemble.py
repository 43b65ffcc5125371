"""The folder of an average of models: ensemble.json has the weights, and members/ has a small run per model.

A member has its configuration, its results and its best model, so that it is loaded like any other run.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from heedful.errors import UserError, shorten
from heedful.runs.directory import BEST, CONFIG, RESULTS
from heedful.runs.files import new_folder, write_json
from heedful.runs.json_files import decode_record, read_json_object

ENSEMBLE_FACTS, MEMBERS = "ensemble.json", "members"
FORMAT = 1


def holds_ensemble(folder: Path) -> bool:
    return (folder / ENSEMBLE_FACTS).is_file()


def write_ensemble(
    folder: Path, weights: Mapping[Path, float], thresholds: Sequence[float] | None = None
) -> None:
    """Write an average of finished runs, which are given with their weights.

    `thresholds` are the probabilities from which each of several labels per text is predicted.
    Files are hard links where the disk has them: they take no room, and survive the removal of the runs.
    """
    with new_folder(folder) as new:
        for run in weights:
            member = new / MEMBERS / run.name
            shutil.copytree(run / BEST, member / BEST, copy_function=link_file)
            for name in (CONFIG, RESULTS):
                shutil.copy2(run / name, member / name)
        members = {run.name: weight for run, weight in weights.items()}
        facts: dict[str, Any] = {"format": FORMAT, "weights": members}
        if thresholds is not None:
            facts["thresholds"] = thresholds
        write_json(new / ENSEMBLE_FACTS, facts)


def read_thresholds(folder: Path) -> list[float] | None:
    """Return the threshold of each of several labels per text; None for other kinds of answers."""
    thresholds = read_facts(folder).thresholds
    return None if thresholds is None else list(thresholds)


def link_file(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def read_weights(folder: Path) -> dict[Path, float]:
    """Return the folder of each member, and its weight."""
    return {folder / MEMBERS / name: weight for name, weight in read_facts(folder).weights.items()}


@dataclass(frozen=True)
class EnsembleFacts:
    """ensemble.json, as far as predicting needs it."""

    weights: Annotated[Mapping[str, Annotated[float, Meta(gt=0, le=1e9)]], Meta(min_length=1)]
    thresholds: tuple[Annotated[float, Meta(ge=0, le=1)], ...] | None = None


def read_facts(folder: Path) -> EnsembleFacts:
    path = folder / ENSEMBLE_FACTS
    stored = read_json_object(path)
    if stored.get("format") != FORMAT:
        raise UserError(f"{path}: was written by another version of heedful; make it again")
    facts = decode_record(EnsembleFacts, stored, str(path))
    for name in facts.weights:
        if Path(name).name != name or name.startswith("."):
            raise UserError(f'{path}: "{shorten(name)}" is not the name of a member')
    return facts
