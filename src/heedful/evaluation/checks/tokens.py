"""Checks of tokens: do tokenizer and model belong together, what is unknown, and how much text is cut off?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from heedful.evaluation.checks.findings import percent, quote
from heedful.families import FAMILIES
from heedful.options.types import LongTexts
from heedful.runs.schemas import Check

if TYPE_CHECKING:
    from heedful.models import TransformerConfig
    from heedful.text import Tokenizer

SPARE_ROWS = 0.01
"""Embeddings are often padded to a round number (T5: 28 of 32,128); more rows without a token are odd."""
PROBE = ("A small Test, with 42 numbers.", "Naïve café — isn't it?")
UNKNOWN_LIMIT = 0.01
"""As many texts as an evaluation of usual size can just tell."""
CUT_LIMIT = 0.05
"""As many rows as an evaluation of usual size can just tell: what is lost with them may show in the score."""
KEPT = 0.99


def tokenizer_fits(
    tokenizer: Tokenizer, config: TransformerConfig, *, pretrained: bool, shipped: Tokenizer | None = None
) -> Check:
    """Does each id mean to the model what it means to the tokenizer? To be in range is not enough.

    `pretrained` says that the weights were trained before, `shipped` is the tokenizer beside them, if there
    is one: it may be of any kind, as a model that was trained with a vocabulary of its own. A model that
    starts from nothing takes every tokenizer whose ids it has, if their special tokens agree.
    """
    name = "tokenizer_fits"
    size, rows = tokenizer.vocab_size, config.vocab_size
    if size > rows:
        sentence = (
            f"The tokenizer has {size:,} ids, the model only {rows:,} embeddings; a text with id {rows:,} or "
            f"above cannot be read; use the tokenizer that was published with the model."
        )
        return Check(name, "failed", sentence, float(size), float(rows))
    wrong = special_problems(tokenizer, config, pretrained)
    if pretrained:
        family = config.family
        wrong += shipped_problems(tokenizer, shipped) if shipped else family_problems(tokenizer, family)
    if wrong:
        sentence = (
            f"Tokenizer and model do not belong together: {', '.join(wrong)}; the model would read other "
            f"words than you wrote, without any error; use the tokenizer that was published with the model."
        )
        return Check(name, "failed", sentence, float(size), float(rows))
    if pretrained and shipped is None and rows - size > SPARE_ROWS * rows:
        sentence = (
            f"The tokenizer has {size:,} ids for {rows:,} embeddings; a pretrained model's own has nearly as "
            f"many; make sure that it is the one published with the model."
        )
        return Check(name, "warning", sentence, float(size), float(rows))
    sentence = f"Each of the tokenizer's {size:,} ids has its embedding."
    return Check(name, "passed", sentence, float(size), float(rows))


def special_problems(tokenizer: Tokenizer, config: TransformerConfig, pretrained: bool) -> list[str]:
    """Return the special tokens that have another id in the model's configuration, in words."""
    wrong = []
    pairs = {
        "pad": (config.pad_id, tokenizer.pad_id),
        "bos": (config.bos_id, tokenizer.bos_id),
        "eos": (config.eos_id, tokenizer.eos_id),
    }
    for role, (stated, actual) in pairs.items():
        # An id that the model itself has no row for is in many configurations, unused.
        if stated is None or stated >= config.vocab_size or stated == actual:
            continue
        if actual is not None:
            wrong.append(f"{role} is id {actual:,} in the tokenizer and {stated:,} in the model")
        elif pretrained and stated not in tokenizer.special_ids:
            piece = tokenizer.pieces([stated])[0]
            meant = f"means {quote(piece)}" if piece else "does not exist"
            wrong.append(f"id {stated:,}, the model's {role}, {meant} in the tokenizer")
    return wrong


