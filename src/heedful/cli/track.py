"""`heedful track`: upload a finished run to a tracker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import console


def command(run: Path, /, *, to: Annotated[str, Parameter(show_default=False)]) -> None:
    """Upload a finished run to a tracker: its options, its curves and its scores.

    --track NAME does the same while a run trains. MLflow keeps runs where
    $MLFLOW_TRACKING_URI says, by default in mlflow.db in the current folder.

    Examples:
      heedful track runs/sst2 --to mlflow
      WANDB_MODE=offline heedful track runs/sst2 --to wandb

    Parameters
    ----------
    run
        Folder of a finished run.
    to
        tensorboard, mlflow, trackio, wandb, or a tracker that another package adds.
    """
    from heedful.runs.directory import Run
    from heedful.training.trackers import upload_run

    upload_run(Run.open(run), to)
    console().print(f"{run}: uploaded to {to}", markup=False)
