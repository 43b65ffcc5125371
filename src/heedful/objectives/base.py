"""The interface of all objectives: examples to tensors, tensors to losses, a split to an evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from heedful import checkpoints
from heedful.data.batches import Batches
from heedful.errors import UserError
from heedful.models.heads import with_article
from heedful.progress import progress

if TYPE_CHECKING:
    from heedful.data import Tokens

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
ALL_KINDS = ("encoder", "decoder", "encoder_decoder")
EVALUATION_TOKENS = 1024
"""Number of tokens per evaluation batch on a CPU: 8192 do not fit in the cache and take 1.5 times as long."""
DEVICE_TOKENS = 16384
"""The same on other devices, which many small batches would leave idle."""


@dataclass(frozen=True)
class Inputs:
    """One micro-batch: tensors by name, and the number of units that each part of the loss is a mean over."""

    tensors: Mapping[str, Tensor]
    counts: Mapping[str, int]
    examples: int
    tokens: int
    """Real tokens, padding not counted."""
    divisors: Mapping[str, float] | None = None
    """What the sums are divided by if it is not the counts, as with class weights."""

    def to(self, device: torch.device) -> Inputs:
        if device.type == "cpu":
            return self
        moved = {name: tensor.to(device, non_blocking=True) for name, tensor in self.tensors.items()}
        return replace(self, tensors=moved)


@dataclass(frozen=True)
class Losses:
    """Sums over the micro-batch, one per part of the loss; the loop divides by the counts of the step."""

    sums: Mapping[str, Tensor]
    right: int | Tensor | None = None
    """The number of examples (or tokens) that were predicted right during training."""


@dataclass(frozen=True)
class Evaluation:
    """A model's outputs on a split, and its score."""

    metric: str
    value: float
    loss: float
    n: int
    labels: npt.NDArray[Any] | None = None
    """[n] the numbers of the labels, or numbers; with several labels per text [n, labels], each 0 or 1."""
    predicted: npt.NDArray[Any] | None = None
    probabilities: Floats | None = field(default=None, repr=False)
    """[n, n_classes]"""
    text_losses: Floats | None = field(default=None, repr=False)
    """For a language model: the summed loss of each text, 0 if none of its tokens are predicted."""
    text_tokens: Ints | None = field(default=None, repr=False)
    """The number of predicted tokens that each text's loss is a sum over."""
    threshold: float | None = None
    """The probability from which the second of two labels is predicted, if it is not 0.5."""
    value_at_half: float | None = None
    """With such a threshold: the value at 0.5."""

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
    """What a step minimizes, and how the model is evaluated."""

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
    """Options of the command that only this objective reads."""
    trains_body: ClassVar[bool] = False
    """Whether it needs a method that trains the model's body."""
    scored_as: ClassVar[str | None] = None
    """The name of the objective that scores the same model at less cost, if there is one."""
    fits_head: ClassVar[bool] = False
    """A linear head can be fitted to the labels before the first step."""
    refits_head: ClassVar[bool] = False
    """Whether each evaluation fits the head to the present states, so that none is left from before."""
    caches_features: ClassVar[bool] = False
    """Whether a frozen body may run once before training, as in `ClassifyFeatures`. It is not inherited,
    because a subclass may have another loss."""
    hides_tokens: ClassVar[bool] = False
    """Whether it needs a tokenizer with a mask token."""
    packs: ClassVar[bool] = False
    """Whether several documents can share a row."""
    one_mean: ClassVar[bool] = False
    """Whether the loss is the mean over the units of all parts together."""
    weights: Mapping[str, float]
    """The parts of the loss and their weights."""
    first_steps: int = 0
    """The number of steps before the first epoch, whose batches `prepare` chooses (pretraining)."""
    part_tokens: int = 0
    """On a CPU, a step is computed in parts of about this many tokens, to fit in its cache; 0 for one."""
    threads: int | None = None
    """The number of threads that a step can use; None for all."""

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
        if pool not in (None, "family"):
            raise UserError(f"--pool is for classifying; --objective {cls.name} writes text")

    @classmethod
    def writes_text(cls) -> bool:
        """Whether the model learns to write text, token after token."""
        return bool({"causal", "text2text"} & set(cls.heads.values()))

    @classmethod
    def find_head(cls, model: str | Path) -> str:
        if len(cls.heads) == len(ALL_KINDS) and len(set(cls.heads.values())) == 1:
            return cls.heads[ALL_KINDS[0]]  # without loading a Hub model to learn its kind
        kind = checkpoints.kind_of(model)
        if kind not in cls.heads:
            kinds = " or ".join(map(with_article, cls.heads))
            raise UserError(f"--objective {cls.name} trains {kinds}; {model} is {with_article(kind)}")
        return cls.heads[kind]

    @classmethod
    def build(cls, setup: Any) -> Objective:
        """Build the objective from a `TaskSetup` (of `adapt`) or a `TextSetup` (of `pretrain`)."""
        raise NotImplementedError(f"{cls.__name__} is part of other objectives and not built by its name")

    @property
    def label_names(self) -> Sequence[str]:
        """The names of the labels in the order of their numbers; none if the answers are no labels."""
        task = getattr(self, "task", None)
        return () if task is None else task.label_names

    @property
    def scored_objective(self) -> Objective:
        """The objective that is scored: itself, or the main part of a combination."""
        return self

    @abstractmethod
    def train_lengths(self) -> Ints:
        """Return the length of each training example, in tokens."""

    @abstractmethod
    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        """Return a step's training examples as tensors, in parts; random choices depend on the step alone."""

    @abstractmethod
    def losses(self, model: nn.Module, inputs: Inputs) -> Losses: ...

    @abstractmethod
    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        """Score a split, or some of its examples, in evaluation mode and without gradients.

        The examples of train are numbered as in `train_lengths`: those that are trained on.
        """

    def complete(self, model: nn.Module) -> None:  # noqa: B027
        """Set what no step trains, such as a head that is fitted. Called before the model is saved."""

    @property
    @abstractmethod
    def splits(self) -> Sequence[str]:
        """The splits that can be scored."""

    def weights_at(self, step: int) -> Mapping[str, float]:
        return self.weights

    def value(self, loss: float, right: int, n: int) -> float | None:
        """Return the metric during training, from the mean loss and how many of n units were right."""
        return right / n if n else None

    def content(self) -> str:
        """Return a fingerprint of the training data, so that a resume with other data is refused."""
        return ""

    def train_ids(self) -> Ints | None:
        """Return the token ids that occur in training, or None if all may occur."""
        return None


