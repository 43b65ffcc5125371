"""What a pretraining run reports about its scores: the losses of texts under a language model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.evaluation.checks.language import beats_ngrams, row_truncation, shared_lines, unknown_tokens
from heedful.evaluation.metrics import METRICS
from heedful.evaluation.ngrams import NgramBaselines
from heedful.evaluation.perplexity import compute_figures, measure_texts
from heedful.evaluation.samples import write_samples
from heedful.evaluation.sentences import score_sentences
from heedful.inference.devices import autocast
from heedful.objectives import Causal, Evaluation
from heedful.objectives.base import Floats
from heedful.objectives.setup import SplitTexts
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, Prediction, Results, SplitResult
from heedful.text import Tokenizer

PROBE_ROWS = 8
"""Rows of train whose losses are computed again with the saved model."""


class TextScorer:
    """Scores a language model by the losses of texts."""

    def __init__(
        self,
        splits: SplitTexts,
        objective: Any,
        block: int,
        packed: bool,
        sentences: Sequence[str],
        precision: str,
    ) -> None:
        self.splits, self.objective, self.tokenizer = splits, objective, objective.tokenizer
        self.block, self.packed, self.sentences, self.precision = block, packed, sentences, precision
        self.ngram_losses: dict[str, dict[str, Floats]] = {}

    def results(self, evaluations: Mapping[str, Evaluation]) -> dict[str, SplitResult]:
        return {
            split: text_result(e, self.splits.splits[split], self.objective, split, self.score_ngrams(split))
            for split, e in evaluations.items()
        }

    @cached_property
    def ngrams(self) -> NgramBaselines:
        return NgramBaselines(self.objective)

    def score_ngrams(self, split: str) -> dict[str, Floats]:
        if split not in self.ngram_losses:
            self.ngram_losses[split] = self.ngrams.score(split)
        return self.ngram_losses[split]

    def result_fields(self, model: Any, steps: int, epochs: float) -> dict[str, Any]:
        """Return how far the run went, samples, and the scores of sentences where they were asked for."""
        sentences = None
        with autocast(self.precision, next(model.parameters()).device):
            if self.sentences:
                sentences = score_sentences(model, self.tokenizer, self.sentences, self.block)
            samples = write_samples(model, self.objective)
        return {"steps": steps, "epochs": epochs, "sentences": sentences, "samples": samples}

    def write_scored(self, run: Run, evaluations: Mapping[str, Evaluation]) -> None:
        for split, e in evaluations.items():
            run.write_predictions(split, self.predictions(split, e))

    def predictions(self, split: str, e: Evaluation) -> Iterator[Prediction]:
        assert e.text_losses is not None
        assert e.text_tokens is not None
        for i, text in enumerate(self.splits.splits[split]):
            loss, tokens = float(e.text_losses[i]), int(e.text_tokens[i])
            yield Prediction(id=f"{split}-{i}", label=None, predicted="", text=text, loss=loss, tokens=tokens)

    def write_unscored(self, run: Run, model: Any) -> None:
        """Write nothing: every text can be scored."""

    def data_checks(self, max_len: int, room: int) -> list[Check]:
        tokens = self.objective.texts
        rates = {split: unknown_rate(encoded, self.tokenizer) for split, encoded in tokens.items()}
        return [
            unknown_tokens(rates),
            shared_lines(self.splits.splits),
            row_truncation(tokens["train"].lengths, max_len, room, self.packed),
        ]

    def dev_checks(self, dev: Evaluation, results: Results) -> list[Check]:
        assert dev.text_losses is not None
        assert dev.text_tokens is not None
        simple = self.score_ngrams("dev")
        return [beats_ngrams(dev.text_tokens, dev.text_losses, simple, self.ngrams.counted)]

    def probe(self, model: Any) -> Tensor:
        rows = np.arange(min(PROBE_ROWS, len(self.objective.train_lengths())))
        device = next(model.parameters()).device
        parts = (part.to(device) for part in self.objective.prepare(rows, 0, len(rows)))
        return torch.stack([t for part in parts for t in self.objective.losses(model, part).sums.values()])


def text_result(
    evaluation: Evaluation,
    texts: Iterable[str],
    objective: Any,
    split: str,
    ngrams: Mapping[str, Floats] | None = None,
) -> SplitResult:
    """Return the scores of a split of texts, beside those of n-gram models.

    Bits per character are defined where each token of a text is predicted from those before it.
    """
    assert evaluation.text_losses is not None
    assert evaluation.text_tokens is not None
    tokens, sizes = objective.texts[split], None
    if isinstance(objective, Causal):
        lengths = np.diff(tokens.offsets)
        firsts = np.full(len(lengths), -1, np.int64)
        firsts[lengths > 0] = np.asarray(tokens.ids)[tokens.offsets[:-1][lengths > 0]]
        whole = evaluation.text_tokens == np.maximum(lengths - 1, 0)
        sizes = measure_texts(texts, firsts, whole, objective.tokenizer)
    f = compute_figures(evaluation.text_losses, evaluation.text_tokens, sizes)
    metric = METRICS[evaluation.metric]
    simple = {
        name: compute_figures(sums, evaluation.text_tokens, sizes) for name, sums in (ngrams or {}).items()
    }
    bits = {name: s.bits_per_character for name, s in simple.items() if s.bits_per_character is not None}
    return SplitResult(
        **metric.describe(),
        value=metric.compute(*metric.examples(evaluation)),
        n=f.tokens,
        ci95=metric.evaluation_interval(evaluation),
        loss=f.loss,
        texts=f.texts,
        mean_sentence_perplexity=f.mean_sentence_perplexity,
        bits_per_character=f.bits_per_character,
        bits_per_byte=f.bits_per_byte,
        baselines={n: metric.compute(evaluation.text_tokens, x) for n, x in (ngrams or {}).items()} or None,
        baseline_bits_per_character=bits or None,
        unknown_rate=unknown_rate(tokens, objective.tokenizer),
    )


def unknown_rate(tokens: Any, tokenizer: Tokenizer) -> float:
    """Return the share of tokens that the vocabulary lacks; special tokens are not counted."""
    counts = np.bincount(np.asarray(tokens.ids), minlength=tokenizer.vocab_size)
    unknown = 0 if tokenizer.unk_id is None else int(counts[tokenizer.unk_id])
    ordinary = int(counts.sum() - counts[sorted(tokenizer.special_ids)].sum()) + unknown
    return unknown / max(1, ordinary)
