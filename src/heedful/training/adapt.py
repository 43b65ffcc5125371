"""Adapting a model to a task: everything from names to a finished run directory."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful import checkpoints, methods
from heedful.data import Task, load_task, tokenize
from heedful.data.named import NAMED, WORLD
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
from heedful.runs.directory import CONFIG, ENVIRONMENT, RESULTS, Run, new_run_path
from heedful.runs.environment import environment, peak_memory_gb, usable_cores
from heedful.runs.leases import Lease
from heedful.runs.schemas import Checks, Prediction, Results, SplitResult
from heedful.text import Tokenizer
from heedful.text import load as load_tokenizer
from heedful.training import resuming
from heedful.training.hooks import Hook, TensorBoard
from heedful.training.loop import Loop, find_device
from heedful.training.options import DEFAULT_LR, NOT_IN_CONFIG, AdaptOptions
from heedful.training.precision import choose
from heedful.training.selfcheck import examine
from heedful.training.stopping import Stopping


@dataclass(frozen=True)
class Finished:
    """A finished run: where it is and how it did."""

    folder: Path
    results: Results
    checks: Checks
    formula: str = ""
    """The number of trained parameters as a function of the model's width."""


def adapt(options: AdaptOptions) -> Finished:
    """Adapt a model to a task and leave a run directory. Resuming a finished run gives its results again."""
    if options.resume and options.out is None:
        raise UserError("--resume needs --out, the run to continue")
    refuse_impossible(options)
    if options.resume and options.out is not None:
        out = options.out
        options = resuming.continued(options, resolved(options))
        if (out / RESULTS).is_file():
            finished = Run.open(out)
            return Finished(finished.path, finished.results(), finished.checks())
    if options.out is not None and options.out.exists() and not (options.resume or options.overwrite):
        Run.create(options.out)  # refuses a folder that is not empty, before anything is loaded
    stopping = Stopping()
    with stopping.listening():
        return prepare(options).work(stopping)


def prepare(options: AdaptOptions) -> Job:
    """Load model, method and data, ready to train; nothing is written yet."""
    refuse_impossible(options)
    threads = options.threads or usable_cores()
    torch.set_num_threads(threads)
    device = find_device(options.device)
    precision, notice = choose(options.precision, device)
    if notice is not None:
        print(f"heedful: {notice}", file=sys.stderr)
    task = load_task(
        options.task,
        data_dir=options.data_dir,
        text_column=options.text_column,
        pair_column=options.pair_column,
        label_column=options.label_column,
        split=options.split,
        seed=options.split_seed,
    )
    return Job(options, task, device, precision, threads)


def refuse_impossible(options: AdaptOptions) -> None:
    """Find mistakes before anything is loaded."""
    if options.method not in methods.METHODS:
        raise unknown("method", options.method, methods.METHODS)
    for name, least in (("epochs", 1), ("batch_size", 1), ("accumulate", 1), ("max_len", 4)):
        if getattr(options, name) < least:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} {getattr(options, name)}: must be at least {least}")
    if options.lr is not None and not options.lr > 0:
        raise UserError(f"--lr {options.lr}: must be above 0")
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


def resolved(options: AdaptOptions) -> dict[str, Any]:
    """The options as config.toml has them: with the learning rate that is used, and whole paths."""
    values = {k: v for k, v in asdict(options).items() if k not in NOT_IN_CONFIG and v is not None}
    values = {k: whole_path(k, v) for k, v in values.items()}
    return values | {"lr": options.lr if options.lr is not None else DEFAULT_LR[options.method]}