def pad_rows(tokens: Tokens, rows: Ints, pad_id: int) -> tuple[Ints, npt.NDArray[np.bool_], Ints | None]:
    """Return ids, mask and types [b, t] of some texts, padded on the right.

    Types are None if the texts have none.
    """
    starts = tokens.offsets[rows]
    lengths = tokens.offsets[rows + 1] - starts
    along = np.arange(lengths.max(initial=0))
    mask = along < lengths[:, None]  # [b, t]
    positions = np.where(mask, starts[:, None] + along, 0)
    ids = np.where(mask, np.asarray(tokens.ids)[positions], pad_id).astype(np.int64, copy=False)
    if tokens.all_types is None:
        return ids, mask, None
    return ids, mask, np.where(mask, np.asarray(tokens.all_types)[positions], 0).astype(np.int64)


def upcast(logits: Tensor) -> Tensor:
    """Return logits in a format that a loss can be summed in: half precision becomes float32."""
    return logits if logits.dtype == torch.float64 else logits.float()


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[torch.device]:
    """Switch dropout and gradients off inside the block, and yield the model's device."""
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield next(model.parameters()).device
    finally:
        model.train(was_training)


def iterate_by_length(lengths: Ints, device: torch.device | None = None, label: str = "") -> Iterator[Ints]:
    """Yield batches for evaluation, longest first; with a label, a progress bar is shown if it takes long."""
    tokens = EVALUATION_TOKENS if device is None or device.type == "cpu" else DEVICE_TOKENS
    batches = Batches(lengths, token_budget=tokens, order="sorted")
    if not label:
        yield from batches
        return
    with progress(label, len(lengths)) as bar:
        for batch in batches:
            yield batch
            bar.advance(len(batch))
