"""What the page Language model computes: what comes next, token by token, and who was in training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from heedful.data.random import stream
from heedful.errors import UserError
from heedful.inference.generation import Sampling, pick_tokens
from heedful.inference.network_predictors import AnswerPredictor
from heedful.inference.writer import Writer
from heedful.models import LanguageModel
from heedful.objectives.questions import QuestionFormat, answer_room, separator
from heedful.runs.directory import CONFIG, Run
from heedful.studio.work.people import find_person, list_groups
from heedful.studio.work.pieces import show_pieces
from heedful.studio.work.subjects import read_name, read_text
from heedful.studio.work.token_reader import TokenReader, find_shares
from heedful.text import Tokenizer

if TYPE_CHECKING:
    from heedful.studio.model_store import ModelStore
    from heedful.studio.worker import Report

LISTED = 20
"""Tokens of a distribution that are shown."""
GAP = "___"
"""Stands for the words that a model of span corruption fills in."""
MOST_NEW = 2000


@dataclass
class Speaker:
    """A model that writes, with how it is prompted."""

    model: LanguageModel
    tokenizer: Tokenizer
    form: QuestionFormat | None
    """How a question is put; None for a model that continues texts."""
    fills: bool
    """Whether it was trained to fill a gap."""
    reader: TokenReader

    @property
    def writer(self) -> Writer:
        return Writer(self.model, self.tokenizer)

    def encode(self, text: str) -> tuple[list[int], list[int], int]:
        """Return the ids of a prompt, the ids that end what is written, and its largest number of tokens."""
        if self.form is not None:
            question = self.form.questions([text]).ids[0].tolist()
            end = [] if self.form.whole else [separator(self.tokenizer)]
            if not question:
                raise UserError("the question is empty")
            return [*question, *end], [self.form.stop_id], answer_room(self.form.max_len)
        writer = self.writer
        if self.fills and GAP in text:
            return self.encode_gap(text)
        return writer.encode_prompt(text), writer.stop_ids(()), MOST_NEW

    def encode_gap(self, text: str) -> tuple[list[int], list[int], int]:
        """Return `prefix MASK suffix MASK`, the form of span corruption, or a sentinel in the text."""
        before, _, after = text.partition(GAP)
        if self.reader.whole:
            sentinels = self.tokenizer.sentinel_ids
            parts = [self.tokenizer.encode(part, special=False).ids for part in (before.rstrip(), after)]
            ends = [] if self.tokenizer.eos_id is None else [self.tokenizer.eos_id]
            return [*parts[0], sentinels[0], *parts[1], *ends], [*ends, *sentinels[1:2]], MOST_NEW
        mark = separator(self.tokenizer)
        before = before.rstrip() if self.tokenizer.kind == "bpe" else before
        prefix, suffix = (self.tokenizer.encode(part, special=False).ids for part in (before, after))
        return [*prefix, mark, *suffix, mark], [mark], MOST_NEW


def open_speaker(models: ModelStore, name: str) -> Speaker:
    folder = models.find(name)
    config = Run.open(folder).read_config() if (folder / CONFIG).is_file() else {}
    form = None
    if config.get("command") == "adapt":
        predictor = models.predictor(name)
        if not isinstance(predictor, AnswerPredictor):
            raise UserError(f'"{name}" labels texts and writes none; Try it asks it')
        model, tokenizer, form = predictor.model, predictor.tokenizer, predictor.form
    else:
        writer = models.writer(name)
        model, tokenizer = writer.model, writer.tokenizer
    assert isinstance(model, LanguageModel)
    kept: dict[str, TokenReader] = models.get("token reader", name, lambda folder: {})
    reader = kept.get("reader")
    if reader is None or reader.model is not model:  # not loaded yet, or anew
        reader = kept["reader"] = TokenReader(model)
    spans = config.get("pretrain", {}).get("objective") == "span"
    marked = bool(tokenizer.sentinel_ids) if reader.whole else spans and tokenizer.mask_id is not None
    fills = form is None and marked
    return Speaker(model.eval(), tokenizer, form, fills, reader)


def describe(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return how a model is prompted, and whom it can be asked about."""
    name = read_name(params)
    speaker = open_speaker(models, name)
    return {
        "asks": speaker.form is not None,
        "fills": speaker.fills,
        "whole": speaker.reader.whole,
        "room": speaker.reader.room,
        "vocabulary": speaker.model.config.vocab_size,
        "tokenizer": speaker.tokenizer.kind,
        "groups": list_groups(models.find(name)) if speaker.form is not None else [],
    }


