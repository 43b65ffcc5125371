"""N-gram language models: what counting tokens predicts, as a baseline of every perplexity.

They read the same tokens as the model, predict the same ones and are scored in the same unit. A model that is
no better than a trigram has not learned to use more than the last two tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.packing import concatenate_ranges
from heedful.objectives import Causal, Masked

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
NAMES = ("unigram", "bigram", "trigram")
MOST_TOKENS = 2_000_000
"""Number of training tokens that are counted, evenly spaced over the text: about a second of one core."""
USUAL_DISCOUNT = 0.75
"""The discount where there are too few counts to estimate it (Kneser and Ney 1995)."""


class KneserNey:
    """Interpolated modified Kneser-Ney smoothing (Chen and Goodman 1998, section 3), in numpy.

    An n-gram is one number, `(first * width + second) * width + ...`, whose remainder by `width ** k` is its
    last k tokens. Tokens are below `vocab_size`; `vocab_size` itself marks the beginning of a text.
    """

    def __init__(self, grams: Ints, order: int, vocab_size: int) -> None:
        self.vocab_size, self.width = vocab_size, vocab_size + 1
        self.levels: list[Level] = []
        keys, counts = np.unique(grams % self.width**order, return_counts=True)
        for k in range(order, 0, -1):
            self.levels.insert(0, Level.of(keys, counts, self.width))
            # The lower orders count in how many contexts a token occurs, not how often.
            keys, counts = np.unique(keys % self.width ** (k - 1), return_counts=True)

    def probabilities(self, grams: Ints) -> Floats:
        """Return the probability of the last token of each n-gram, given the others."""
        p: Floats = np.full(len(grams), 1 / self.vocab_size)
        for k, level in enumerate(self.levels, 1):
            p = level.interpolate(grams % self.width**k, p, self.width)
        return p


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, sorted, and for each of their contexts what is left to the lower order."""

    keys: Ints
    discounted: Floats
    contexts: Ints
    totals: Floats
    left_over: Floats

    @classmethod
    def of(cls, keys: Ints, counts: Ints, width: int) -> Level:
        contexts, firsts = np.unique(keys // width, return_index=True)
        discounts = estimate_discounts(counts)[np.minimum(counts, 3) - 1]
        totals = np.add.reduceat(counts, firsts).astype(np.float64)
        return cls(keys, counts - discounts, contexts, totals, np.add.reduceat(discounts, firsts))

    def interpolate(self, grams: Ints, lower: Floats, width: int) -> Floats:
        """Return the probabilities of n-grams, from those of the order below, which unseen contexts keep."""
        at = np.minimum(np.searchsorted(self.keys, grams), len(self.keys) - 1)
        counts = np.where(self.keys[at] == grams, self.discounted[at], 0.0)
        contexts = grams // width
        at = np.minimum(np.searchsorted(self.contexts, contexts), len(self.contexts) - 1)
        p = (counts + self.left_over[at] * lower) / self.totals[at]
        return np.where(self.contexts[at] == contexts, p, lower)


def estimate_discounts(counts: Ints) -> Floats:
    """Return what is subtracted from counts of 1, of 2, and of 3 or more, from how many there are of each."""
    n = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].astype(np.float64)
    discounts = np.full(3, USUAL_DISCOUNT)
    if n.all():
        ratio = n[0] / (n[0] + 2 * n[1])
        steps = np.arange(1.0, 4.0)
        discounts = steps - (steps + 1) * ratio * n[1:] / n[:3]
        discounts = np.clip(discounts, 0.1, steps - 0.1)
    return discounts


class NgramBaselines:
    """The n-gram models of a run's training text.

    A model of masked tokens reads what follows too, so that only the frequency of tokens, the unigram, is
    comparable; span corruption predicts separators that plain text does not have, and has no baseline.
    """

    def __init__(self, objective: Any) -> None:
        self.objective, self.vocab_size = objective, int(objective.tokenizer.vocab_size)
        names = NAMES if isinstance(objective, Causal) else NAMES[:1] if isinstance(objective, Masked) else ()
        self.models: dict[str, KneserNey] = {}
        self.counted = 0, 0
        """Number of training tokens that were counted, and that there are."""
        if names and "train" in objective.texts:
            grams = self.train_grams()
            self.models = {name: KneserNey(grams, k, self.vocab_size) for k, name in enumerate(names, 1)}

    def train_grams(self) -> Ints:
        packing, ids = self.objective.packings["train"], np.asarray(self.objective.texts["train"].ids)
        pieces = np.arange(len(packing.sizes))
        total = int(packing.sizes.sum())
        if total > MOST_TOKENS:
            n = max(1, len(pieces) * MOST_TOKENS // total)
            pieces = np.linspace(0, len(pieces) - 1, n).astype(np.int64)
        self.counted = int(packing.sizes[pieces].sum()), total
        if isinstance(self.objective, Causal):
            return join_grams(ids, packing.begins[pieces], packing.sizes[pieces], self.vocab_size)
        tokens = ids[concatenate_ranges(packing.begins[pieces], packing.sizes[pieces])].astype(np.int64)
        special = np.array(sorted(self.objective.tokenizer.special_ids), np.int64)
        return tokens[~np.isin(tokens, special)]  # they are never masked

    def score(self, split: str) -> dict[str, Floats]:
        """Return each text's summed loss, in nats, over the tokens that the model is scored on."""
        if not self.models:
            return {}
        grams, texts = self.scored_grams(split)
        n = len(self.objective.texts[split])
        losses = {name: -np.log(model.probabilities(grams)) for name, model in self.models.items()}
        return {name: np.bincount(texts, loss, n).astype(np.float64) for name, loss in losses.items()}

    def scored_grams(self, split: str) -> tuple[Ints, Ints]:
        """Return the n-grams that end with the predicted tokens of a split, and the text of each."""
        objective = self.objective
        if isinstance(objective, Causal):
            packing, ids = objective.packings[split], np.asarray(objective.texts[split].ids)
            grams = join_grams(ids, packing.begins, packing.sizes, self.vocab_size)
            return grams, np.repeat(packing.documents, packing.sizes)
        import torch

        batches = list(objective.evaluation_batches(split, None, torch.device("cpu")))
        labels = [batch.tensors["labels"].numpy() for batch, _ in batches]
        return np.concatenate([part[part >= 0] for part in labels]), np.concatenate([t for _, t in batches])


def join_grams(ids: npt.NDArray[Any], begins: Ints, sizes: Ints, vocab_size: int) -> Ints:
    """Return the trigrams that end with each token that a causal model predicts in these pieces of text.

    A piece of size n has n + 1 tokens, of which the first is given. Before it is the mark of a beginning.
    """
    width = vocab_size + 1
    inputs = concatenate_ranges(begins, sizes)
    second, third = ids[inputs].astype(np.int64), ids[inputs + 1].astype(np.int64)
    begin_of = np.repeat(begins, sizes)
    before = ids[np.maximum(inputs - 1, 0)].astype(np.int64)
    first = np.where(inputs > begin_of, before, vocab_size)
    return (first * width + second) * width + third
