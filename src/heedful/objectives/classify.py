"""Classification: labels or a number per text, or per pair of texts, from one pooled state."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.random import stream
from heedful.errors import UserError
from heedful.objectives.base import (
    ALL_KINDS,
    Evaluation,
    Floats,
    Inputs,
    Ints,
    Losses,
    Objective,
    evaluation_mode,
    iterate_by_length,
    pad_rows,
    upcast,
)
from heedful.objectives.features import compute_pooled
from heedful.objectives.readings import READINGS, LabelReading, Reading, Targets, make_reading
from heedful.objectives.setup import TaskSetup
from heedful.options.types import LongTexts
from heedful.statistics.shares import correct_probabilities, find_shares, log_correction, read_shares
from heedful.text import Tokenizer

if TYPE_CHECKING:
    from heedful.data import Task, Tokens

ClassWeights = Literal["none", "balanced"]
PART = 4096
"""The number of texts that `train_ids` reads at a time."""


def choose_train_rows(labels: Ints, count: int, seed: int, *, balanced: bool = False) -> Ints:
    """Choose `count` rows with the label shares of all rows, and at least one row per label.

    `balanced` makes the labels as equally frequent as possible. A larger choice contains a smaller one.
    """
    n_classes = int(labels.max()) + 1
    if count > len(labels):
        raise UserError(f"--train-rows {count}: the training data has {len(labels)} rows")
    if count < n_classes:
        raise UserError(f"--train-rows {count}: there are {n_classes} labels, and each needs a row")
    order = stream(seed, "train rows").permutation(len(labels))
    turn = np.empty(len(labels))  # how many rows of the same label come earlier, or their share of the label
    for label in range(n_classes):
        rows = order[labels[order] == label]
        turn[rows] = np.arange(len(rows)) / (1 if balanced else max(1, len(rows)))
    ranked = order[np.argsort(turn[order], kind="stable")]
    return np.sort(ranked[:count])


def choose_task_rows(task: Task, count: int, seed: int, *, balanced: bool = False) -> Ints:
    """Choose `count` rows of train as `choose_train_rows` does; without single labels, any rows."""
    train = task.splits["train"]
    if train.labels is not None:
        return choose_train_rows(train.labels.astype(np.int64), count, seed, balanced=balanced)
    if balanced:
        raise UserError("--balanced makes single labels equally frequent; leave it out")
    return choose_train_rows(np.zeros(len(train), np.int64), count, seed)


def describe_kind(task: Task) -> str:
    """Say what the answers of a task are."""
    titles = {"labels": "any number of labels per text", "number": "a number per text"}
    titles |= {"text2text": "free answers", "ordered": "ordered classes"}
    return titles.get(task.kind, "one label per text")


def correct_shares(expected: str, task: Task, labels: Ints, *, balanced: bool = False) -> Floats:
    """Return the correction of the logits of a model that is trained on these labels.

    With balanced class weights it is trained as if all labels had equal shares.
    """
    n = len(task.label_names)
    in_train = np.bincount(np.asarray(task.splits["train"].labels), minlength=n)
    trained = np.full(n, 1 / n) if balanced else find_shares(np.bincount(labels, minlength=n))
    return log_correction(trained, read_shares(expected, task.label_names, in_train))


def common_options(setup: TaskSetup) -> dict[str, Any]:
    """Return the arguments that every objective with labels takes from the command's options."""
    o = setup.options
    return {
        "max_len": setup.max_len,
        "long_texts": o.long_texts,
        "with_types": setup.model.config.n_types > 1,
        "train_rows": o.train_rows,
        "balanced": o.balanced,
        "label_smoothing": o.label_smoothing,
        "class_weights": o.class_weights,
        "expect_shares": o.expect_shares,
        "metric": o.metric,
        "seed": o.seed,
    }


