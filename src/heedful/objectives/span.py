"""Span corruption: part of a text is hidden, and the model writes it after reading the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from heedful.data import Tokens
from heedful.data.batches import IGNORED
from heedful.data.corruption import (
    SalientSpans,
    WindowBatch,
    find_salient,
    hide_in_windows,
    hide_single_span,
    hide_t5_spans,
    is_long_enough,
)
from heedful.data.corruption.spans import SHORTEST, SHORTEST_T5, SMALLEST_BLOCK
from heedful.data.corruption.windows import RANDOM_SPAN
from heedful.data.random import stream
from heedful.errors import UserError, unknown
from heedful.objectives.base import Inputs, Ints, Objective, iterate_by_length
from heedful.objectives.packed import TextObjective
from heedful.objectives.setup import TextSetup
from heedful.text import Tokenizer, missing_mask_error

SpanForm = Literal["line", "window"]
SpanLoss = Literal["all", "span"]
FORMS: tuple[SpanForm, ...] = ("line", "window")
PART_TOKENS, MOST_PARTS = 384, 8
"""Rows of similar length are computed together: the smallest number of tokens per part, the most parts.

Windows of 1,500 tokens take 155 ms in three parts and 184 ms in one, where half of the tokens are padding.
"""
CHUNK = 256
"""The number of documents that are corrupted together for evaluation."""


@dataclass(frozen=True)
class Corruption:
    """What is hidden of a document, and in which form.

    `line`, for a decoder, is `prefix MASK suffix MASK span MASK` of a text cut at random
    (`hide_single_span`); for an encoder-decoder it is T5's spans behind sentinels. `window` is
    `title left MASK right MASK span MASK` with a few tokens around one salient span. `counted` says where a
    decoder's line has loss: on every token or on the span; a window always has it on the span.
    """

    form: SpanForm = "line"
    counted: SpanLoss = "all"
    block: int = 128
    left: int = 5
    """In a window, the largest number of tokens before the span."""
    right: int = 3
    """In a window, the largest number of tokens after the span."""

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise unknown("form of span corruption", self.form, FORMS)
        if self.block < SMALLEST_BLOCK:
            raise UserError(f"--block {self.block}: span corruption needs at least {SMALLEST_BLOCK} tokens")
        if self.left < 0 or self.right < 0:
            raise UserError("a window cannot have fewer than 0 tokens beside its span")


class Span(TextObjective):
    """Cross-entropy of masked spans (sums over tokens), drawn again at each step; scored by perplexity.

    For scoring, the same spans are always hidden, and only their tokens count, even if training has loss on
    all tokens. Texts are encoded without special tokens; those too short to hide something in, such as an
    empty last line, are skipped. `salient` has the names, dates and numbers of each split, which are then the
    spans. `whole` says that the model is an encoder-decoder, `unsafe` that its attention may see the padding
    after a text.
    """

    name = "span"
    heads = {"decoder": "causal", "encoder_decoder": "text2text"}  # noqa: RUF012
    own_options = ("span_form", "span_loss", "salient")

    @classmethod
    def build(cls, setup: TextSetup) -> Objective:
        o = setup.options
        salient = None
        if o.salient is not None or o.span_form == "window":
            kinds = o.salient or "all"
            splits = setup.texts.splits.items()
            salient = {name: find_salient(texts, setup.tokenizer, kinds) for name, texts in splits}
        return cls(
            setup.texts.tokens(setup.tokenizer, special=False),
            setup.tokenizer,
            corruption=Corruption(o.span_form, o.span_loss, setup.block, o.window_left, o.window_right),
            whole=setup.model.kind == "text2text",
            unsafe=setup.mechanism.unsafe,
            salient=salient,
            seed=o.seed,
        )

    def __init__(
        self,
        texts: Mapping[str, Tokens],
        tokenizer: Tokenizer,
        *,
        corruption: Corruption | None = None,
        whole: bool = False,
        unsafe: bool = False,
        salient: Mapping[str, SalientSpans] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(texts, tokenizer, seed)
        self.whole, self.unsafe = whole, unsafe
        self.corruption = how = corruption or Corruption()
        if whole and how.form == "window":
            raise UserError("windows are for decoders; an encoder-decoder takes the form line")
        if whole and (len(tokenizer.sentinel_ids) < 2 or tokenizer.eos_id is None):
            raise UserError("this tokenizer lacks sentinels or an end of text; T5's spans need both")
        if not whole and tokenizer.mask_id is None:
            raise missing_mask_error("span corruption")
        if how.form == "window" and salient is None:
            raise UserError("windows need salient spans, and none were searched for")
        self.salient = {name: spans.limit_to(how.block) for name, spans in (salient or {}).items()}
        self.rows = {name: self.find_usable_documents(name) for name in self.texts}
        for name, rows in self.rows.items():
            if not len(rows):
                raise UserError(f"{name} has no text that is long enough to hide a span in")

    def find_usable_documents(self, split: str) -> Ints:
        """Return the documents in which something can be hidden."""
        lengths = self.texts[split].lengths
        if self.corruption.form == "window":
            return np.flatnonzero(lengths > self.salient[split].titles)
        return np.flatnonzero(is_long_enough(lengths, SHORTEST_T5 if self.whole else SHORTEST))

    def train_lengths(self) -> Ints:
        """Return the tokens of each document, up to the length of a row; for windows, their mean length."""
        how, rows = self.corruption, self.rows["train"]
        lengths: Ints = self.texts["train"].lengths[rows]
        if how.form == "line":
            return np.minimum(lengths, how.block)
        salient = self.salient["train"]
        span = np.diff(salient.ranges).mean() if len(salient.ranges) else RANDOM_SPAN
        most = np.minimum(salient.titles[rows], how.block // 2) + round(span + (how.left + how.right) / 2) + 2
        return np.asarray(np.minimum(most, how.block), np.int64)

    def hide_spans(
        self, split: str, documents: Ints, generator: np.random.Generator, counted: SpanLoss
    ) -> WindowBatch:
        how, tokens = self.corruption, self.texts[split]
        if how.form == "window":
            assert self.tokenizer.mask_id is not None
            return hide_in_windows(
                tokens.ids,
                tokens.offsets,
                documents,
                self.salient[split],
                block=how.block,
                mask_id=self.tokenizer.mask_id,
                pad_id=self.pad_id,
                generator=generator,
                left=how.left,
                right=how.right,
            )
        limit = how.block if self.whole else how.block * 7 // 8
        texts = [tokens[int(i)][:limit] for i in documents]
        salient = [self.salient[split].document_ranges(int(i)) for i in documents] if self.salient else None
        if self.whole:
            assert self.tokenizer.eos_id is not None
            ids, targets = hide_t5_spans(
                texts,
                sentinel_ids=self.tokenizer.sentinel_ids,
                eos_id=self.tokenizer.eos_id,
                pad_id=self.pad_id,
                generator=generator,
                salient=salient,
            )
            return WindowBatch(ids, targets, (ids != self.pad_id).sum(1))
        assert self.tokenizer.mask_id is not None
        ids, targets = hide_single_span(
            texts,
            block=how.block,
            mask_id=self.tokenizer.mask_id,
            pad_id=self.pad_id,
            generator=generator,
            loss=counted,
            salient=salient,
        )
        return WindowBatch(ids, targets, (targets != IGNORED).cumsum(1).argmax(1) + 1)

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        """Hide spans of training documents, in at least `parts` parts of rows of similar length."""
        documents = self.rows["train"][examples]
        rows = self.hide_spans("train", documents, stream(self.seed, "spans", step), self.corruption.counted)
        order = np.argsort(rows.lengths, kind="stable")
        parts = max(parts, min(MOST_PARTS, int(rows.lengths.sum()) // PART_TOKENS))
        return [self.inputs(rows, part) for part in np.array_split(order, parts) if len(part)]

    def inputs(self, rows: WindowBatch, part: Ints) -> Inputs:
        ids = rows.ids[part, : int(rows.lengths[part].max())]
        labels = rows.targets[part]
        counted = labels != IGNORED
        tensors = {"ids": torch.from_numpy(ids)}
        if self.whole or self.unsafe:
            tensors["mask"] = torch.from_numpy(np.arange(ids.shape[1]) < rows.lengths[part, None])
        labels = labels[:, : int(counted.sum(1).max()) if self.whole else ids.shape[1]]
        tensors["labels"] = torch.from_numpy(np.ascontiguousarray(labels))
        return Inputs(tensors, {self.name: int(counted.sum())}, len(part), int(rows.lengths[part].sum()))

    def states(self, model: Any, inputs: Inputs) -> Tensor:
        t, body = inputs.tensors, model.body
        decoder_inputs = {"decoder_input_ids": body.shift(t["labels"])} if self.whole else {}
        states: Tensor = body(t["ids"], t.get("mask"), **decoder_inputs)
        return states

    def evaluation_batches(
        self, split: str, examples: Ints | None, device: torch.device
    ) -> Iterator[tuple[Inputs, Ints]]:
        examples = np.arange(len(self.rows[split])) if examples is None else examples
        for chunk in np.unique(examples // CHUNK):
            documents = self.rows[split][chunk * CHUNK : (chunk + 1) * CHUNK]
            rows = self.hide_spans(split, documents, stream(self.seed, f"spans {split}", chunk), "span")
            chosen = examples[examples // CHUNK == chunk] - chunk * CHUNK
            for batch in iterate_by_length(rows.lengths[chosen], device):
                inputs = self.inputs(rows, chosen[batch])
                of_labels = (inputs.tensors["labels"] != IGNORED).nonzero()[:, 0].numpy()
                yield inputs, documents[chosen[batch]][of_labels]
