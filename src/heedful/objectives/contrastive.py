"""A contrastive loss on labels: texts with the same label shall have similar pooled states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.data.random import stream
from heedful.objectives.base import Evaluation, Inputs, Ints, Losses, Objective, upcast
from heedful.objectives.classify import Classify
from heedful.objectives.features import fill_pooled

PARTS = 2
"""Texts of a step run through the body in this many parts, short and long ones, which saves padding."""


def supervised_contrastive_loss(states: Tensor, labels: Tensor, temperature: float) -> Tensor:
    """Return the loss of each text (Khosla et al. 2020, equation 2).

    It is the mean cross-entropy of choosing a text with the same label among all others, by the cosine.

    Parameters
    ----------
    states
        `[n, d]`
    labels
        `[n]`; each occurs at least twice.
    temperature
        Divides the cosines.

    """
    states = F.normalize(states, dim=1)
    itself = torch.eye(len(labels), dtype=torch.bool, device=states.device)
    scores = (states @ states.T / temperature).masked_fill(itself, -torch.inf)
    log_shares = scores.log_softmax(1).masked_fill(itself, 0.0)  # [n, n]
    same = (labels[:, None] == labels).logical_and(~itself)
    return -(log_shares * same).sum(1) / same.sum(1)


class LabelBatches:
    """Batches with equally many texts of each label, as a function of the step alone.

    Labels take turns if there are more than fit. At least two texts are drawn of each label; one that has a
    single text gives it twice, and dropout makes the two states differ.
    """

    def __init__(self, labels: Ints, size: int, seed: int) -> None:
        self.seed = seed
        self.rows = [np.flatnonzero(labels == label) for label in np.unique(labels)]
        self.labels_per_step = max(1, min(len(self.rows), size // 2))
        self.texts_per_label = max(2, size // self.labels_per_step)

    def choose(self, step: int) -> Ints:
        """Return the positions, among the labels, of the texts of a step."""
        n, per = self.labels_per_step, self.texts_per_label
        turns = np.arange(step * n, (step + 1) * n)
        labels = self.take_turns(len(self.rows), turns, "contrastive labels")
        batch = []
        for label, turn in zip(labels, turns // len(self.rows), strict=True):
            rows = self.rows[label]
            places = np.arange(turn * per, (turn + 1) * per)
            batch.append(rows[self.take_turns(len(rows), places, "contrastive texts", label)])
        return np.concatenate(batch)

    def take_turns(self, n: int, places: Ints, purpose: str, *keys: int) -> Ints:
        """Return some places of an endless row of permutations of the numbers below n."""
        rounds = {int(r): stream(self.seed, purpose, *keys, int(r)).permutation(n) for r in set(places // n)}
        return np.array([rounds[int(place // n)][place % n] for place in places], np.int64)


class ContrastiveClassify(Classify):
    """Trains the body to tell labels apart by the cosine of its states; the head is fitted before a score.

    One forward pass per text gives all pairs of a batch, so that the work depends on the number of steps and
    not on the number of pairs. Several processes do not share a step, since its texts are compared.
    """

    refits_head = True

    def __init__(
        self,
        plain: Classify,
        *,
        batch_size: int,
        temperature: float,
        fit_head: Callable[[Any, Classify], Any],
    ) -> None:
        self.__dict__.update(plain.__dict__)
        self.plain, self.temperature, self.fit_head = plain, temperature, fit_head
        self.weights = {"contrastive": 1.0}
        self.batches = LabelBatches(self.labels["train"][self.rows], batch_size, self.seed)
        self.head_is_old = True
        """Whether the body may have changed since the head was fitted."""

    @property
    def scored_objective(self) -> Objective:
        return self.plain

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        """Return the texts of a step, which `examples` do not decide: they have nothing to do with labels."""
        rows = self.rows[self.batches.choose(step)]
        rows = rows[np.argsort(self.lengths["train"][rows], kind="stable")]
        texts = [self.inputs("train", part) for part in np.array_split(rows, PARTS)]
        tensors = {f"{name} {i}": t for i, part in enumerate(texts) for name, t in part.tensors.items()}
        return [Inputs(tensors, {"contrastive": len(rows)}, len(rows), sum(part.tokens for part in texts))]

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        self.head_is_old = True
        t, body = inputs.tensors, model.body
        states = [
            body.pooled(t[f"ids {i}"], t[f"mask {i}"], t.get(f"types {i}"))  # type: ignore[operator, union-attr]
            for i in range(PARTS)
        ]
        labels = torch.cat([t[f"labels {i}"] for i in range(PARTS)])
        loss = supervised_contrastive_loss(upcast(torch.cat(states)), labels, self.temperature)
        return Losses({"contrastive": loss.sum()})

    def complete(self, model: nn.Module) -> None:
        if self.head_is_old:
            self.fit_head(model, self)
            self.head_is_old = False

    def pooled_states(self, model: Any, split: str, rows: Ints) -> Tensor:
        """Return what the body gives to the head; no cache keeps it, since the body changes."""
        states = np.empty((len(rows), model.config.pooled_width), np.float32)
        fill_pooled(self.plain, model, split, rows, states)
        return torch.from_numpy(states)

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        self.complete(model)
        return self.plain.evaluate(model, split, examples)

    def value(self, loss: float, right: int, n: int) -> float | None:
        """Return None: no step predicts labels."""
        return None
