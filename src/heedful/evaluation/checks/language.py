"""Checks of a language model's texts: what its vocabulary lacks, what is divided, what splits share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from heedful.data.splits import content_key
from heedful.evaluation.checks.findings import percent
from heedful.evaluation.checks.splits import SHARED_WARNS, normal, overlaps
from heedful.evaluation.checks.tokens import CUT_LIMIT, KEPT
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
        found = (
            f"{percent(worst)} of {split}'s tokens are unknown to the vocabulary; each is easy to predict "
            f"and says nothing, so that perplexity is too low; take subwords (--tokenizer bpe) or a lower "
            f"--min-count."
        )
        return Check(name, "warning", found, worst, UNKNOWN_LIMIT)
    told = f"At most {percent(worst)} of a split's tokens are" if worst else "No token is"
    return Check(name, "passed", f"{told} unknown to the vocabulary.", worst, UNKNOWN_LIMIT)


def rows_cut(lengths: npt.NDArray[np.int64], block: int, room: int, packed: bool) -> Check:
    """Is text cut off? Packed documents are divided instead, and nothing of them is lost."""
    if not packed:
        return cut_off(lengths, block, room)
    divided = float(np.mean(lengths > block)) if len(lengths) else 0.0
    if not divided:
        return Check("truncation", "passed", f"No text is longer than {block:,} tokens.", 0.0)
    found = (
        f"Nothing is cut off: the {percent(divided)} of texts that are longer than {block:,} tokens are "
        f"divided, and what follows a division is predicted without what comes before it."
    )
    return Check("truncation", "passed", found, 0.0)


def cut_off(lengths: npt.NDArray[np.int64], block: int, room: int) -> Check:
    """How much of texts that stand alone in their rows is never read."""
    if not lengths.sum():
        return Check("truncation", "skipped", "There are no texts.")
    share = float(np.mean(lengths > block))
    if not share:
        return Check("truncation", "passed", f"No text is longer than {block:,} tokens.", 0.0, CUT_LIMIT)
    lost = float(np.maximum(lengths - block, 0).sum() / lengths.sum())
    cut = f"{percent(share)} of texts are cut at {block:,} tokens, with them {percent(lost)} of all tokens"
    if share <= CUT_LIMIT:
        return Check("truncation", "passed", f"{cut}.", share, CUT_LIMIT)
    enough = int(np.quantile(lengths, KEPT, method="inverted_cdf"))
    advice = f"--block {enough:,} would keep {percent(KEPT)} of texts whole"
    advice += "" if enough <= room else f", in a model with more than its {room:,} positions"
    return Check(
        "truncation", "warning", f"{cut}; nothing is learned from the rest; {advice}.", share, CUT_LIMIT
    )


def shared_lines(splits: Mapping[str, Iterable[str]]) -> Check:
    """Is a text that is scored also trained on, but for case, spaces or punctuation?"""
    name = "shared_texts"
    if len(splits) < 2:
        return Check(name, "skipped", "There is only one split.")
    keys = {split: hashed(texts) for split, texts in splits.items()}
    found = [overlap for overlap in overlaps(keys) if overlap.earlier == "train"]
    if not found:
        return Check(name, "passed", "No text that is scored is also in train.", 0.0, SHARED_WARNS)
    worst = found[0]
    told = f"{percent(worst.share)} of {worst.later}'s texts are also in train"
    if worst.share <= SHARED_WARNS:
        return Check(name, "passed", f"{told}.", worst.share, SHARED_WARNS)
    advice = "a model that memorized them looks like one that understood them; hold out other texts"
    return Check(name, "warning", f"{told}; {advice}.", worst.share, SHARED_WARNS)


def hashed(texts: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Hash each text as `normal` leaves it."""
    return np.fromiter((content_key(0, normal(text), None) for text in texts), np.uint64)