def whole_path(name: str, value: Any) -> Any:
    """A path as it reads from every folder; a name stays one."""
    if isinstance(value, Path):
        return str(value.expanduser().absolute())
    named = name == "task" and (value in NAMED or value in WORLD)
    if name in ("model", "task", "tokenizer") and not named and Path(value).expanduser().exists():
        return str(Path(value).expanduser().absolute())
    return value


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

    def __init__(
        self, options: AdaptOptions, task: Task, device: torch.device, precision: str, threads: int
    ) -> None:
        self.options, self.task, self.device, self.precision = options, task, device, precision
        self.threads, self.feature_seconds = threads, 0.0
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
        model.to(device)
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
        if o.objective == "text2text":
            options["words"] = parse_words(o.label_words, self.task.label_names)
            self.plain = Text2Text(self.task, self.tokenizer, **options)
            return self.plain
        plain = self.plain = Classify(self.task, self.tokenizer, **options)
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

    def work(self, stopping: Stopping | None = None) -> Finished:
        """Train, score, examine and write, as the only process at this run."""
        o = self.options
        out = o.out or new_run_path("runs", self.task.name, o.model, o.method, o.seed)
        with resuming.opened(out, o) as (run, lease):
            self.describe(run)
            return self.train(run, lease, stopping or Stopping())

    def describe(self, run: Run) -> None:
        """Write the configuration and the environment; of a run that goes on, those of its beginning stay."""
        here = environment(threads=self.threads, device=str(self.device), precision=self.precision)
        if (run.path / CONFIG).is_file() and (run.path / ENVIRONMENT).is_file():
            begun = resuming.stored_options(run.path)["max_len"]
            if begun != self.max_len:
                raise resuming.different(run.path, "max_len", begun, self.max_len)
            resuming.compare_environments(run, here)
            return
        run.write_environment(here)
        run.write_config(self.config())

    def train(self, run: Run, lease: Lease, stopping: Stopping) -> Finished:
        """Train, score, examine and write."""
        o = self.options
        hooks: list[Hook] = [TensorBoard(run.path / "tensorboard")] if o.tensorboard else []
        parameters = self.method.trainable(self.model)
        if isinstance(self.objective, Joint):
            parameters |= {
                name: p for name, p in self.model.named_parameters() if name.startswith("masked_head.")
            }
        lr = o.lr if o.lr is not None else DEFAULT_LR[o.method]
        loop = Loop(
            self.model, parameters, self.objective, o, lr, run, self.precision, hooks, stopping, lease.lost
        )
        progress = loop.train(resume=o.resume)
        found = {
            split: loop.score(split)
            for split in ("dev", "test")
            if split in self.objective.splits and (split == "dev" or o.score_test)
        }
        trained = sum(p.numel() for p in parameters.values())
        seconds = max(progress.seconds + self.feature_seconds, 1e-9)
        results = Results(
            task=self.task.name,
            model=o.model,
            method=o.method,
            head=self.form,
            seed=o.seed,
            splits=self.split_results(found),
            trainable_parameters=trained,
            total_parameters=sum(p.numel() for p in self.model.parameters()),
            seconds=seconds,
            examples_per_second=progress.examples / seconds,
            tokens_per_second=progress.tokens / seconds,
            memory_gb=peak_memory_gb(),
            objective=o.objective,
            labels=tuple(self.task.label_names),
            best_step=progress.best_step,
            best_epoch=next((row.epoch for row in run.metrics() if row.step == progress.best_step), None),
        )
        self.save_best(run)
        for split, evaluation in found.items():
            run.write_predictions(split, self.predictions(split, evaluation))
        checks = examine(self, loop, found, results, run)
        run.write_checks(checks)
        run.write_results(results)
        return Finished(run.path, results, checks, self.formula)

    def config(self) -> dict[str, Any]:
        """The resolved configuration, which makes the run again."""
        found = {"threads": self.threads, "precision": self.precision, "max_len": self.max_len}
        return {"command": "adapt", "adapt": resolved(self.options) | found}

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
        shutil.rmtree(run.best, ignore_errors=True)
        if self.from_nothing:
            self.method.merge(self.model)  # no base to name: what was learnt goes into the whole
        if self.options.method == "full" or self.from_nothing:
            with tempfile.TemporaryDirectory() as folder:
                self.tokenizer.save(Path(folder))
                checkpoints.save(self.model, run.best, tokenizer=folder)
        else:
            methods.write_adapter(self.model, self.method, run.best, self.options.model)
            self.tokenizer.save(run.best)
