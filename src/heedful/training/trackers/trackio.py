"""Trackio, which keeps runs in a local database ($TRACKIO_DIR); `trackio show` draws them."""

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


class Trackio:
    def __init__(self, folder: Path) -> None:
        self.package: Any = import_tracker("trackio", "trackio")
        self.name = folder.absolute().name

    def begin(self, config: Mapping[str, Any]) -> None:
        texts = {name: str(value) for name, value in flatten_config(config).items()}
        self.run: Any = self.package.init(project=PROJECT, name=self.name, config=texts, embed=False)

    def log(self, row: Metrics) -> None:
        self.run.log(name_values(row), step=row.step)

    def end(self, results: Results) -> None:
        self.run.log({f"final/{name}": value for name, value in name_results(results).items()})
        self.run.finish()