def shipped_problems(tokenizer: Tokenizer, shipped: Tokenizer) -> list[str]:
    """Return how a tokenizer differs from the one beside the weights, in words."""
    if tokenizer.fingerprint == shipped.fingerprint:
        return []
    ours, theirs = tokenizer.backend.get_vocab(), shipped.backend.get_vocab()
    other = sum(ours.get(piece) != i for piece, i in theirs.items())
    if other:
        return [f"{other:,} of the {len(theirs):,} pieces beside the weights have another id in it or none"]
    # Two files may write the same tokenizer in different ways.
    if all(tokenizer.encode(*texts).ids == shipped.encode(*texts).ids for texts in (PROBE[:1], PROBE)):
        return []
    return ["it has the pieces of the tokenizer beside the weights, but cuts or frames text in another way"]


def family_problems(tokenizer: Tokenizer, family: str) -> list[str]:
    """Return what speaks against a tokenizer for pretrained weights of a family, in words."""
    form = FAMILIES[family].tokenizer if family in FAMILIES else None
    if form is None:
        return []
    wrong = []
    if tokenizer.kind != form.kind:
        wrong.append(f"a {family} model was trained with {form.kind}, this is a {tokenizer.kind} tokenizer")
    lacking = [role for role in form.framing_roles if role not in tokenizer.roles]
    if lacking:
        wrong.append(f"it has no {' and no '.join(lacking)} token, which {family} expects around a text")
    return wrong


def truncation(
    lengths: npt.ArrayLike,
    max_len: int,
    positions: int | None = None,
    long_texts: LongTexts | None = None,
) -> Check:
    """Is much text cut off? Takes each row's length in tokens before it is cut.

    `positions` is the most that the model can read, if it has a limit. `long_texts` says what is read of long
    texts, where that can be chosen.
    """
    name = "truncation"
    tokens = np.asarray(lengths, dtype=np.int64)
    if not tokens.sum():
        return Check(name, "skipped", "There are no texts.")
    share = float(np.mean(tokens > max_len))
    lost = float(np.maximum(tokens - max_len, 0).sum() / tokens.sum())
    if not share:
        return Check(name, "passed", f"No text is longer than {max_len:,} tokens.", 0.0, CUT_LIMIT)
    cut = f"{percent(share)} of rows are cut at {max_len:,} tokens, with them {percent(lost)} of all tokens"
    if share <= CUT_LIMIT:
        return Check(name, "passed", f"{cut}.", share, CUT_LIMIT)
    enough = int(np.quantile(tokens, KEPT, method="inverted_cdf"))
    advice = f"max_len {enough:,} would keep {percent(KEPT)} of rows whole"
    if positions is not None and enough > positions:
        whole = float(np.mean(tokens <= positions))
        advice = (
            f"{advice}, but the model reads {positions:,} at most, which keeps {percent(whole)}"
            if whole > 1 - share
            else f"{advice}, but the model reads {positions:,} at most: shorten or divide the texts"
        )
    if long_texts == "head-tail":
        sentence = f"{cut}, from their middle; what decides the label may be in it; {advice}."
    else:
        advice += "; --long-texts head-tail also reads their ends" if long_texts else ""
        sentence = f"{cut}; what decides the label may be in the part that is never read; {advice}."
    return Check(name, "warning", sentence, share, CUT_LIMIT)


def unknown_tokens(counts: Mapping[str, tuple[int, int]]) -> Check:
    """Has the vocabulary what texts are written in? Takes how many of how many texts lack something."""
    name = "unknown_tokens"
    lacking = {where: (n, total) for where, (n, total) in counts.items() if n}
    worst = max((n / total for n, total in lacking.values()), default=0.0)
    if not lacking:
        sentence = "The vocabulary has everything that is asked and answered."
        return Check(name, "passed", sentence, 0.0, UNKNOWN_LIMIT)
    listed = ", ".join(f"{n:,} of {total:,} in {where}" for where, (n, total) in lacking.items())
    if worst <= UNKNOWN_LIMIT:
        return Check(name, "passed", f"Few texts have unknown characters: {listed}.", worst, UNKNOWN_LIMIT)
    sentence = (
        f"Texts have characters or words that the vocabulary lacks ({percent(worst)} at worst): {listed}; "
        f"names that differ only there look the same to the model; train the tokenizer on them too."
    )
    return Check(name, "warning", sentence, worst, UNKNOWN_LIMIT)
