"""Scoring and checking a finished run again, with its best model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful import methods
from heedful.data import Task
from heedful.data.columns import ColumnChoice
from heedful.data.corpus import open_corpus
from heedful.data.splits import sample
from heedful.data.tasks import add_split as add_task_split
from heedful.errors import UserError, unknown
from heedful.evaluation import checks
from heedful.evaluation.decision_threshold import decide
from heedful.evaluation.metrics import find_metric
from heedful.evaluation.scorer import LabelResults, NetworkProbe, Scorer, leave_out_bag
from heedful.evaluation.sentences import read_sentences, score_sentences
from heedful.evaluation.text_scorer import text_result
from heedful.inference.decisions import read_decision
from heedful.inference.devices import autocast
from heedful.inference.loading import iterate_predictions, load_run
from heedful.inference.network_predictors import NetworkPredictor
from heedful.inference.networks import load_best_model, load_language_model
from heedful.linear.folders import is_linear
from heedful.objectives import ClassifyFeatures, Evaluation
from heedful.objectives.registry import OBJECTIVES
from heedful.objectives.setup import TextSetup
from heedful.options.model_names import ENSEMBLE
from heedful.options.training import AdaptOptions
from heedful.problems import find_metric_name, find_problem
from heedful.runs.config import load_adapt_config, load_pretrain_config
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, SentenceResult, SplitResult
from heedful.text import load as load_tokenizer
from heedful.training.build import build_adapt
from heedful.training.build.corpus import CorpusSplits, open_splits
from heedful.training.build.model import starts_from_scratch
from heedful.training.linear import score_linear
from heedful.training.machine import resolve_machine

NEW = "data"
"""The name of the split that is scored for `--data`."""
PREDICTED_AGAIN = 64
"""Number of stored predictions that a check makes again."""


def evaluate_split(path: str | Path, split: str, *, metric: str | None = None) -> SplitResult:
    """Score a run's best model on a split of its task, as the run itself did, or by another metric."""
    scorer, evaluation = score_split(Run.open(path), split, metric=metric)
    return scorer.results({split: evaluation})[split]


def evaluate_data(
    path: str | Path,
    data: str,
    columns: ColumnChoice | None = None,
    *,
    strict: bool = False,
    metric: str | None = None,
) -> SplitResult:
    """Score a run's best model on other labeled data: a file, or the test split of a task."""

    def add_data(task: Task) -> Task:
        return add_task_split(task, data, name=NEW, columns=columns, strict=strict)

    scorer, evaluation = score_split(Run.open(path), NEW, add_data, metric=metric)
    return scorer.results({NEW: evaluation})[NEW]


def add_split(path: str | Path, split: str, rows: int | None = None, *, with_bag: bool = True) -> SplitResult:
    """Score a finished run on a split that it has not scored, and add that to its results and predictions.

    A score that exists is returned as it is: a study looks at test once. With `rows`, only this many rows are
    scored, with the shares of the labels in all of them. `with_bag` is as in `train_run`.
    """

    def limit_rows(task: Task) -> Task:
        if rows is None or rows >= len(task.splits[split]):
            return task
        return replace(task, splits={**task.splits, split: sample(task.splits[split], rows, task.seed)})

    run = Run.open(path)
    results = run.read_results()
    if split in results.splits:
        return results.splits[split]
    scorer, evaluation = score_split(run, split, limit_rows)
    if not with_bag:
        leave_out_bag(scorer)
    added = scorer.results({split: evaluation})
    scorer.write_scored(run, {split: evaluation})
    run.write_results(replace(results, splits={**results.splits, **added}))
    return added[split]


def score_split(
    run: Run, split: str, change_task: Callable[[Task], Task] | None = None, *, metric: str | None = None
) -> tuple[Scorer | LabelResults, Evaluation]:
    """Build the parts of a run of `adapt` again, and score a split with its best model."""
    if not run.best.is_dir():
        load_run(run.path)  # says why there is no best model
    options = load_adapt_config(run.path)
    options = replace(options, metric=metric or options.metric)
    if is_linear(options.model) or options.model == ENSEMBLE:
        return score_linear(run, replace(options, score_dev=True, score_test=True), split, change_task)
    changes: dict[str, Any] = {
        "cache_features": False,
        "score_dev": True,
        "score_test": True,
        "head_start": "random",
        "expect_shares": None,  # the saved model is corrected
    }
    changes |= options_to_score(options)
    job = build_adapt(replace(options, **changes), change_task)
    objective = job.objective.scored_objective
    if split not in objective.splits:
        raise UserError(f"{job.data_name}: {unknown('split with labels', split, objective.splits)}")
    model = load_best_model(run.best, run.read_config()["adapt"]).to(job.device)
    if methods.METHODS[options.method].head_only and options.cache_features:
        assert isinstance(job.scorer, NetworkProbe)
        objective = ClassifyFeatures(job.scorer.classify, model, split)
    with autocast(job.precision, job.device):
        by = find_metric(find_metric_name(options, objective), objective.label_names)
        evaluation = by.score(objective.evaluate(model, split))
    return job.scorer, decide(evaluation, read_decision(run.best), by, split)


def options_to_score(options: AdaptOptions) -> dict[str, Any]:
    """Return what to change in a run's options to score it, where another objective does so at less cost."""
    scored_as = OBJECTIVES.find(options.objective).scored_as
    if scored_as is None:
        return {}
    if options.kind is not None:
        scored_as = find_problem(options.kind).objective
    read = OBJECTIVES.find(scored_as).own_options
    unread = [name for name in OBJECTIVES.find(options.objective).own_options if name not in read]
    return {"objective": scored_as, **{name: getattr(AdaptOptions, name) for name in unread}}


