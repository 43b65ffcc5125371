"""The loss and perplexity of single sentences under a language model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from heedful.attention import MECHANISMS
from heedful.data.corpus import corpus_texts
from heedful.errors import UserError
from heedful.models import LanguageModel
from heedful.objectives import Causal
from heedful.objectives.base import Floats, Ints
from heedful.objectives.packed import TokenLists, perplexity
from heedful.objectives.vocabulary import token_losses
from heedful.paths import expand_path, names_file
from heedful.runs.schemas import SentenceResult
from heedful.text import Tokenizer

MASKED_ROWS = 64
"""Copies of a sentence, each with one token hidden, that are read together."""


def read_sentences(texts: Sequence[str]) -> list[str]:
    """Return the sentences; a text that names a file stands for the file's lines."""
    sentences: list[str] = []
    for text in texts:
        sentences += corpus_texts(expand_path(text)) if names_file(text) else [text]
    if not all(text.strip() for text in sentences):
        raise UserError("--sentences: a sentence is empty")
    return sentences


def refuse_sentences(model: LanguageModel) -> None:
    """Refuse a model that does not give a text by itself a probability."""
    if model.kind == "text2text":
        raise UserError("--sentences: an encoder-decoder predicts outputs from inputs, not single sentences")


def score_sentences(
    model: LanguageModel, tokenizer: Tokenizer, sentences: Sequence[str], block: int
) -> tuple[SentenceResult, ...]:
    """Return the loss and perplexity of each sentence; of an encoder, each token is hidden in turn.

    For an encoder it is the pseudo-perplexity of Salazar et al. 2020. What is longer than the model has room
    for is read in parts.
    """
    if not sentences:
        return ()
    refuse_sentences(model)
    encoded = [encoding.ids for encoding in tokenizer.encode_batch(list(sentences))]
    score = causal_losses if model.kind == "causal" else hidden_losses
    sums, counts = score(model, tokenizer, encoded, block)
    results = []
    for text, ids, total, n in zip(sentences, encoded, sums, counts, strict=True):
        if not n:
            raise UserError(f'--sentences: "{text}" has no token to predict after its first')
        unknown = sum(i == tokenizer.unk_id for i in ids)
        value = perplexity(total / n)
        finite = value if np.isfinite(value) else None
        results.append(SentenceResult(text, int(n), float(total / n), finite, unknown))
    return tuple(results)


def causal_losses(
    model: LanguageModel, tokenizer: Tokenizer, encoded: Sequence[Sequence[int]], block: int
) -> tuple[Floats, Ints]:
    """Return each sentence's summed loss and number of predicted tokens."""
    if not any(len(ids) > 1 for ids in encoded):
        return np.zeros(len(encoded)), np.zeros(len(encoded), np.int64)
    mechanism = MECHANISMS[model.config.attention]
    # Where documents cannot be kept apart each has a row, which has room for the longest.
    width = block if mechanism.segments else min(max(map(len, encoded)), model.body.room)
    texts, together = {"given": TokenLists.of(encoded)}, mechanism.segments
    objective = Causal(texts, tokenizer, block=width, together=together, unsafe=mechanism.unsafe)
    evaluation = objective.evaluate(model, "given")
    assert evaluation.text_losses is not None
    assert evaluation.text_tokens is not None
    return evaluation.text_losses, evaluation.text_tokens


def hidden_losses(
    model: LanguageModel, tokenizer: Tokenizer, encoded: Sequence[Sequence[int]], block: int
) -> tuple[Floats, Ints]:
    """Return the same with each token hidden alone."""
    assert tokenizer.mask_id is not None
    device = next(model.parameters()).device
    sums, counts = np.zeros(len(encoded)), np.zeros(len(encoded), np.int64)
    model.eval()
    with torch.inference_mode():
        for i, whole in enumerate(encoded):
            for start in range(0, len(whole), block):
                ids = torch.tensor(whole[start : start + block], device=device)
                positions = [p for p, id_ in enumerate(ids.tolist()) if id_ not in tokenizer.special_ids]
                counts[i] += len(positions)
                for first in range(0, len(positions), MASKED_ROWS):
                    at = torch.tensor(positions[first : first + MASKED_ROWS], device=device)
                    rows = ids.expand(len(at), -1).clone()
                    rows[torch.arange(len(at)), at] = tokenizer.mask_id
                    states = model.body(rows)[torch.arange(len(at)), at]  # [n, d]
                    sums[i] += float(token_losses(model.head, states, ids[at]).cpu().double().sum())
    return sums, counts
