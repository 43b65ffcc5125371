"""A run looked at again: its best model scored on a split, and examined anew."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from heedful import checkpoints, methods
from heedful.errors import UserError, unknown
from heedful.evaluation import checks
from heedful.evaluation.metrics import METRICS
from heedful.inference.loading import iterate_predictions, load_best_model, load_run, shipped_tokenizer
from heedful.models import PRESETS, EncoderDecoder, Model
from heedful.objectives import ClassifyFeatures, Evaluation
from heedful.options.training import AdaptOptions
from heedful.runs.config import load_adapt_config
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, SplitResult
from heedful.text import load as load_tokenizer
from heedful.training.build.adapt import Job, prepare
from heedful.training.precision import autocast
from heedful.training.rescoring import check_language

EXAMINED_ROWS = 64
"""Recorded predictions that are made again."""
PROBE = (4, 16)
"""Rows and tokens of random text for a model without data."""


def evaluate(path: str | Path, split: str) -> SplitResult:
    """Score a run's best model on a split of its task, as the run itself did."""
    job, found = score(Run.open(path), split)
    return job.scoring.results({split: found})[split]


def add_split(path: str | Path, split: str) -> SplitResult:
    """Score a finished run on a split that it has not scored, and add that to its results and predictions.

    What is there already is given back as it is: a study looks at test once.
    """
    run = Run.open(path)
    results = run.results()
    if split in results.splits:
        return results.splits[split]
    job, found = score(run, split)
    added = job.scoring.results({split: found})
    job.scoring.write(run, {split: found})
    run.write_results(replace(results, splits={**results.splits, **added}))
    return added[split]


def score(run: Run, split: str) -> tuple[Job, Evaluation]:
    """Put a run's parts together again, and score a split."""
    path = run.path
    if not run.best.is_dir():
        load_run(path)  # says why there is no best model
    options = load_adapt_config(run.path)
    job = prepare(
        replace(
            options,
            cache_features=False,
            objective="classify" if options.objective == "joint" else options.objective,
            unlabeled=None,
            mlm_first=0,
            mlm_weight=AdaptOptions.mlm_weight,
            mlm_rate=AdaptOptions.mlm_rate,
            score_dev=True,
            score_test=True,
        )
    )
    objective = job.objective
    if split not in objective.splits:
        raise UserError(f"{job.task.name}: {unknown('split with labels', split, objective.splits)}")
    model = load_best_model(run.best, run.config()["adapt"]).to(job.device)
    if methods.METHODS[options.method].head_only and options.cache_features:
        objective = ClassifyFeatures(job.plain, model, split)
    with autocast(job.precision, job.device):
        metric = METRICS.find(options.metric or objective.metric)
        return job, metric.score(objective.evaluate(model, split))


def check_run(path: str | Path) -> tuple[list[Check], set[str]]:
    """A run's findings, and the names of those that were examined again just now."""
    run = Run.open(path)
    if run.config().get("command") == "pretrain":
        return check_language(path)
    adapted = load_run(path, device="cpu")
    options = load_adapt_config(run.path)
    again = [checks.causality(adapted.model)] if adapted.model.config.kind != "encoder" else []
    from_nothing = options.model in PRESETS and not Path(options.model).is_dir()
    again.append(
        checks.tokenizer_fits(
            adapted.tokenizer,
            adapted.model.config,
            pretrained=not from_nothing,
            shipped=None if from_nothing else load_tokenizer(options.model),
        )
    )
    rows = list(islice(iterate_predictions(run), EXAMINED_ROWS))
    if rows and options.precision == "float32":
        pairs = [str(row.pair) for row in rows] if rows[0].pair is not None else None
        answers = adapted.predict([str(row.text) for row in rows], pairs)
        asked = [adapted.labels or [row.predicted] for row in rows]  # of free answers, the one that was given
        before = [
            [row.probabilities.get(label, 0.0) for label in own] for row, own in zip(rows, asked, strict=True)
        ]
        after = [
            [a.probabilities.get(label, 0.0) for label in own] for a, own in zip(answers, asked, strict=True)
        ]
        again.append(checks.reload(logits(before), logits(after)))
    found = {check.name: check for check in (*run.checks().checks, *again)}
    return list(found.values()), {check.name for check in again}


def logits(probabilities: Sequence[Sequence[float]]) -> Tensor:
    """Logarithms, which show a difference that is too small to see in a probability near 1."""
    return torch.tensor(probabilities, dtype=torch.float64).clamp_min(1e-300).log()


def check_model(name: str) -> list[Check]:
    """What can be said of a model without data: it is causal, fits its tokenizer and survives being saved."""
    model = checkpoints.load(name)
    return [checks.causality(model), own_tokenizer(model, name), round_trip(model)]


def own_tokenizer(model: Model, name: str) -> Check:
    """The tokenizer beside the weights belongs to them."""
    if model.report.folder is None:
        return Check("tokenizer_fits", "skipped", "A model from nothing has no tokenizer of its own.")
    try:
        tokenizer = load_tokenizer(name)
    except UserError as error:
        return Check("tokenizer_fits", "skipped", f"There is no tokenizer to look at: {error}.")
    shipped = shipped_tokenizer(model, name, None, tokenizer)
    return checks.tokenizer_fits(tokenizer, model.config, pretrained=True, shipped=shipped)


def round_trip(model: Model) -> Check:
    """Saved and loaded again, the model gives the same states on random text."""
    random = torch.Generator().manual_seed(0)
    rows, length = PROBE
    ids = torch.randint(model.config.vocab_size, (rows, min(length, model.config.max_len)), generator=random)
    with tempfile.TemporaryDirectory() as folder:
        again = checkpoints.load(checkpoints.save(model, Path(folder) / "saved"))
    with torch.inference_mode():
        return checks.reload(states(model, ids), states(again, ids))


def states(model: Model, ids: Tensor) -> Tensor:
    """Last hidden states."""
    found: Tensor = model.decode(ids, model.encode(ids)) if isinstance(model, EncoderDecoder) else model(ids)
    return found
