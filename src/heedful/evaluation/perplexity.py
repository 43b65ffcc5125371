"""How well a language model predicts texts, in figures that say what they can be compared with.

Perplexity depends on the vocabulary: fewer, longer tokens are harder to predict each, and every unknown word
is easy. So the unknown rate and bits per character and per byte of the text are given beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.evaluation.metrics import perplexity

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Sizes:
    """What the predicted tokens of each text stand for; texts of which a part is not read are left out."""

    characters: Ints
    bytes: Ints
    whole: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Figures:
    """All figures of one set of texts."""

    perplexity: float
    """exp(total loss / predicted tokens) over the corpus: long texts count more than short ones."""
    loss: float
    """Per predicted token, in nats."""
    tokens: int
    texts: int
    mean_sentence_perplexity: float
    """The mean of each text's own perplexity: every text counts the same, and a hard one much."""
    bits_per_character: float | None = None
    bits_per_byte: float | None = None


def compute_figures(losses: npt.ArrayLike, tokens: npt.ArrayLike, sizes: Sizes | None = None) -> Figures:
    """Compute figures from each text's summed loss and predicted tokens; texts without any are left out."""
    sums, counts = np.asarray(losses, np.float64), np.asarray(tokens, np.int64)
    used = counts > 0
    if not used.any():
        raise ValueError("perplexity of no tokens")
    total, n = float(sums[used].sum()), int(counts[used].sum())
    with np.errstate(over="ignore"):
        each = np.exp(sums[used] / counts[used])
    return Figures(
        perplexity(total, n),
        total / n,
        n,
        len(each),
        float(each.mean()),
        None if sizes is None else bits_per_unit(sums, sizes.characters, used & sizes.whole),
        None if sizes is None else bits_per_unit(sums, sizes.bytes, used & sizes.whole),
    )


def bits_per_unit(losses: Floats, units: Ints, wanted: npt.NDArray[np.bool_]) -> float | None:
    """Return the bits per unit of text, over the texts that are read whole."""
    n = int(units[wanted].sum())
    return float(losses[wanted].sum() / (n * math.log(2))) if n else None


def measure_texts(texts: Any, first_ids: Ints, whole: npt.NDArray[np.bool_], tokenizer: Any) -> Sizes:
    """Count characters and bytes of texts, without those of a first token that nothing predicts.

    `first_ids` is the id of each text's first token: where it is no special token, it stands for text that
    the model was given and not asked for. An end of text is predicted and stands for no character, so that
    bits per character tell the cost of the text and of knowing where it ends.
    """
    first_sizes: dict[int, tuple[int, int]] = {}
    characters, sizes = np.zeros(len(first_ids), np.int64), np.zeros(len(first_ids), np.int64)
    for i, text in enumerate(texts):
        first = int(first_ids[i])
        if first not in first_sizes:
            piece = "" if first < 0 or first in tokenizer.special_ids else tokenizer.decode([first])
            first_sizes[first] = len(piece), len(piece.encode())
        characters[i] = max(0, len(text) - first_sizes[first][0])
        sizes[i] = max(0, len(text.encode()) - first_sizes[first][1])
    return Sizes(characters, sizes, whole)
