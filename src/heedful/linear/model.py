"""A logistic regression on tf-idf features, as a model that is saved, loaded and predicts.

Its folder has linear.json (the labels and the terms) and model.safetensors (weights). Predicting needs numpy
and scipy alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from safetensors.numpy import save as to_bytes
from scipy.special import softmax

from heedful.errors import UserError
from heedful.linear.logistic import LinearFit, fit_logistic
from heedful.linear.solver import Floats, Labels
from heedful.linear.tfidf import CHUNK, Block, TfidfFeatures, fit_tfidf
from heedful.options.model_names import LINEAR_MODELS
from heedful.runs.files import write_bytes, write_json
from heedful.runs.json_files import read_json

FACTS, WEIGHTS = "linear.json", "model.safetensors"
NO_ROWS = 0.5
"""What a label without training rows counts as, so that it is not impossible."""
FORMAT = 1
WORDS = "words"
"""The folder, beside a network's weights, of a model of words whose logits are added to the network's."""


def is_linear(model: str) -> bool:
    """Whether a name is that of a linear model, whatever the current folder has; ./tfidf is a folder."""
    return model in LINEAR_MODELS


def holds_linear(folder: Path) -> bool:
    return (folder / FACTS).is_file()


@dataclass(frozen=True)
class TfidfModel:
    labels: tuple[str, ...]
    features: TfidfFeatures
    linear: LinearFit

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        pairs: Sequence[str] | None,
        labels: Labels,
        label_names: Sequence[str],
        **options: Any,
    ) -> TfidfModel:
        """Fit the features and the weights; the options are those of `fit_logistic`."""
        features, matrix = fit_tfidf(texts, pairs, len(label_names))
        return cls(tuple(label_names), features, fit_logistic(matrix, labels, len(label_names), **options))

    @classmethod
    def from_shares(cls, labels: Labels, label_names: Sequence[str]) -> TfidfModel:
        """Return a model without terms, whose probabilities are the shares of the labels for every text."""
        counts = np.maximum(np.bincount(labels, minlength=len(label_names)), NO_ROWS)
        shares = LinearFit(np.zeros((len(counts), 0)), np.log(counts / counts.sum()), 1.0)
        return cls(tuple(label_names), TfidfFeatures(()), shares)

    @property
    def reads_pairs(self) -> bool:
        return bool(self.features.pair_blocks)

    def logits(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> Floats:
        parts: list[Floats] = [np.empty((0, len(self.labels)))]
        for start in range(0, len(texts), CHUNK):
            chunk = slice(start, start + CHUNK)
            matrix = self.features.transform(texts[chunk], None if pairs is None else pairs[chunk])
            parts.append(self.linear.apply(matrix))
        return np.concatenate(parts)

    def probabilities(
        self, texts: Sequence[str], pairs: Sequence[str] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the probability of each label `[n, n_classes]`."""
        return np.asarray(softmax(self.logits(texts, pairs), axis=1), np.float64)

    def add_logits(
        self, probabilities: Floats, texts: Sequence[str], pairs: Sequence[str] | None
    ) -> npt.NDArray[np.float64]:
        """Return the probabilities after this model's logits are added to those of another one."""
        logits = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
        return np.asarray(softmax(logits + self.logits(texts, pairs), axis=1), np.float64)

    def save(self, folder: Path, **facts: Any) -> None:
        """Write the model; `facts` are further entries of its JSON file."""
        folder.mkdir(parents=True, exist_ok=True)
        blocks = {"blocks": self.features.blocks, "pair_blocks": self.features.pair_blocks}
        described = {
            name: [{"analyzer": block.analyzer, "terms": block.terms} for block in side]
            for name, side in blocks.items()
        }
        tensors: dict[str, Floats] = {
            f"{name}.{i}.idf": block.idf for name, side in blocks.items() for i, block in enumerate(side)
        }
        tensors |= {"weight": self.linear.weight, "bias": self.linear.bias}
        write_bytes(folder / WEIGHTS, to_bytes(tensors))
        about = {"format": FORMAT, "labels": self.labels, "strength": self.linear.strength}
        write_json(folder / FACTS, {**about, **facts, **described})

    @classmethod
    def load(cls, folder: Path | str) -> TfidfModel:
        folder = Path(folder)
        facts, tensors = read_json(folder / FACTS), load_file(folder / WEIGHTS)
        if facts.get("format") != FORMAT:
            raise UserError(f"{folder / FACTS}: was written by another version of heedful; fit it again")
        sides = [
            tuple(
                Block(block["analyzer"], tuple(block["terms"]), tensors[f"{name}.{i}.idf"])
                for i, block in enumerate(facts[name])
            )
            for name in ("blocks", "pair_blocks")
        ]
        linear = LinearFit(tensors["weight"], tensors["bias"], float(facts["strength"]))
        return cls(tuple(facts["labels"]), TfidfFeatures(*sides), linear)
