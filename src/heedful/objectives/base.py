"""What every objective is: examples into tensors, tensors into losses, a split into a score."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from heedful import checkpoints
from heedful.data import Tokens
from heedful.data.batches import Batches
from heedful.errors import UserError
from heedful.models.heads import with_article
from heedful.progress import progress

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ALL_KINDS = ("encoder", "decoder", "encoder_decoder")
EVALUATION_TOKENS = 1024
"""Tokens a batch on a CPU when no gradient is kept: 8192 leave the cache and take 1.5 times as long."""
DEVICE_TOKENS = 16384
"""The same elsewhere, where many small batches would leave the device idle."""


@dataclass(frozen=True)
class Inputs:
    """One micro-batch: tensors by name, and how many units each part of the loss is a mean over."""

    tensors: Mapping[str, Tensor]
    counts: Mapping[str, int]
    examples: int
    tokens: int
    """Real tokens, padding not counted."""
    divisors: Mapping[str, float] | None = None
    """What the sums are divided by, over the whole step, where that is not the counts (class weights)."""

    def to(self, device: torch.device) -> Inputs:
        """The same on another device."""
        if device.type == "cpu":
            return self
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in self.tensors.items()}
        return replace(self, tensors=moved)


@dataclass(frozen=True)
class Losses:
    """Sums over the micro-batch, one a part; the loop divides by the counts of the whole step."""

    sums: Mapping[str, Tensor]
    right: int | Tensor | None = None
    """Examples (or tokens) predicted right while training."""


@dataclass(frozen=True)
class Evaluation:
    """How a model does on a split."""

    metric: str
    value: float
    loss: float
    n: int
    labels: Ints | None = None
    predicted: Ints | None = None
    probabilities: Floats | None = field(default=None, repr=False)
    """[n, n_classes]"""
    text_losses: Floats | None = field(default=None, repr=False)
    """Of a language model: the summed loss of each text, 0 where nothing of it is predicted."""
    text_tokens: Ints | None = field(default=None, repr=False)
    """How many predicted tokens each text's loss is a sum over."""

    def arrays(self, kind: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """Return what a metric is computed from, one row per example: targets and outputs.

        `kind` is "predictions" (labels and predicted labels), "probabilities" (labels and probabilities) or
        "losses" (numbers of tokens and summed losses of texts). None if the model gives no such outputs.
        """
        pairs = {
            "predictions": (self.labels, self.predicted),
            "probabilities": (self.labels, self.probabilities),
            "losses": (self.text_tokens, self.text_losses),
        }
        targets, outputs = pairs[kind]
        return None if targets is None or outputs is None else (targets, outputs)


class Objective(ABC):
    """What a step minimises, and how it is scored."""

    name: ClassVar[str]
    metric: ClassVar[str]
    """The name of the metric that a model is selected by unless another one is asked for."""
    outputs: ClassVar[tuple[str, ...]] = ()
    """What `evaluate` gives other metrics to read: "predictions", "probabilities", "losses"."""
    problem: ClassVar[str]
    """The name of the problem that it solves (`heedful.problems`)."""
    commands: ClassVar[tuple[str, ...]]
    """The commands that can train it: "adapt", "pretrain"."""
    heads: ClassVar[Mapping[str, str]]
    """The head that it needs on each kind of model; it cannot train other kinds."""
    own_options: ClassVar[tuple[str, ...]] = ()
    """Options of the command that no other objective reads."""
    trains_body: ClassVar[bool] = False
    """Whether it needs a method that trains the model's body."""
    scored_as: ClassVar[str | None] = None
    """The name of the objective that scores the same model at less cost, if there is one."""
    caches_features: ClassVar[bool] = False
    """Whether a frozen body may run once before training, as in `ClassifyFeatures`. It is not inherited,
    because a subclass may have another loss."""
    hides_tokens: ClassVar[bool] = False
    """Whether it needs a tokenizer with a mask token."""
    packs: ClassVar[bool] = False
    """Whether several documents can share a row."""
    one_mean: ClassVar[bool] = False
    """The parts are one batch: the loss is the mean over the units of all of them together."""
    weights: Mapping[str, float]
    """The parts of the loss and their weights."""
    first_steps: int = 0
    """Steps before the first epoch that `prepare` fills by itself (pretraining before the task)."""
    part_tokens: int = 0
    """On a CPU a step is computed in parts of about so many tokens, which stay in its cache; 0: in one."""
    threads: int | None = None
    """So many threads are enough for a step; None: as many as there are."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.caches_features = "caches_features" in vars(cls) and cls.caches_features

    @classmethod
    def check_options(cls, options: Any) -> None:
        """Refuse options that the objective cannot use, before anything is loaded."""
        if "classify" in cls.heads.values():
            return
        head, pool = getattr(options, "head", "auto"), getattr(options, "pool", None)
        if head != "auto":
            raise UserError(f"--objective {cls.name} writes text and has no --head {head}")
        if pool is not None:
            raise UserError(f"--pool is for classifying; --objective {cls.name} writes text")

    @classmethod
    def writes_text(cls) -> bool:
        """Whether the model learns to write text, token after token."""
        return bool({"causal", "text2text"} & set(cls.heads.values()))

    @classmethod
    def find_head(cls, model: str | Path) -> str:
        """Return the head that the objective needs on a model."""
        if len(cls.heads) == len(ALL_KINDS) and len(set(cls.heads.values())) == 1:
            return cls.heads[ALL_KINDS[0]]  # without loading a Hub model to learn its kind
        kind = checkpoints.kind_of(model)
        if kind not in cls.heads:
            kinds = " or ".join(map(with_article, cls.heads))
            raise UserError(f"--objective {cls.name} trains {kinds}; {model} is {with_article(kind)}")
        return cls.heads[kind]

    @classmethod
    def build(cls, setup: Any) -> Objective:
        """Make the objective from a `TaskSetup` (of `adapt`) or a `TextSetup` (of `pretrain`)."""
        raise NotImplementedError(f"{cls.__name__} is part of other objectives and not built by its name")

    @property
    def main(self) -> Objective:
        """The objective that is scored: itself, or the main part of a combination."""
        return self

    @abstractmethod
    def train_lengths(self) -> Ints:
        """The length of each training example, in tokens."""

    @abstractmethod
    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        """Put a step's training examples into tensors, in parts; random choices depend on the step alone."""

    @abstractmethod
    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        """Run the model; sums of losses."""

    @abstractmethod
    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        """Score a split, or some of its examples, in evaluation mode and without gradients.

        The examples of train are numbered as in `train_lengths`: those that are trained on.
        """

    @property
    @abstractmethod
    def splits(self) -> Sequence[str]:
        """The splits that can be scored."""

    def weights_at(self, step: int) -> Mapping[str, float]:
        """The weights of the parts at a step."""
        return self.weights

    def value(self, loss: float, right: int, n: int) -> float | None:
        """The metric while training, from the mean loss and how many of n units were right."""
        return right / n if n else None

    def content(self) -> str:
        """Name the data that is learnt from, so that a resume on other data is refused."""
        return ""

    def train_ids(self) -> Ints | None:
        """The token ids that occur while training, where that is known and not all of them."""
        return None


def pad_rows(tokens: Tokens, rows: Ints, pad_id: int) -> tuple[Ints, npt.NDArray[np.bool_], Ints | None]:
    """Ids, mask and types [b, t] of some texts, padded on the right, without a loop over the texts.

    Types are None where there are none to tell apart.
    """
    starts = tokens.offsets[rows]
    lengths = tokens.offsets[rows + 1] - starts
    along = np.arange(lengths.max(initial=0))
    mask = along < lengths[:, None]  # [b, t]
    places = np.where(mask, starts[:, None] + along, 0)
    ids = np.where(mask, np.asarray(tokens.ids)[places], pad_id).astype(np.int64, copy=False)
    if tokens.all_types is None:
        return ids, mask, None
    return ids, mask, np.where(mask, np.asarray(tokens.all_types)[places], 0).astype(np.int64)


def upcast(logits: Tensor) -> Tensor:
    """Logits in a format that a loss can be summed in: half precision becomes float32."""
    return logits if logits.dtype == torch.float64 else logits.float()


def evaluation_batch_tokens(device: torch.device) -> int:
    """How many tokens are scored together."""
    return EVALUATION_TOKENS if device.type == "cpu" else DEVICE_TOKENS


def iterate_by_length(lengths: Ints, tokens: int = EVALUATION_TOKENS, label: str = "") -> Iterator[Ints]:
    """Batches for evaluation: longest first, to a token budget, with progress when it takes long."""
    batches = Batches(lengths, token_budget=tokens, order="sorted")
    if not label:
        yield from batches
        return
    with progress(label, len(lengths)) as shown:
        for batch in batches:
            yield batch
            shown.advance(len(batch))
