"""Adapting a model to a task: everything from names to a finished run directory."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful import checkpoints, methods
from heedful.data import Task, load_task, tokenize
from heedful.errors import UserError, unknown
from heedful.evaluation import metrics as scores
from heedful.evaluation.baselines import baselines
from heedful.evaluation.intervals import wilson
from heedful.models import PRESETS, Classifier, LanguageModel
from heedful.objectives import (
    Classify,
    ClassifyFeatures,
    Evaluation,
    Joint,
    MaskedText,
    Objective,
    Text2Text,
    parse_words,
)
from heedful.runs.directory import Run, new_run_path
from heedful.runs.leases import Lease
from heedful.runs.schemas import Prediction, Results, SplitResult
from heedful.text import Tokenizer
from heedful.text import load as load_tokenizer
from heedful.training import resuming
from heedful.training.hooks import Hook, TensorBoard
from heedful.training.loop import Loop
from heedful.training.options import DEFAULT_LR, AdaptOptions
from heedful.training.running import (
    Finished,
    Machine,
    conduct,
    describe,
    measures,
    refuse_small,
    resolved,
    save_whole,
    settle_machine,
)
from heedful.training.selfcheck import examine
from heedful.training.stopping import Stopping


def adapt(options: AdaptOptions, hooks: Sequence[Hook] = ()) -> Finished:
    """Adapt a model to a task and leave a run directory. Resuming a finished run gives its results again."""
    refuse_impossible(options)

    def work(settled: AdaptOptions, stopping: Stopping) -> Finished:
        return prepare(settled).work(stopping, hooks)

    return conduct(options, lambda o: resolved(o, learning_rate(o)), work, "adapt")


def learning_rate(options: AdaptOptions) -> float:
    """The rate that was asked for, or what suits the method."""
    return options.lr if options.lr is not None else DEFAULT_LR[options.method]


def prepare(options: AdaptOptions) -> Job:
    """Load model, method and data, ready to train; nothing is written yet."""
    refuse_impossible(options)
    machine = settle_machine(options)
    return Job(options, task_of(options), machine)


def task_of(options: AdaptOptions) -> Task:
    """Load the task that the options name."""
    return load_task(
        options.task,
        data_dir=options.data_dir,
        text_column=options.text_column,
        pair_column=options.pair_column,
        label_column=options.label_column,
        split=options.split,
        seed=options.split_seed,
    )


def refuse_impossible(options: AdaptOptions) -> None:
    """Find mistakes before anything is loaded."""
    if options.method not in methods.METHODS:
        raise unknown("method", options.method, methods.METHODS)
    refuse_small(options, {"max_len": 4})
    if options.objective != "joint" and (options.unlabeled is not None or options.mlm_first):
        raise UserError("--unlabeled and --mlm-first belong to --objective joint")
    if options.objective != "text2text" and options.label_words:
        raise UserError("--label-words belongs to --objective text2text")
    if options.objective == "text2text" and options.head != "auto":
        raise UserError(f"--objective text2text writes label words and has no --head {options.head}")
    if options.unlabeled is not None and not options.unlabeled.is_file():
        raise UserError(f"{options.unlabeled}: there is no such file")
    if options.objective == "joint" and options.method in ("head", "prompt", "prefix"):
        raise UserError(f"--objective joint trains the body; --method {options.method} keeps it frozen")


def make_method(options: AdaptOptions) -> methods.Method:
    """The method with its options, read by their declared types."""
    known = methods.options(options.method)
    given: dict[str, Any] = {}
    for text in options.method_options:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f'--method-options "{text}": is not option=value')
        kind = known.get(name, str)
        if kind is bool and value.lower() in ("true", "false"):
            given[name] = value.lower() == "true"
        elif kind in (int, float):
            try:
                given[name] = kind(value)
            except ValueError:
                raise UserError(f"--method-options {name}={value}: takes {kind.__name__}") from None
        else:
            given[name] = value
    return methods.make(options.method, **given)


class Job:
    """The parts of one run, put together."""

    def __init__(self, options: AdaptOptions, task: Task, machine: Machine) -> None:
        self.options, self.task, self.machine, self.feature_seconds = options, task, machine, 0.0
        self.device, self.precision = machine.device, machine.precision
        self.from_nothing = options.model in PRESETS and not Path(options.model).is_dir()
        self.method = make_method(options)
        if self.from_nothing and not self.method.mergeable:
            raise UserError(
                f"--method {options.method} needs a pretrained model; {options.model} starts from nothing"
            )
        torch.manual_seed(options.seed)
        form = self.method.default_head_form if options.head == "auto" else options.head
        self.tokenizer = self.find_tokenizer()
        changes: dict[str, Any] = {}
        if options.dropout is not None:
            changes["dropout"] = options.dropout
        if self.from_nothing:
            ids = ("vocab_size", "pad_id", "bos_id", "eos_id")
            changes |= {name: getattr(self.tokenizer, name) for name in ids}
        model = checkpoints.load(
            options.model,
            head="text2text" if options.objective == "text2text" else "classify",
            n_classes=len(task.label_names),
            attention=options.attention,
            head_form=form,
            **changes,
        )
        assert isinstance(model, Classifier | LanguageModel)
        self.model, self.form = model, "text2text" if options.objective == "text2text" else form
        model.labels = list(task.label_names)
        self.method.attach(model)
        model.to(self.device)
        self.formula = self.method.formula(model)
        self.room = methods.room(model)
        self.max_len = min(options.max_len, self.room)
        if self.max_len < options.max_len:
            print(
                f"heedful: texts are cut to {self.max_len} tokens, what the model has room for",
                file=sys.stderr,
            )
        self.objective = self.make_objective()

    def find_tokenizer(self) -> Tokenizer:
        """The model's own tokenizer, unless told otherwise."""
        o = self.options
        if o.tokenizer is None and self.from_nothing:
            raise UserError(f"{o.model} is a model from nothing and has no tokenizer; --tokenizer names one")
        return load_tokenizer(o.tokenizer or o.model)

    plain: Classify
    """The classification in the objective."""

    def make_objective(self) -> Objective:
        """What is minimised."""
        o = self.options
        options: dict[str, Any] = {
            "max_len": self.max_len,
            "with_types": self.model.config.n_types > 1,
            "train_rows": o.train_rows,
            "label_smoothing": o.label_smoothing,
            "class_weights": o.class_weights,
            "seed": o.seed,
        }
        left_out = {name for name, scored in (("dev", o.score_dev), ("test", o.score_test)) if not scored}
        kept = {name: split for name, split in self.task.splits.items() if name not in left_out}
        task = replace(self.task, splits=kept)
        if o.objective == "text2text":
            options["words"] = parse_words(o.label_words, self.task.label_names)
            self.plain = Text2Text(task, self.tokenizer, **options)
            return self.plain
        plain = self.plain = Classify(task, self.tokenizer, **options)
        if o.objective == "joint":
            source = self.task.splits["train"] if o.unlabeled is None else o.unlabeled
            text = tokenize(source, self.tokenizer, max_len=self.max_len)
            masked = MaskedText(text, self.tokenizer, batch_size=o.batch_size, rate=o.mlm_rate, seed=o.seed)
            if o.mlm_weight or o.mlm_first:
                self.add_masked_head()
            return Joint(plain, masked, mlm_weight=o.mlm_weight, first_steps=o.mlm_first)
        if o.method == "head" and o.cache_features:
            print("heedful: the frozen body runs once; its dropout is off", file=sys.stderr)
            began = time.monotonic()
            features = ClassifyFeatures(plain, self.model)
            self.feature_seconds = time.monotonic() - began
            return features
        return plain

    def add_masked_head(self) -> None:
        """A second head on the same body, from the checkpoint where it has one."""
        changes: dict[str, Any] = {"vocab_size": self.tokenizer.vocab_size} if self.from_nothing else {}
        other = checkpoints.load(self.options.model, head="masked", **changes)
        assert isinstance(other, LanguageModel)
        self.model.masked_head = other.head
        if other.config.tie_output:
            other.head.out.weight = self.model.body.embed.tokens.weight

    def work(self, stopping: Stopping | None = None, hooks: Sequence[Hook] = ()) -> Finished:
        """Train, score, examine and write, as the only process at this run."""
        o = self.options
        out = o.out or new_run_path("runs", self.task.name, o.model, o.method, o.seed)
        with resuming.opened(out, o) as (run, lease):
            describe(run, self.machine, "adapt", resolved(o, learning_rate(o)), {"max_len": self.max_len})
            return self.train(run, lease, stopping or Stopping(), hooks)

    def train(self, run: Run, lease: Lease, stopping: Stopping, more: Sequence[Hook] = ()) -> Finished:
        """Train, score, examine and write."""
        o = self.options
        hooks = [*more, TensorBoard(run.path / "tensorboard")] if o.tensorboard else more
        parameters = self.method.trainable(self.model)
        if isinstance(self.objective, Joint):
            parameters |= {
                name: p for name, p in self.model.named_parameters() if name.startswith("masked_head.")
            }
        lr = learning_rate(o)
        loop = Loop(
            self.model, parameters, self.objective, o, lr, run, self.precision, hooks, stopping, lease.lost
        )
        progress = loop.train(resume=o.resume)
        found = {
            split: loop.score(split)
            for split in ("dev", "test")
            if split in self.objective.splits and (split == "dev" or o.score_test)
        }
        results = Results(
            task=self.task.name,
            model=o.model,
            method=o.method,
            head=self.form,
            seed=o.seed,
            splits=self.split_results(found),
            objective=o.objective,
            labels=tuple(self.task.label_names),
            **measures(run, self.model, parameters, progress, self.feature_seconds),
        )
        self.save_best(run)
        for split, evaluation in found.items():
            run.write_predictions(split, self.predictions(split, evaluation))
        checks = examine(self, loop, found, results, run)
        run.write_checks(checks)
        run.write_results(results)
        return Finished(run.path, results, checks, self.formula)

    def split_results(self, found: dict[str, Evaluation]) -> dict[str, SplitResult]:
        """Scores with intervals and baselines."""
        simple = baselines(self.task, list(found), self.plain.rows)
        names = self.task.label_names
        results = {}
        for split, e in found.items():
            assert e.labels is not None
            assert e.predicted is not None
            cells = scores.confusion(e.labels, e.predicted, len(names))
            right = int((e.labels == e.predicted).sum())
            results[split] = SplitResult(
                metric="accuracy",
                value=e.value,
                n=e.n,
                ci95=wilson(right, e.n),
                loss=e.loss,
                macro_f1=scores.macro_f1(cells),
                confusion=tuple(tuple(int(c) for c in row) for row in cells),
                predicted_counts={
                    name: int(n)
                    for name, n in zip(names, np.bincount(e.predicted, minlength=len(names)), strict=True)
                },
                baselines=simple.get(split),
            )
        return results

    def predictions(self, split: str, e: Evaluation) -> list[Prediction]:
        """One row an example, with its text."""
        names = self.task.label_names
        assert e.labels is not None
        assert e.predicted is not None
        assert e.probabilities is not None
        return [
            Prediction(
                id=f"{split}-{i}",
                label=names[e.labels[i]],
                predicted=names[e.predicted[i]],
                probabilities=dict(zip(names, e.probabilities[i].tolist(), strict=True)),
                text=example.text,
                pair=example.pair,
            )
            for i, example in enumerate(self.task.splits[split])
        ]

    def save_best(self, run: Run) -> None:
        """Write best/: the whole model for `full`, adapter and head with the base's name for the others."""
        if self.from_nothing:
            self.method.merge(self.model)  # no base to name: what was learnt goes into the whole
        if self.options.method == "full" or self.from_nothing:
            save_whole(run, self.model, self.tokenizer)
        else:
            shutil.rmtree(run.best, ignore_errors=True)
            methods.write_adapter(self.model, self.method, run.best, self.options.model)
            self.tokenizer.save(run.best)