class Classify(Objective):
    """Cross-entropy of the label, summed over texts."""

    name = "classify"
    metric = "accuracy"
    outputs: ClassVar[tuple[str, ...]] = ("predictions", "probabilities")
    problem = "label"
    commands = ("adapt",)
    heads = dict.fromkeys(ALL_KINDS, "classify")
    own_options: ClassVar[tuple[str, ...]] = ("long_texts",)
    caches_features = fits_head = True
    kinds: ClassVar[tuple[str, ...]] = ("classify", "ordered")
    """The kinds of tasks that it can train."""

    def __init__(
        self,
        task: Task,
        tokenizer: Tokenizer,
        *,
        max_len: int,
        with_types: bool,
        long_texts: LongTexts = "cut",
        train_rows: int | None = None,
        balanced: bool = False,
        label_smoothing: float = 0.0,
        class_weights: ClassWeights = "none",
        expect_shares: str | None = None,
        metric: str | None = None,
        seed: int = 0,
    ) -> None:
        if task.kind not in READINGS:
            raise UserError(f"{task.name} has answers, not labels; classification needs labels")
        self.reading: Reading = make_reading(task, metric)
        self.task, self.tokenizer, self.max_len, self.seed = task, tokenizer, max_len, seed
        self.with_types, self.long_texts = with_types, long_texts
        self.weights = {"classify": 1.0}
        from heedful.data.tokens import tokenize

        self.tokens: dict[str, Tokens] = {
            name: tokenize(split, tokenizer, max_len=max_len, long_texts=long_texts)
            for name, split in task.splits.items()
            if split.targets is not None
        }
        self.labels: dict[str, Targets] = {name: self.reading.read_targets(name) for name in self.tokens}
        self.lengths = {name: tokens.lengths for name, tokens in self.tokens.items()}
        self.rows = np.arange(len(self.tokens["train"]))
        if train_rows is not None:
            self.rows = choose_task_rows(task, train_rows, seed, balanced=balanced)
        self.label_smoothing = label_smoothing
        self.class_weights = self.compute_class_weights(class_weights)
        self.correction: Floats | None = None
        """What is added to the logits for the shares of the labels that are expected."""
        if expect_shares is not None:
            labels, balanced = self.labels["train"], class_weights == "balanced"
            self.correction = correct_shares(expect_shares, task, labels[self.rows], balanced=balanced)
        self.pad_id = 0 if tokenizer.pad_id is None else tokenizer.pad_id

    @classmethod
    def build(cls, setup: TaskSetup) -> Objective:
        if setup.task.kind not in cls.kinds:
            raise UserError(f"--objective {cls.name}: {setup.task.name} has {describe_kind(setup.task)}")
        if setup.options.expect_shares is not None and setup.task.kind in ("labels", "number"):
            raise UserError("--expect-shares: are those of one label per text; leave it out")
        if setup.options.expect_shares is not None and not setup.model.has_bias:
            raise UserError("--expect-shares: this head has no bias to correct; --head linear has one")
        objective = cls(setup.task, setup.tokenizer, **common_options(setup))
        objective.reading.prepare(setup.model)
        return objective

    def compute_class_weights(self, how: ClassWeights) -> Tensor | None:
        """Return weights with which every label counts the same in total."""
        if how == "none":
            return None
        return self.reading.weigh(self.labels["train"][self.rows])

    @property
    def splits(self) -> Sequence[str]:
        return list(self.tokens)

    def train_lengths(self) -> Ints:
        return self.lengths["train"][self.rows]

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        rows = self.rows[examples]
        return [self.inputs("train", part) for part in np.array_split(rows, parts) if len(part)]

    def inputs(self, split: str, rows: Ints) -> Inputs:
        ids, mask, types = pad_rows(self.tokens[split], rows, self.pad_id)
        tensors = {"ids": torch.from_numpy(ids), "mask": torch.from_numpy(mask)}
        if self.with_types and types is not None:
            tensors["types"] = torch.from_numpy(types)
        return self.add_labels(tensors, split, rows, int(mask.sum()))

    def add_labels(self, tensors: dict[str, Tensor], split: str, rows: Ints, tokens: int) -> Inputs:
        """Add the labels to the tensors. With class weights, the loss becomes a weighted mean."""
        labels = tensors["labels"] = torch.from_numpy(self.labels[split][rows])
        divisor = self.reading.divide_by(labels, self.class_weights)
        divisors = None if divisor is None else {"classify": divisor}
        return Inputs(tensors, {"classify": len(rows)}, len(rows), tokens, divisors)

    def logits(self, model: nn.Module, inputs: Inputs) -> Tensor:
        t = inputs.tensors
        result: Tensor = model(t["ids"], t["mask"], t.get("types"))
        return result

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        logits, labels = upcast(self.logits(model, inputs)), inputs.tensors["labels"]
        weight = None if self.class_weights is None else self.class_weights.to(logits)
        loss = self.reading.sum_loss(logits, labels, weight, self.label_smoothing)
        return Losses({"classify": loss}, self.reading.count_right(logits, labels))

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        rows = np.arange(len(self.tokens[split])) if examples is None else self.find_rows(split, examples)
        probabilities = self.probabilities(model, split, rows)
        words: Any = getattr(model, "words", None)
        if words is not None:
            probabilities = words.add_logits(probabilities, *self.read_texts(split, rows))
        if self.correction is not None:
            probabilities = correct_probabilities(probabilities, self.correction)
        return self.reading.score_outputs(model, split, self.labels[split][rows], probabilities)

    def value(self, loss: float, right: int, n: int) -> float | None:
        counts = isinstance(self.reading, LabelReading)
        return super().value(loss, right, n) if counts else None

    def complete(self, model: nn.Module) -> None:
        dev = self.evaluate(model, "dev") if "dev" in self.splits and self.reading.problem_type else None
        self.reading.finish_model(model, dev)

    def read_texts(self, split: str, rows: Ints) -> tuple[list[str], list[str] | None]:
        """Return the texts of some rows, in their order, and their second texts."""
        texts, pairs = list(self.task.splits[split].texts), self.task.splits[split].pairs
        second = None if pairs is None else list(pairs)
        return [texts[i] for i in rows], None if second is None else [second[i] for i in rows]

    def find_rows(self, split: str, examples: Ints) -> Ints:
        """Return the rows of examples; those of train are numbered among the rows that are trained on."""
        return self.rows[examples] if split == "train" else examples

    def probabilities(self, model: nn.Module, split: str, rows: Ints) -> Floats:
        """Return probabilities [n, n_classes] of some rows, in their order, or numbers [n]."""
        shape = (len(self.task.label_names),) if self.task.label_names else ()
        probabilities = np.empty((len(rows), *shape))
        with evaluation_mode(model) as device:
            for batch in iterate_by_length(self.lengths[split][rows], device, f"scoring {split}"):
                logits = self.logits(model, self.inputs(split, rows[batch]).to(device))
                probabilities[batch] = self.reading.activate(logits)
        return probabilities

    def pooled_states(self, model: Any, split: str, rows: Ints) -> Tensor:
        """Return what the body gives to the head [len(rows), d_model]; the cache keeps it."""
        return torch.from_numpy(np.array(compute_pooled(self, model, split, rows).states))

    def content(self) -> str:
        labels = [blake2b(array.tobytes(), digest_size=16).hexdigest() for array in self.labels.values()]
        return " ".join([*(tokens.folder.name for tokens in self.tokens.values()), *labels])

    def train_ids(self) -> Ints | None:
        tokens = self.tokens["train"]
        seen = np.zeros(self.tokenizer.vocab_size, bool)
        if len(self.rows) == len(tokens):
            seen = tokens.counts(self.tokenizer.vocab_size) > 0
        else:
            for part in np.array_split(self.rows, max(1, len(self.rows) // PART)):
                seen[pad_rows(tokens, part, self.pad_id)[0]] = True
        seen[self.pad_id] = True
        return np.flatnonzero(seen)


class ClassifySets(Classify):
    """Binary cross-entropy of each label, where a text may have any number of labels."""

    name = "labels"
    metric = "micro_f1"
    problem = "labels"
    kinds = ("labels",)
    caches_features = True


class Regress(Classify):
    """Squared error of a number, in standard deviations of train."""

    name = "number"
    metric = "pearson"
    outputs = ("predictions",)
    problem = "number"
    kinds = ("number",)
    caches_features = True


class ClassifyOrdered(Classify):
    """Cross-entropy of classes with an order: thresholds between them divide the values of one score."""

    name = "ordered"
    problem = "ordered"
    kinds = ("ordered",)
    caches_features = True
