"""Classification on a frozen body, or the frozen lower layers of one, whose states are computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.features import Features
from heedful.objectives.base import Floats, Inputs, Ints, Objective, evaluation_mode
from heedful.objectives.classify import Classify
from heedful.objectives.features import compute_pooled


class ClassifyFeatures(Classify):
    """Classification on a frozen body, which runs once; its pooled states are kept, and the head is trained.

    Grade: same mathematics, with dropout in the body off. Twenty epochs cost about one forward pass.
    A step is so small that a second thread would only cost time.
    """

    threads = 1

    def __init__(self, plain: Classify, model: Any, split: str | None = None) -> None:
        """Run the body over all texts that training needs, or over one split."""
        self.__dict__.update(plain.__dict__)
        self.plain = plain
        self.computed_rows = {name: np.arange(len(tokens)) for name, tokens in self.tokens.items()}
        if split is None:
            self.computed_rows["train"] = self.rows
        else:
            self.computed_rows = {split: self.computed_rows[split]}
        self.features: dict[str, Features] = {
            name: compute_pooled(plain, model, name, rows) for name, rows in self.computed_rows.items()
        }
        self.seconds = sum(features.seconds for features in self.features.values())

    @property
    def scored_objective(self) -> Objective:
        return self.plain

    def take_features(self, split: str, rows: Ints) -> Tensor:
        """Return the pooled states of some rows [len(rows), d_model]."""
        computed = self.computed_rows[split]
        positions = rows if len(computed) == len(self.tokens[split]) else np.searchsorted(computed, rows)
        return torch.from_numpy(self.features[split].states[positions])

    def pooled_states(self, model: Any, split: str, rows: Ints) -> Tensor:
        return self.take_features(split, rows)

    def inputs(self, split: str, rows: Ints) -> Inputs:
        if split not in self.features:
            return super().inputs(split, rows)
        tensors = {"features": self.take_features(split, rows)}
        return self.add_labels(tensors, split, rows, int(self.lengths[split][rows].sum()))

    def logits(self, model: nn.Module, inputs: Inputs) -> Tensor:
        result: Tensor = model.head(inputs.tensors["features"])  # type: ignore[operator]
        return result

    def probabilities(self, model: nn.Module, split: str, rows: Ints) -> Floats:
        with evaluation_mode(model) as device:
            logits = self.logits(model, self.inputs(split, rows).to(device))
            probabilities: Floats = logits.cpu().double().softmax(1).numpy()
        return probabilities

    def train_ids(self) -> Ints:
        return np.empty(0, np.int64)  # no text is read
