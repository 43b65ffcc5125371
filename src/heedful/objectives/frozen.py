"""Classification on a frozen body, or the frozen lower layers of one, whose states are computed once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.features import Features
from heedful.objectives.base import (
    Floats,
    Inputs,
    Ints,
    Objective,
    evaluation_mode,
    iterate_by_length,
    upcast,
)
from heedful.objectives.classify import Classify
from heedful.objectives.features import compute_pooled, compute_token_states

TRAIN_DTYPE = "float16"
"""How the states of training texts are stored: half the room of float32, and no worse where measured."""


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
            return self.reading.activate(logits)

    def train_ids(self) -> Ints:
        return np.empty(0, np.int64)  # no text is read


class ClassifyTopLayers(Classify):
    """Classification on frozen lower layers, which run once; the layers above them and the head are trained.

    Grade: same mathematics, with dropout in the lower layers off. The states of training texts are rounded to
    float16, which changed no score beyond chance where it was measured; those of dev are not rounded, so that
    dev is scored as the whole model scores it, to the bit. Test is scored once, by the whole model.
    """

    def __init__(self, plain: Classify, model: Any, layers: int) -> None:
        """Run the lower layers over the texts of train and dev."""
        self.__dict__.update(plain.__dict__)
        self.plain, self.layers = plain, layers
        self.features: dict[str, Features] = {}
        self.starts: dict[str, Ints] = {}
        """Where each text of a split begins among the states; 0 for texts without any."""
        for split in ("train", "dev"):
            if split in self.tokens:
                self.compute(model, split)
        self.seconds = sum(features.seconds for features in self.features.values())

    def compute(self, model: Any, split: str) -> None:
        rows = self.rows if split == "train" else np.arange(len(self.tokens[split]))
        dtype = TRAIN_DTYPE if split == "train" else "float32"
        lengths = self.lengths[split][rows]
        self.starts[split] = np.zeros(len(self.tokens[split]), np.int64)
        self.starts[split][rows] = np.cumsum(lengths) - lengths
        self.features[split] = compute_token_states(self.plain, model, split, rows, self.layers, dtype)

    @property
    def scored_objective(self) -> Objective:
        return self.plain

    def inputs(self, split: str, rows: Ints) -> Inputs:
        inputs = super().inputs(split, rows)
        if split not in self.features:
            return inputs
        mask = inputs.tensors["mask"].numpy()
        positions = np.where(mask, self.starts[split][rows][:, None] + np.arange(mask.shape[1]), 0)
        states = upcast(torch.from_numpy(self.features[split].states[positions]))  # [b, t, d]
        return replace(inputs, tensors={**inputs.tensors, "states": states})

    def pooled(self, model: Any, inputs: Inputs) -> Tensor:
        t = inputs.tensors
        result: Tensor = model.body.pooled_above(t["states"], t["ids"], t["mask"], self.layers)
        return result

    def logits(self, model: nn.Module, inputs: Inputs) -> Tensor:
        if "states" not in inputs.tensors:
            return super().logits(model, inputs)
        result: Tensor = model.head(self.pooled(model, inputs))  # type: ignore[operator]
        return result

    def pooled_states(self, model: Any, split: str, rows: Ints) -> Tensor:
        pooled = torch.zeros(len(rows), model.config.pooled_width)
        with evaluation_mode(model) as device:
            for batch in iterate_by_length(self.lengths[split][rows], device, "fitting the head"):
                pooled[batch] = self.pooled(model, self.inputs(split, rows[batch]).to(device)).float().cpu()
        return pooled.clone()  # made outside of inference mode

    def train_ids(self) -> Ints:
        return np.empty(0, np.int64)  # no embedding is trained
