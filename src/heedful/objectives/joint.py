"""Classification together with masked language modeling on unlabeled text."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from torch import nn

from heedful import checkpoints
from heedful.data import tokenize
from heedful.errors import UserError
from heedful.models import LanguageModel
from heedful.objectives.base import Evaluation, Inputs, Ints, Losses, Objective
from heedful.objectives.classify import Classify, common_options
from heedful.objectives.masked import MaskedText
from heedful.objectives.setup import TaskSetup
from heedful.options.training import AdaptOptions


def merge_inputs(*parts: Inputs) -> Inputs:
    """Merge micro-batches into one; the number of examples is that of the first."""
    return Inputs(
        {name: tensor for part in parts for name, tensor in part.tensors.items()},
        {name: count for part in parts for name, count in part.counts.items()},
        parts[0].examples,
        sum(part.tokens for part in parts),
        {name: n for part in parts for name, n in (part.divisors or part.counts).items()},
    )


def add_masked_head(setup: TaskSetup) -> None:
    """Add a second head on the same body, with the checkpoint's weights if it has them."""
    other = checkpoints.load(setup.options.model, head="masked", **setup.model_changes)
    assert isinstance(other, LanguageModel)
    model = setup.model
    model.masked_head = other.head.to(next(model.parameters()).device)
    if other.config.tie_output:
        other.head.out.weight = model.body.embed.tokens.weight


class Joint(Objective):
    """The classification loss plus `mlm_weight` times the masked loss; each step has a batch of both.

    The first `first_steps` steps are masked language modeling alone, with weight 1; if `mlm_weight` is 0,
    training is sequential. The classifier sees unmasked text. Only the classification is scored.
    """

    name = "joint"
    metric = "accuracy"
    outputs = ("predictions", "probabilities")
    problem = "label"
    commands = ("adapt",)
    heads = Classify.heads
    own_options = (*Classify.own_options, "unlabeled", "mlm_first", "mlm_weight", "mlm_rate")
    trains_body = hides_tokens = fits_head = True
    scored_as = Classify.name

    def __init__(
        self, classify: Classify, masked: MaskedText, *, mlm_weight: float, first_steps: int = 0
    ) -> None:
        if mlm_weight < 0:
            raise UserError(f"--mlm-weight {mlm_weight}: must not be negative")
        self.classify, self.masked, self.first_steps = classify, masked, first_steps
        self.weights = {"classify": 1.0, "masked": mlm_weight}

    @classmethod
    def check_options(cls, options: AdaptOptions) -> None:
        if options.unlabeled is not None and not options.unlabeled.is_file():
            raise UserError(f"{options.unlabeled}: there is no such file")

    @classmethod
    def build(cls, setup: TaskSetup) -> Objective:
        o = setup.options
        classify = Classify(setup.task, setup.tokenizer, **common_options(setup))
        classify.reading.prepare(setup.model)
        source = setup.task.splits["train"] if o.unlabeled is None else o.unlabeled
        text = tokenize(source, setup.tokenizer, max_len=setup.max_len, long_texts=o.long_texts)
        assert o.batch_size is not None
        masked = MaskedText(text, setup.tokenizer, batch_size=o.batch_size, rate=o.mlm_rate, seed=o.seed)
        if o.mlm_weight or o.mlm_first:
            add_masked_head(setup)
        return cls(classify, masked, mlm_weight=o.mlm_weight, first_steps=o.mlm_first)

    @property
    def scored_objective(self) -> Objective:
        return self.classify

    @property
    def splits(self) -> Any:
        return self.classify.splits

    def value(self, loss: float, right: int, n: int) -> float | None:
        return self.classify.value(loss, right, n)

    def complete(self, model: nn.Module) -> None:
        self.classify.complete(model)

    def weights_at(self, step: int) -> Mapping[str, float]:
        return {"masked": 1.0} if step < self.first_steps else self.weights

    def content(self) -> str:
        return f"{self.classify.content()} {self.masked.tokens.folder.name}"

    def train_ids(self) -> Ints | None:
        only_classify = self.weights["masked"] == 0 and not self.first_steps
        return self.classify.train_ids() if only_classify else None  # masking may insert any token

    def train_lengths(self) -> Ints:
        return self.classify.train_lengths()

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        if step < self.first_steps:
            return self.masked.prepare(step, parts)
        labeled = self.classify.prepare(examples, step, parts)
        if self.weights["masked"] == 0:
            return labeled
        both = zip_longest(labeled, self.masked.prepare(step, parts))
        return [merge_inputs(*(part for part in pair if part is not None)) for pair in both]

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        sums: dict[str, Any] = {}
        right = None
        if "classify" in inputs.counts:
            plain = self.classify.losses(model, inputs)
            sums, right = dict(plain.sums), plain.right
        if "masked" in inputs.counts:
            sums |= self.masked.losses(model.body, model.masked_head, inputs).sums  # type: ignore[arg-type]
        return Losses(sums, right)

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        return self.classify.evaluate(model, split, examples)
