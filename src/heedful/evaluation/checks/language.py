"""Checks of a language model's texts: what its vocabulary lacks, what is divided, what splits share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from heedful.evaluation.checks.findings import percent
from heedful.evaluation.checks.splits import SHARED_WARNS, find_overlaps, hash_rows
from heedful.evaluation.checks.tokens import CUT_LIMIT, KEPT
from heedful.evaluation.metrics import PERPLEXITY
from heedful.runs.schemas import Check

UNKNOWN_LIMIT = 0.05
"""One word in twenty that the model reads and predicts as the same sign: perplexity says little then."""


def unknown_tokens(rates: Mapping[str, float]) -> Check:
    """Does the vocabulary know the texts? Takes the share of unknown tokens of each split."""
    name = "unknown_tokens"
    if not rates:
        return Check(name, "skipped", "There are no texts.")
    split, worst = max(rates.items(), key=lambda item: item[1])
    if worst > UNKNOWN_LIMIT:
        sentence = (
            f"{percent(worst)} of {split}'s tokens are unknown to the vocabulary; each is easy to predict "
            f"and says nothing, so that perplexity is too low; take subwords (--tokenizer bpe) or a lower "
            f"--min-count."
        )
        return Check(name, "warning", sentence, worst, UNKNOWN_LIMIT)
    unknown = f"At most {percent(worst)} of a split's tokens are" if worst else "No token is"
    return Check(name, "passed", f"{unknown} unknown to the vocabulary.", worst, UNKNOWN_LIMIT)


def row_truncation(lengths: npt.NDArray[np.int64], block: int, room: int, packed: bool) -> Check:
    """Is text cut off? Packed documents are divided instead, and nothing of them is lost."""
    name, limit = "truncation", None if packed else CUT_LIMIT
    if not packed and not lengths.sum():
        return Check(name, "skipped", "There are no texts.")
    share = float(np.mean(lengths > block)) if len(lengths) else 0.0
    if not share:
        return Check(name, "passed", f"No text is longer than {block:,} tokens.", 0.0, limit)
    if packed:
        sentence = (
            f"Nothing is cut off: the {percent(share)} of texts that are longer than {block:,} tokens are "
            f"divided, and what follows a division is predicted without what comes before it."
        )
        return Check(name, "passed", sentence, 0.0)
    lost = float(np.maximum(lengths - block, 0).sum() / lengths.sum())
    cut = f"{percent(share)} of texts are cut at {block:,} tokens, with them {percent(lost)} of all tokens"
    if share <= CUT_LIMIT:
        return Check(name, "passed", f"{cut}.", share, CUT_LIMIT)
    enough = int(np.quantile(lengths, KEPT, method="inverted_cdf"))
    advice = f"--block {enough:,} would keep {percent(KEPT)} of texts whole"
    advice += "" if enough <= room else f", in a model with more than its {room:,} positions"
    return Check(name, "warning", f"{cut}; nothing is learned from the rest; {advice}.", share, CUT_LIMIT)


def shared_lines(splits: Mapping[str, Iterable[str]]) -> Check:
    """Is a text that is scored also trained on, but for case, spaces or punctuation?"""
    name = "shared_texts"
    if len(splits) < 2:
        return Check(name, "skipped", "There is only one split.")
    overlaps = find_overlaps({split: hash_rows(texts) for split, texts in splits.items()})
    worst = next((overlap for overlap in overlaps if overlap.earlier == "train"), None)
    if worst is None:
        return Check(name, "passed", "No text that is scored is also in train.", 0.0, SHARED_WARNS)
    sentence = f"{percent(worst.share)} of {worst.later}'s texts are also in train"
    if worst.share <= SHARED_WARNS:
        return Check(name, "passed", f"{sentence}.", worst.share, SHARED_WARNS)
    advice = "a model that memorized them looks like one that understood them; hold out other texts"
    return Check(name, "warning", f"{sentence}; {advice}.", worst.share, SHARED_WARNS)


def beats_ngrams(
    tokens: npt.NDArray[np.int64],
    losses: npt.NDArray[np.float64],
    baselines: Mapping[str, npt.NDArray[np.float64]],
    counted: tuple[int, int],
) -> Check:
    """Is the model better than counting tokens? Takes each text's predicted tokens and summed losses.

    The best of the n-gram models is compared, on the same tokens. `counted` says how many of the training
    tokens they have counted, and of how many.
    """
    name, n = "beats_ngrams", int(tokens.sum())
    if not baselines or not n:
        return Check(name, "skipped", "No n-gram model predicts what this objective does.")
    best = min(baselines, key=lambda one: float(baselines[one].sum()))
    bits, simple = (float(sums.sum()) / n / math.log(2) for sums in (losses, baselines[best]))
    # The perplexity of the differences is the ratio of the two perplexities.
    interval = PERPLEXITY.interval(tokens, losses - baselines[best])
    low, high = (bits - simple,) * 2 if interval is None else (math.log2(edge) for edge in interval)
    shown = "" if interval is None else f" (95 % interval of the difference {low:+.3f} to {high:+.3f})"
    part = "" if counted[0] == counted[1] else f", which counted {counted[0]:,} of {counted[1]:,} tokens"
    numbers = f"{bits:.3f} bits per token against {simple:.3f}{shown}{part}"
    if high < 0:
        return Check(name, "passed", f"Better than a {best}: {numbers}.", bits - simple, 0.0)
    advice = (
        "train longer, with another learning rate or a larger model, and see whether the loss falls at all"
    )
    if low > 0:
        sentence = f"Worse than a {best}: {numbers}; counting tokens takes a second and predicts better"
        return Check(name, "failed", f"{sentence}; {advice}.", bits - simple, 0.0)
    sentence = f"No better than a {best}: {numbers}; nothing shows that reading more of the text has helped"
    return Check(name, "warning", f"{sentence}; {advice}.", bits - simple, 0.0)
