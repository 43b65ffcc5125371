"""The model that is served, which is loaded again when its folder has a new one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.inference.files import Labeler
from heedful.inference.loading import load_run
from heedful.inference.predictions import PredictedLabel
from heedful.logs import notice, warn
from heedful.runs.directory import BEST, CHECKS, Run, follow_choice
from heedful.runs.files import to_json_value
from heedful.server.batching import Item
from heedful.server.statistics import Statistics

WATCHED = ("model.safetensors", "model.onnx", "heedful.json", "linear.json", "ensemble.json", "onnx.json")
LONGEST_CARD = 20_000
"""Characters of the README that `/model` shows."""


class ServedModel:
    """A predictor that can be replaced between two batches."""

    def __init__(self, folder: Path, *, device: str = "auto") -> None:
        self.folder, self.device = folder, device
        self.version = self.find_version()
        self.labeler = self.load()

    def load(self) -> Labeler:
        return Labeler(self.folder, load_run(self.folder, device=self.device))

    @property
    def pairs(self) -> bool | None:
        """Whether the model labels pairs; None if that is not known."""
        return self.labeler.pairs

    @property
    def best(self) -> Path:
        folder = follow_choice(self.folder)
        return folder / BEST if (folder / BEST).is_dir() else folder

    def label_items(self, items: Sequence[Item]) -> list[PredictedLabel]:
        """Label texts and pairs, which may be mixed where the model takes both."""
        labeler = self.labeler  # the one that is there now: a new one may come while it works
        answers: dict[int, PredictedLabel] = {}
        for paired in (False, True):
            rows = [i for i, (_, pair) in enumerate(items) if (pair is not None) == paired]
            if rows:
                chosen = labeler.label_items([items[i] for i in rows])
                answers.update(zip(rows, chosen, strict=True))
        return [answers[i] for i in range(len(items))]

    def find_version(self) -> tuple[Any, ...]:
        """Return what changes when there is a new model: the folder, and the times of its files."""
        folder = self.best
        try:
            files = [(folder / name).stat() for name in WATCHED if (folder / name).exists()]
            return (str(folder), folder.stat().st_ino, *((one.st_ino, one.st_mtime_ns) for one in files))
        except OSError:  # between the two renames of a replacement
            return ()

    async def watch(self, statistics: Statistics, seconds: float) -> None:
        """Load a new model when there is one, until this task is canceled; the old one answers meanwhile."""
        failed: tuple[Any, ...] | None = None
        while True:
            await asyncio.sleep(seconds)
            version = self.find_version()
            if version in ((), self.version, failed):
                continue
            try:
                self.labeler = await asyncio.to_thread(self.load)
            except Exception as error:
                failed = version
                statistics.failed_reloads += 1
                warn(f"{self.folder}: has a new model that cannot be loaded; the old one stays: {error}")
            else:
                self.version = version
                statistics.reloads += 1
                notice(f"{self.folder}: the new model answers from now on")

    def describe(self) -> dict[str, Any]:
        """Return what `/model` tells: labels, scores, checks and the card."""
        predictor = self.labeler.predictor
        facts: dict[str, Any] = {
            "name": self.folder.absolute().name,
            "labels": predictor.classes,
            "reads_pairs": self.pairs,
            "max_tokens": predictor.max_len,
            "scores": {},
            "checks": [],
            "card": None,
        }
        try:
            run = Run.open(self.folder)
        except UserError:  # an exported folder
            run = None
        if run is not None and run.has_results:
            facts["scores"] = to_json_value(run.read_results().splits)
        if run is not None and (run.path / CHECKS).is_file():
            facts["checks"] = to_json_value(run.read_checks().checks)
        card = self.best / "README.md"
        if card.is_file():
            facts["card"] = card.read_text("utf-8", errors="replace")[:LONGEST_CARD]
        return facts
