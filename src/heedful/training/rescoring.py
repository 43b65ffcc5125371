"""A language model scored again: on a split of its corpus, on another text, on single sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from heedful.data.corpus import open_corpus
from heedful.errors import UserError, unknown
from heedful.evaluation import checks
from heedful.evaluation.metrics import METRICS
from heedful.evaluation.sentences import read_sentences, score_sentences, split_result
from heedful.inference.loading import load_language_model
from heedful.runs.config import load_pretrain_config
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, SentenceResult, SplitResult
from heedful.text import load as load_tokenizer
from heedful.training.build.corpus import Texts, open_texts
from heedful.training.build.objective import make_text
from heedful.training.precision import autocast
from heedful.training.running import settle_machine


class Rescoring:
    """The best model of a run of pretraining, ready to be scored."""

    def __init__(self, path: str | Path) -> None:
        run = Run.open(path)
        self.options = load_pretrain_config(run.path)
        self.tokenizer = load_tokenizer(run.path)
        self.machine = settle_machine(self.options)
        self.model = load_language_model(run).to(self.machine.device)
        self.block = int(self.options.block or self.model.config.max_len)

    def split(self, name: str | None) -> tuple[str, SplitResult]:
        """A split of the run's own corpus, as the run itself scored it; by default test, or else dev."""
        texts = open_texts(self.options)
        name = name or ("test" if "test" in texts.splits else "dev")
        if name not in texts.splits:
            raise UserError(f"{texts.name}: {unknown('split', name, texts.splits)}")
        return name, self.score(replace(texts, splits={name: texts.splits[name]}), name)

    def corpus(self, source: str) -> SplitResult:
        """Another text."""
        corpus = replace(open_corpus(source), documents=self.options.documents)
        return self.score(Texts(source, {"given": corpus}, {}), "given")

    def score(self, texts: Texts, split: str) -> SplitResult:
        """All figures of one split."""
        objective = make_text(self.options, self.model, self.tokenizer, texts, self.block)
        with autocast(self.machine.precision, self.machine.device):
            metric = METRICS.find(self.options.metric or objective.metric)
            found = metric.score(objective.evaluate(self.model, split))
        return split_result(found, texts.splits[split], objective, split)

    def sentences(self, given: Sequence[str]) -> tuple[SentenceResult, ...]:
        """The loss and perplexity of each sentence."""
        with autocast(self.machine.precision, self.machine.device):
            return score_sentences(self.model, self.tokenizer, read_sentences(given), self.block)


def check_language(path: str | Path) -> tuple[list[Check], set[str]]:
    """A run's findings, and the names of those that were examined again just now.

    The saved model is the one that was scored when dev, scored again, has the same loss.
    """
    run, again = Run.open(path), Rescoring(path)
    config = again.model.config
    made = [checks.causality(again.model)] if config.kind != "encoder" else []
    made.append(checks.tokenizer_fits(again.tokenizer, config, pretrained=False))
    before = run.results().splits.get("dev") if run.finished else None
    if before is not None and before.loss is not None and again.machine.precision == "float32":
        now = again.split("dev")[1].loss
        made.append(checks.reload(torch.tensor([before.loss]), torch.tensor([now or float("nan")])))
    found = {check.name: check for check in (*run.checks().checks, *made)}
    return list(found.values()), {check.name for check in made}