def read_sampling(params: dict[str, Any]) -> Sampling:
    def number(key: str, default: float) -> float:
        try:
            return float(params.get(key) or default) if params.get(key) != 0 else 0.0
        except (TypeError, ValueError):
            raise UserError(f'"{key}" must be a number') from None

    top_k, top_p, seed = number("top_k", 0), number("top_p", 1), number("seed", 0)
    if not (math.isfinite(top_k) and 0 <= top_k < 10**9 and 0 <= seed < 2**31):
        raise UserError("top-k and the seed are whole numbers, 0 or above")
    return Sampling(
        temperature=number("temperature", 1.0),
        top_k=int(top_k) or None,
        top_p=None if top_p == 1 else top_p,
        seed=int(seed),
    )


def read_ids(params: dict[str, Any], vocab_size: int) -> list[int]:
    ids = params.get("ids") or []
    if not isinstance(ids, list) or not all(isinstance(i, int) and 0 <= i < vocab_size for i in ids):
        raise UserError("the tokens of this link are not in the vocabulary of this model")
    if len(ids) > MOST_NEW:
        raise UserError(f"at most {MOST_NEW:,} tokens are written here")
    return ids


def read_on(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return the new tokens with their probabilities, and what is expected after them, or at the place `at`.

    With `choose`, a token is drawn and added, and the distribution is that from which it was drawn.
    """
    speaker = open_speaker(models, read_name(params))
    text = read_text(params, "text") or ""
    prompt, stops, most = speaker.encode(text)
    ids, sampling = read_ids(params, speaker.model.config.vocab_size), read_sampling(params)
    place = speaker.reader.read(prompt, ids)
    logs = [*place.log_probabilities]
    logits, at = place.logits, len(ids)
    wanted = params.get("at")
    ended = bool(ids) and ids[-1] in stops
    if isinstance(wanted, int) and 0 <= wanted < len(ids):
        at = wanted
        logits = TokenReader(speaker.model).read(prompt, ids[:at]).logits
    elif params.get("choose") and not ended:
        draw = stream(sampling.seed, "language model", len(ids)).random()
        token = int(pick_tokens(logits[None], torch.tensor([draw], dtype=torch.float64), sampling)[0])
        ids = [*ids, token]
        logs.append(float(logits.double().log_softmax(0)[token]))
        ended = token in stops
    pieces = show_pieces(speaker.tokenizer, ids)
    full = speaker.reader.left(prompt, ids) < 1 or len(ids) >= most
    written = ids[:-1] if ended else ids
    return {
        "prompt": show_pieces(speaker.tokenizer, prompt),
        "tokens": [
            {"id": token, "piece": piece, "probability": math.exp(log)}
            for token, piece, log in zip(ids, pieces, logs, strict=True)
        ],
        "text": write_text(speaker, prompt, written),
        "probability": math.exp(sum(logs)),
        "unknown": speaker.writer.unknown(text),
        "at": at,
        "ended": ended,
        "full": full,
        "left": speaker.reader.left(prompt, ids),
        **describe_place(speaker.tokenizer, logits, sampling, ids[at : at + 1]),
    }


def write_text(speaker: Speaker, prompt: Sequence[int], ids: Sequence[int]) -> str:
    if speaker.form is not None:
        return speaker.form.text(ids)
    return speaker.writer.new_text(prompt, ids)


def describe_place(
    tokenizer: Tokenizer, logits: torch.Tensor, sampling: Sampling, taken: Sequence[int]
) -> dict[str, Any]:
    """Return the most probable tokens of a place and the one that was taken, with both probabilities."""
    own = logits.double().softmax(0).numpy()
    drawn = find_shares(logits, sampling)
    listed = np.argsort(-own, kind="stable")[:LISTED].tolist()
    listed += [token for token in taken if token not in listed]
    ranks = {token: int((own > own[token]).sum()) + 1 for token in taken}
    rows = [
        {
            "id": i,
            "piece": piece,
            "probability": float(own[i]),
            "drawn": float(drawn[i]),
            "rank": ranks.get(i, n + 1),
        }
        for n, (i, piece) in enumerate(zip(listed, show_pieces(tokenizer, listed), strict=True))
    ]
    positive = own[own > 0]
    rest = max(0.0, 1.0 - float(own[listed].sum()))
    return {
        "top": rows,
        "rest": {"count": len(own) - len(listed), "probability": rest},
        "entropy": float(-(positive * np.log2(positive)).sum()),
        "possible": int((drawn > 0).sum()),
    }


def describe_person(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return whether the model has read about the person of a question, and what the right answer is."""
    name = read_name(params)
    return find_person(models, name, read_text(params, "text") or "", report)
