"""Adapting a model to a task: everything from names to a finished run directory."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from heedful import checkpoints, methods
from heedful.data import Task, tokenize
from heedful.data.corpus import read_file_texts
from heedful.data.tasks import find_task
from heedful.errors import UserError
from heedful.inference.generation import generate
from heedful.inference.loading import generating_head
from heedful.models import PRESETS, Classifier, LanguageModel
from heedful.models.heads import with_article
from heedful.objectives import (
    Classify,
    ClassifyFeatures,
    Joint,
    MaskedText,
    Objective,
    Text2Text,
    parse_words,
)
from heedful.objectives.answer import AnswerObjective
from heedful.objectives.questions import QuestionFormat
from heedful.options.training import AdaptOptions, named_after
from heedful.options.values import parse_assignments
from heedful.problems.tasks import load_run_task
from heedful.runs.directory import Run, new_run_path
from heedful.runs.json_files import read_json
from heedful.runs.leases import Lease
from heedful.runs.schemas import Results
from heedful.text import KINDS, MASK_KINDS, Tokenizer, no_mask
from heedful.text import load as load_tokenizer
from heedful.text import train as train_tokenizer
from heedful.training import resume
from heedful.training.build.model import from_nothing, read_model_options, refuse_more_tokens, settled_changes
from heedful.training.loop import Loop
from heedful.training.ranks import current_ranks
from heedful.training.running import (
    Finished,
    Machine,
    check_loop_options,
    conduct,
    describe,
    followed,
    measures,
    refuse_unread,
    resolved,
    save_whole,
    settle_machine,
)
from heedful.training.scorer import AnswerScores, LabelScores, Scoring
from heedful.training.self_check import examine
from heedful.training.signals import StopSignals
from heedful.training.trackers import Hook, TensorBoard

DEFAULTS = AdaptOptions()


def adapt(options: AdaptOptions, hooks: Sequence[Hook] = ()) -> Finished:
    """Adapt a model to a task and leave a run directory. Resuming a finished run gives its results again."""
    refuse_impossible(options)
    options = resume.resolve_resumed_folder(options)

    def work(settled: AdaptOptions, stopping: StopSignals) -> Finished:
        with current_ranks().first_process_first():
            job = prepare(settled)
        return job.work(stopping, hooks)

    return conduct(options, lambda o: resolved(settled_objective(o), learning_rate(o)), work, "adapt")


def learning_rate(options: AdaptOptions) -> float:
    """The rate that was asked for, or what suits the method."""
    return options.lr if options.lr is not None else methods.METHODS.find(options.method).learning_rate


def prepare(options: AdaptOptions) -> Job:
    """Load model, method and data, ready to train; nothing is written yet."""
    refuse_impossible(options)
    options = settled_objective(options)
    machine = settle_machine(options)
    return Job(options, load_run_task(options), machine)


def settled_objective(options: AdaptOptions) -> AdaptOptions:
    """With `auto`, the objective that the task asks for."""
    if options.objective == "auto":
        _, rules = find_task(options.task, options.data_dir)
        options = replace(options, objective="answer" if rules.kind == "text2text" else "classify")
    if options.objective != "answer" and options.answer_loss != DEFAULTS.answer_loss:
        raise UserError(f"--answer-loss {options.answer_loss}: this task has labels, and no answers")
    if options.objective == "answer" and options.class_weights != "none":
        raise UserError(f"--class-weights {options.class_weights}: answers are free text and have no classes")
    if options.objective == "answer" and options.head != "auto":
        raise UserError(f"--objective answer writes text and has no --head {options.head}")
    if options.objective == "answer" and methods.METHODS[options.method].head_only:
        raise UserError(
            f"--method {options.method} trains a classifier's head; answers are written by the whole model"
        )
    return options


def refuse_impossible(options: AdaptOptions) -> None:
    """Find mistakes before anything is loaded."""
    method = methods.METHODS.find(options.method)
    check_loop_options(options)
    joint, text2text = options.objective == "joint", options.objective == "text2text"
    owners = {
        "--objective joint": (joint, ("unlabeled", "mlm_first", "mlm_weight", "mlm_rate")),
        "--objective text2text": (text2text, ("label_words",)),
    }
    refuse_unread(options, owners)
    if text2text and options.head != "auto":
        raise UserError(f"--objective text2text writes label words and has no --head {options.head}")
    if options.unlabeled is not None and not options.unlabeled.is_file():
        raise UserError(f"{options.unlabeled}: there is no such file")
    if joint and method.frozen_body:
        raise UserError(f"--objective joint trains the body; --method {options.method} keeps it frozen")
    if options.pool is not None and options.objective in ("answer", "text2text"):
        raise UserError(f"--pool is for classifying; --objective {options.objective} writes text")
    read_model_options(options.model, options.model_options)


def ready_tokenizer(options: AdaptOptions) -> Tokenizer | None:
    """The tokenizer that is named, or the model's own; none where one is to be trained on the task's text."""
    name, model, fresh = options.tokenizer, options.model, from_nothing(options.model)
    if name is None and fresh:
        raise UserError(
            f"{model} is a model from nothing and has no tokenizer; --tokenizer names one (minilm, a folder) "
            "or a kind to train (wordpiece, bpe, ...)"
        )
    if name is None:
        return load_tokenizer(model, known=PRESETS)
    if name not in KINDS or Path(name).is_dir():
        return load_tokenizer(name)
    if not fresh:
        raise UserError(f"--tokenizer {name}: {model} has a vocabulary already; leave the option out")
    if options.objective == "joint" and name not in MASK_KINDS:
        raise no_mask("--objective joint")
    return None


def task_texts(task: Task) -> Iterator[str]:
    """What a tokenizer for a task alone is trained on: its corpus, and train with its answers."""
    if task.corpus is not None:
        yield from read_file_texts(task.corpus)
    train = task.splits["train"]
    for column in (train.texts, train.pairs, train.answers):
        yield from column or ()


def trained_for_the_mean(model: Classifier | LanguageModel) -> bool:
    """Whether an encoder's folder says, in sentence-transformers' form, that its states are averaged."""
    folder: Path | None = model.report.folder
    if folder is None or model.config.pool == "mean" or model.config.family not in checkpoints.FAMILIES:
        return False
    pooling = folder / "1_Pooling" / "config.json"
    return pooling.is_file() and bool(read_json(pooling).get("pooling_mode_mean_tokens"))


def make_method(options: AdaptOptions) -> methods.Method:
    """Build the method, with its options read by their declared types."""
    hints = methods.options(options.method)
    return methods.make(
        options.method, **parse_assignments(options.method_options, hints, "--method-options", options.method)
    )


class Job:
    """The parts of one run, put together."""

    def __init__(self, options: AdaptOptions, task: Task, machine: Machine) -> None:
        self.options, self.task, self.machine, self.feature_seconds = options, task, machine, 0.0
        self.device, self.precision = machine.device, machine.precision
        self.from_nothing = from_nothing(options.model)
        self.method = make_method(options)
        if self.from_nothing and not self.method.mergeable:
            raise UserError(
                f"--method {options.method} needs a pretrained model; {options.model} starts from nothing"
            )
        torch.manual_seed(options.seed)
        form = self.method.default_head_form if options.head == "auto" else options.head
        self.tokenizer = self.find_tokenizer()
        self.head = self.find_head()
        self.changes = read_model_options(options.model, options.model_options)
        if options.dropout is not None:
            self.changes["dropout"] = options.dropout
        if options.pool is not None:
            kind = checkpoints.kind_of(options.model)
            if kind != "encoder":
                raise UserError(f"--pool is for encoders; {options.model} is {with_article(kind)}")
            self.changes["pool"] = options.pool
        if self.from_nothing:
            self.changes = settled_changes(options.model, self.changes, self.tokenizer)
        model = checkpoints.load(
            options.model,
            head=self.head,
            n_classes=len(task.label_names) or None,
            attention=options.attention,
            head_form=form,
            **self.changes,
        )
        assert isinstance(model, Classifier | LanguageModel)
        self.model, self.form = model, form if self.head == "classify" else self.head
        refuse_more_tokens(self.tokenizer, model)
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
        ready = ready_tokenizer(self.options)
        if ready is not None:
            return ready
        return train_tokenizer(task_texts(self.task), kind=str(self.options.tokenizer))

    def find_head(self) -> str:
        """The head that the objective needs on this kind of model."""
        o = self.options
        if o.objective == "answer":
            return generating_head(o.model)
        return "text2text" if o.objective == "text2text" else "classify"

    plain: Classify
    """The classification in the objective, where there is one."""
    scoring: Scoring

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
        if o.objective == "answer":
            form = QuestionFormat(self.tokenizer, self.max_len, self.model.config.kind == "encoder_decoder")
            options = {name: options[name] for name in ("train_rows", "label_smoothing", "seed")}
            answer = AnswerObjective(task, form, generate, loss=o.answer_loss, **options)
            self.scoring = AnswerScores(self.task, answer)
            return answer
        if o.objective == "text2text":
            options["words"] = parse_words(o.label_words, self.task.label_names)
            plain: Classify = Text2Text(task, self.tokenizer, **options)
        else:
            plain = Classify(task, self.tokenizer, **options)
        self.plain, self.scoring = plain, LabelScores(self.task, plain)
        if o.objective == "joint":
            source = self.task.splits["train"] if o.unlabeled is None else o.unlabeled
            text = tokenize(source, self.tokenizer, max_len=self.max_len)
            masked = MaskedText(text, self.tokenizer, batch_size=o.batch_size, rate=o.mlm_rate, seed=o.seed)
            if o.mlm_weight or o.mlm_first:
                self.add_masked_head()
            return Joint(plain, masked, mlm_weight=o.mlm_weight, first_steps=o.mlm_first)
        if self.method.head_only and o.pool is None and trained_for_the_mean(self.model):
            print(
                f"heedful: {o.model} was trained for the mean of its states; see --pool mean",
                file=sys.stderr,
            )
        if self.method.head_only and o.cache_features:
            print("heedful: the frozen body runs once; its dropout is off", file=sys.stderr)
            began = time.monotonic()
            features = ClassifyFeatures(plain, self.model)
            self.feature_seconds = time.monotonic() - began
            return features
        return plain

    def add_masked_head(self) -> None:
        """A second head on the same body, from the checkpoint where it has one."""
        other = checkpoints.load(self.options.model, head="masked", **self.changes)
        assert isinstance(other, LanguageModel)
        self.model.masked_head = other.head.to(self.device)
        if other.config.tie_output:
            other.head.out.weight = self.model.body.embed.tokens.weight

    def work(self, stopping: StopSignals | None = None, hooks: Sequence[Hook] = ()) -> Finished:
        """Train, score, examine and write, as the only process at this run."""
        o = self.options
        out = current_ranks().broadcast(o.out or new_run_path("runs", *named_after(o)))
        with resume.open_run(out, o) as (run, lease):
            describe(run, self.machine, "adapt", resolved(o, learning_rate(o)), {"max_len": self.max_len})
            return self.train(run, lease, stopping or StopSignals(), hooks)

    def trainable(self) -> dict[str, torch.nn.Parameter]:
        """What a step moves: the method's parameters, and the second head where there is one."""
        second = {n: p for n, p in self.model.named_parameters() if n.startswith("masked_head.")}
        return self.method.trainable(self.model) | second

    def train(self, run: Run, lease: Lease, stopping: StopSignals, more: Sequence[Hook] = ()) -> Finished:
        """Train, score, examine and write."""
        o = self.options
        hooks = [*more, TensorBoard(run.path / "tensorboard")] if o.tensorboard else more
        parameters = self.trainable()
        lr = learning_rate(o)
        loop = Loop(
            self.model, parameters, self.objective, o, lr, run, self.precision, hooks, stopping, lease.lost
        )
        progress = loop.train(resume=o.resume)
        if not current_ranks().first:
            return followed(run)
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
            splits=self.scoring.results(found),
            objective=o.objective,
            labels=tuple(self.task.label_names),
            formula=self.formula,
            note=o.note,
            **measures(run, self.model, parameters, progress, self.feature_seconds),
        )
        self.save_best(run)
        self.scoring.write(run, found)
        self.scoring.write_unscored(run, self.model)
        checks = examine(self, loop, found, results, run)
        run.write_checks(checks)
        run.write_results(results)
        current_ranks().barrier()
        return Finished(run.path, results, checks)

    def save_best(self, run: Run) -> None:
        """Write best/: the whole model for `full`, adapter and head with the base's name for the others."""
        if hasattr(self.model, "masked_head"):
            del self.model.masked_head  # it helped to train, and answers nothing
        if self.from_nothing:
            self.method.merge(self.model)  # no base to name: what was learnt goes into the whole
        if self.method.saves_whole_model or self.from_nothing:
            save_whole(run, self.model, self.tokenizer)
        else:
            shutil.rmtree(run.best, ignore_errors=True)
            methods.write_adapter(self.model, self.method, run.best, self.options.model)
            self.tokenizer.save(run.best)
