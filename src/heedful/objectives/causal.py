"""Causal language modeling: every token is predicted from those before it in its document."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from heedful.objectives.base import Inputs, Ints
from heedful.objectives.packed import PackedText
from heedful.objectives.setup import TextSetup


class Causal(PackedText):
    """The loss of each token given those before it (Bengio et al. 2003; Radford et al. 2018)."""

    name = "causal"
    heads = {"decoder": "causal"}  # noqa: RUF012
    shift = 1

    @classmethod
    def more(cls, setup: TextSetup) -> dict[str, Any]:
        return {"unsafe": setup.mechanism.unsafe}

    def labels(self, split: str, ids: Ints, places: Ints, rows: Ints, step: int | None) -> tuple[Ints, Ints]:
        return ids, np.asarray(self.texts[split].ids)[places + 1].astype(np.int64)

    def states(self, model: Any, inputs: Inputs) -> Tensor:
        """Return the decoder's states. Padding is on the right, where no earlier token sees it."""
        t = inputs.tensors
        found: Tensor = model.body(t["ids"], t.get("mask"), segments=t.get("segments"))
        return found

    @property
    def sees_padding(self) -> bool:
        """Whether the future is not hidden: padding is on the right."""
        return self.unsafe
