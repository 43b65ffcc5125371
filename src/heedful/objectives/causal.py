"""Causal language modeling: every token is predicted from those before it in its document."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.objectives.base import Ints
from heedful.objectives.packed import PackedText
from heedful.objectives.setup import TextSetup


class Causal(PackedText):
    """The loss of each token given those before it (Bengio et al. 2003; Radford et al. 2018)."""

    name = "causal"
    heads = {"decoder": "causal"}  # noqa: RUF012
    shift = 1

    @classmethod
    def further_arguments(cls, setup: TextSetup) -> dict[str, Any]:
        return {"unsafe": setup.mechanism.unsafe}

    def make_labels(
        self, split: str, ids: Ints, positions: Ints, rows: Ints, step: int | None
    ) -> tuple[Ints, Ints]:
        return ids, np.asarray(self.texts[split].ids)[positions + 1].astype(np.int64)

    @property
    def sees_padding(self) -> bool:
        return self.unsafe  # padding is on the right, where no earlier token sees it
