"""Weights & Biases. $WANDB_MODE=offline keeps everything on this machine, in the run's folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.runs.schemas import Metrics, Results
from heedful.training.trackers.values import (
    PROJECT,
    flatten_config,
    import_tracker,
    name_results,
    name_values,
)


class WandB:
    def __init__(self, folder: Path) -> None:
        self.package: Any = import_tracker("wandb", "wandb")
        self.folder = folder.absolute()

    def begin(self, config: Mapping[str, Any]) -> None:
        self.run: Any = self.package.init(
            project=PROJECT, name=self.folder.name, dir=str(self.folder), config=flatten_config(config)
        )

    def log(self, row: Metrics) -> None:
        self.run.log(name_values(row), step=row.step)

    def end(self, results: Results) -> None:
        self.run.summary.update(name_results(results))
        self.run.finish()
