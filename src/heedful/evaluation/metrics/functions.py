"""What the built-in metrics are computed by, with their intervals and paired tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.statistics.comparison import Comparison, compare
from heedful.statistics.confusion import macro_f1_batch
from heedful.statistics.intervals import perplexity_interval
from heedful.statistics.proportions import Interval, wilson
from heedful.statistics.seeds import UNKNOWN, SeedVariance, share_scores

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
TEXT_GROUPS = 5000
"""The largest number of texts that perplexity is resampled over; more texts are resampled in groups."""


def accuracy(labels: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    right = correct(labels, predicted)
    if not len(right):
        raise ValueError("accuracy of no examples")
    return float(right.mean())


def correct(labels: npt.ArrayLike, predicted: npt.ArrayLike) -> npt.NDArray[np.bool_]:
    """Return which examples are right; with several labels per example, all of them must be."""
    truth, guess = np.asarray(labels), np.asarray(predicted)
    if truth.shape != guess.shape:
        raise ValueError(f"{truth.shape} labels and {guess.shape} predictions do not belong together")
    right = np.asarray(truth == guess, dtype=np.bool_)
    return right if right.ndim < 2 else np.asarray(right.all(1))


def share_interval(labels: Array, predicted: Array) -> Interval | None:
    """Return Wilson's interval of the share of predictions that equal their label."""
    return wilson(int(correct(labels, predicted).sum()), len(labels)) if len(labels) else None


def share_test(
    targets: Array,
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    names: tuple[str, str] = ("a", "b"),
    seeds: SeedVariance = UNKNOWN,
) -> Comparison:
    """Compare two arms by their shares of right predictions: McNemar's test for single runs."""
    right_a, right_b = ([correct(targets, run) for run in runs] for runs in (a, b))
    return compare(right_a, right_b, names=names, seeds=seeds)


def exact_match(references: Array, generated: Array) -> float:
    """Return the share of generated texts that equal their reference, runs of white space counting as one."""
    return accuracy([" ".join(t.split()) for t in references], [" ".join(t.split()) for t in generated])


def mean_share(right: Floats, seeds: SeedVariance = UNKNOWN) -> tuple[float, Interval]:
    """Return the mean share of right examples `[runs, n]`, and its interval over examples and seeds.

    The interval is Wilson's, of as many examples as give the mean's variance over examples, extended at each
    end by the deviation of the seeds (both at once, as independent deviations: Zou and Donner 2008).
    """
    mean, (runs, n) = float(right.mean()), right.shape
    variance, own = share_scores(right).variances()
    shared = max(variance - own, variance / runs)
    examples = n * variance / shared if shared > 0 else n
    low, high = wilson(mean * examples, examples)
    below, above = seeds.extend(mean - low), seeds.extend(high - mean)
    return mean, Interval(max(0.0, mean - below), min(1.0, mean + above))


def confusion(labels: npt.ArrayLike, predicted: npt.ArrayLike, n_classes: int) -> npt.NDArray[np.int64]:
    """Count examples: one row per true class, one column per predicted class."""
    truth, guess = np.asarray(labels, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    if truth.shape != guess.shape:
        raise ValueError(f"{truth.shape} labels and {guess.shape} predictions do not belong together")
    if len(truth) and not 0 <= min(truth.min(), guess.min()) <= max(truth.max(), guess.max()) < n_classes:
        raise ValueError(f"classes are numbered 0 to {n_classes - 1}")
    cells = np.bincount(truth * n_classes + guess, minlength=n_classes * n_classes)
    return cells.reshape(n_classes, n_classes).astype(np.int64)


def macro_f1(cells: npt.ArrayLike) -> float:
    """Return the unweighted mean of the classes' F1 of a confusion matrix.

    A class that neither occurs nor is predicted is left out; one that occurs and is never predicted counts 0.
    """
    return float(macro_f1_batch(np.asarray(cells)))


def perplexity(total_loss: float, n_tokens: int) -> float:
    """Return exp(summed loss / tokens) over the whole corpus: long texts count more than short ones."""
    if n_tokens < 1:
        raise ValueError("perplexity of no tokens")
    try:
        return math.exp(total_loss / n_tokens)
    except OverflowError:
        return math.inf


def text_perplexity(tokens: Array, losses: Array) -> float:
    """Return the perplexity of a corpus from each text's number of tokens and summed loss."""
    used = tokens > 0
    return perplexity(float(losses[used].sum()), int(tokens[used].sum()))


def text_perplexity_interval(tokens: Array, losses: Array) -> Interval | None:
    """Return the 95 % interval of a corpus's perplexity, over texts, or over groups of very many texts."""
    used = tokens > 0
    tokens, losses = tokens[used], losses[used]
    if len(losses) < 2:
        return None
    if len(losses) > TEXT_GROUPS:
        group = np.random.default_rng(len(losses)).permutation(len(losses)) % TEXT_GROUPS
        return perplexity_interval(np.bincount(group, losses), np.bincount(group, tokens))
    return perplexity_interval(losses, tokens)
