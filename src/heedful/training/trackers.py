"""Who else wants to know: a hook has one method, called with each row of metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from heedful.errors import UserError
from heedful.runs.schemas import Metrics


class Hook(Protocol):
    """Implement this one method to follow a run."""

    def row(self, metrics: Metrics) -> None:
        """One row of metrics.jsonl, as it is written."""


class TensorBoard:
    """Writes losses and scores for TensorBoard (`pip install tensorboard`)."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise UserError("--tensorboard needs the package tensorboard; pip install tensorboard") from None
        self.writer: Any = SummaryWriter(str(folder))

    def row(self, metrics: Metrics) -> None:
        """Write what the row has."""
        for name in ("loss", "value", "lr"):
            value = getattr(metrics, name)
            if value is not None:
                self.writer.add_scalar(f"{metrics.split}/{name}", value, metrics.step)
        self.writer.flush()
