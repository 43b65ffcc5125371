"""From which probability the second of two labels is predicted, stored beside the weights of a model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from heedful.runs.files import write_json
from heedful.runs.json_files import decode_record, read_json

DECISION = "decision.json"
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Decision:
    """A threshold of the probability of one of two labels."""

    label: str
    """The second of the two labels, which is predicted from the threshold on."""
    threshold: Annotated[float, Meta(ge=0, le=1)]
    tuned_for: str | None = None
    """The metric that it was tuned for on dev; None if it was given."""

    def predict(self, probabilities: Array) -> npt.NDArray[np.int64]:
        """Return the number of the label that is predicted for each row `[n, 2]`."""
        return (probabilities[:, 1] >= self.threshold).astype(np.int64)

    def save(self, folder: Path) -> None:
        write_json(folder / DECISION, asdict(self))


def read_decision(folder: Path) -> Decision | None:
    """Return the decision of the model in a folder; None if the most probable label is predicted."""
    file = folder / DECISION
    return decode_record(Decision, read_json(file), str(file)) if file.is_file() else None
