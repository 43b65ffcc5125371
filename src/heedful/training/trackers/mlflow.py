"""MLflow. Runs are kept where $MLFLOW_TRACKING_URI says, by default in mlflow.db in the current folder."""

from __future__ import annotations

import os
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

LONGEST = 500
"""Characters of a parameter that MLflow stores."""


class MLflow:
    def __init__(self, folder: Path) -> None:
        package = import_tracker("mlflow.tracking", "mlflow")
        self.client: Any = package.MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", "sqlite:///mlflow.db"))
        self.name, self.run = folder.absolute().name, ""

    def begin(self, config: Mapping[str, Any]) -> None:
        experiment = self.client.get_experiment_by_name(PROJECT)
        number = self.client.create_experiment(PROJECT) if experiment is None else experiment.experiment_id
        self.run = self.client.create_run(number, run_name=self.name).info.run_id
        for name, value in flatten_config(config).items():
            self.client.log_param(self.run, name, str(value)[:LONGEST])

    def log(self, row: Metrics) -> None:
        for name, value in name_values(row).items():
            self.client.log_metric(self.run, name, value, step=row.step)

    def end(self, results: Results) -> None:
        for name, value in name_results(results).items():
            self.client.log_metric(self.run, f"final/{name}", value)
        self.client.set_terminated(self.run)