class LanguageModelScores:
    """The best model of a pretraining run, ready to be scored on texts and sentences."""

    def __init__(self, path: str | Path) -> None:
        self.run = run = Run.open(path)
        self.options = load_pretrain_config(run.path)
        self.tokenizer = load_tokenizer(run.path)
        self.machine = resolve_machine(self.options)
        self.model = load_language_model(run).to(self.machine.device)
        self.block = int(self.options.block or self.model.config.max_len)

    def score_split(self, name: str | None) -> tuple[str, SplitResult]:
        """Score a split of the run's own corpus, as the run itself did; by default test, or else dev."""
        splits = open_splits(self.options)
        name = name or ("test" if "test" in splits.splits else "dev")
        if name not in splits.splits:
            raise UserError(f"{splits.name}: {unknown('split', name, splits.splits)}")
        result = self.build_and_score(replace(splits, splits={name: splits.splits[name]}), name)
        recorded = self.run.read_results().splits.get(name) if self.run.has_results else None
        if recorded is None:
            return name, result
        # The n-gram models of the training text are as they were.
        bits = recorded.baseline_bits_per_character
        return name, replace(result, baselines=recorded.baselines, baseline_bits_per_character=bits)

    def score_corpus(self, source: str) -> SplitResult:
        corpus = replace(open_corpus(source), documents=self.options.documents)
        return self.build_and_score(CorpusSplits(source, {"given": corpus}, {}), "given")

    def build_and_score(self, splits: CorpusSplits, split: str) -> SplitResult:
        setup = TextSetup(self.options, splits, self.tokenizer, self.model, self.block)
        objective = OBJECTIVES.find(self.options.objective).build(setup)
        with autocast(self.machine.precision, self.machine.device):
            metric = find_metric(self.options.metric or objective.metric, ())
            evaluation = metric.score(objective.evaluate(self.model, split))
        return text_result(evaluation, splits.splits[split], objective, split)

    def score_single_sentences(self, sentences: Sequence[str]) -> tuple[SentenceResult, ...]:
        with autocast(self.machine.precision, self.machine.device):
            return score_sentences(self.model, self.tokenizer, read_sentences(sentences), self.block)


def check_run(path: str | Path) -> tuple[list[Check], set[str]]:
    """Return a run's checks, and the names of those that were made again just now."""
    run = Run.open(path)
    pretrained = run.read_config().get("command") == "pretrain"
    repeated = repeat_pretrain_checks(run) if pretrained else repeat_adapt_checks(run)
    latest = {check.name: check for check in (*run.read_checks().checks, *repeated)}
    return list(latest.values()), {check.name for check in repeated}


def repeat_adapt_checks(run: Run) -> list[Check]:
    """Check a run of `adapt` again: causality, tokenizer, and some of its stored predictions."""
    predictor, options = load_run(run.path, device="cpu"), load_adapt_config(run.path)
    repeated = repeat_network_checks(predictor, options) if isinstance(predictor, NetworkPredictor) else []
    # Those of an average on dev are cross-fitted: the model itself has seen these rows.
    splits = ("test",) if options.model == ENSEMBLE else ("dev", "test")
    rows = list(islice(iterate_predictions(run, splits), PREDICTED_AGAIN))
    if rows and options.precision == "float32":
        pairs = [str(row.pair) for row in rows] if rows[0].pair is not None else None
        predictions = predictor.predict([str(row.text) for row in rows], pairs)
        if predictor.kind == "number":
            numbers = [
                [row.predicted_value or 0.0 for row in rows],
                [float(one.label) for one in predictions],
            ]
            return [*repeated, checks.reload(*map(torch.tensor, numbers))]
        columns = [predictor.classes or [row.predicted] for row in rows]  # a free answer is compared alone
        before = pick_log_probabilities([row.probabilities for row in rows], columns)
        after = pick_log_probabilities([one.probabilities for one in predictions], columns)
        repeated.append(checks.reload(before, after))
    return repeated


def repeat_network_checks(predictor: NetworkPredictor, options: AdaptOptions) -> list[Check]:
    causal = [checks.causality(predictor.model)] if predictor.model.config.kind != "encoder" else []
    from_scratch = starts_from_scratch(options.model)
    shipped = None if from_scratch else load_tokenizer(options.model)
    config = predictor.model.config
    return [
        *causal,
        checks.tokenizer_fits(predictor.tokenizer, config, pretrained=not from_scratch, shipped=shipped),
    ]


def pick_log_probabilities(rows: Sequence[Mapping[str, float]], columns: Sequence[Sequence[str]]) -> Tensor:
    """Return the logarithms, which show differences that are too small to see in a probability near 1."""
    picked = [[row.get(label, 0.0) for label in labels] for row, labels in zip(rows, columns, strict=True)]
    return torch.tensor(picked, dtype=torch.float64).clamp_min(1e-300).log()


def repeat_pretrain_checks(run: Run) -> list[Check]:
    """Check a run of `pretrain` again: causality, tokenizer, and that dev still has the same loss."""
    scores = LanguageModelScores(run.path)
    config = scores.model.config
    repeated = [checks.causality(scores.model)] if config.kind != "encoder" else []
    repeated.append(checks.tokenizer_fits(scores.tokenizer, config, pretrained=False))
    before = run.read_results().splits.get("dev") if run.has_results else None
    if before is not None and before.loss is not None and scores.machine.precision == "float32":
        now = scores.score_split("dev")[1].loss
        repeated.append(checks.reload(torch.tensor([before.loss]), torch.tensor([now or float("nan")])))
    return repeated
