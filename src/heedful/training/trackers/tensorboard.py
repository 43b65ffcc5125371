"""TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.runs.schemas import Metrics, Results
from heedful.training.trackers.values import name_values


class TensorBoard:
    """Writes losses, scores and learning rates for TensorBoard, in a folder of the run."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError('--tensorboard needs its package: pip install "heedful[tensorboard]"') from None
        self.writer: Any = SummaryWriter(str(folder / "tensorboard"))

    def begin(self, config: Mapping[str, Any]) -> None:
        """Nothing to write: TensorBoard shows curves alone."""

    def log(self, row: Metrics) -> None:
        for name, value in name_values(row).items():
            self.writer.add_scalar(name, value, row.step)
        self.writer.flush()

    def end(self, results: Results) -> None:
        self.writer.close()
