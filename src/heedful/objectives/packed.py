"""What language modeling objectives on plain text share: packed rows, and a loss per text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.data.batches import IGNORED
from heedful.data.packing import PADDING, Packing, pack
from heedful.errors import UserError
from heedful.objectives.base import (
    Evaluation,
    Floats,
    Inputs,
    Ints,
    Losses,
    Objective,
    evaluation_mode,
    iterate_by_length,
)
from heedful.objectives.setup import TextSetup
from heedful.objectives.vocabulary import select_labeled, token_losses, vocabulary_loss
from heedful.text import Tokenizer


@dataclass(frozen=True)
class TokenLists:
    """Texts as ids in memory, one after the other; `heedful.data.Tokens` are the same on disk."""

    ids: npt.NDArray[np.integer]
    offsets: Ints

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> TokenLists:
        ends = np.cumsum([0, *map(len, texts)])
        return cls(np.array([i for text in texts for i in text], np.int64), ends)

    def __len__(self) -> int:
        return len(self.offsets) - 1


class TextObjective(Objective):
    """Cross-entropy of tokens of plain text, summed over tokens; scored by perplexity.

    The tensors of its inputs contain "labels" [b, t], which are `IGNORED` where nothing is predicted.
    """

    metric = "perplexity"
    outputs = ("losses",)
    problem = "next_token"
    commands = ("pretrain",)

    def __init__(self, texts: Mapping[str, Any], tokenizer: Tokenizer, seed: int) -> None:
        self.texts, self.tokenizer, self.seed = dict(texts), tokenizer, seed
        self.weights = {self.name: 1.0}
        self.pad_id = 0 if tokenizer.pad_id is None else tokenizer.pad_id

    @property
    def splits(self) -> Sequence[str]:
        return list(self.texts)

    @abstractmethod
    def states(self, model: Any, inputs: Inputs) -> Tensor:
        """Return the last states of the model [b, t, d]."""

    @abstractmethod
    def evaluation_batches(
        self, split: str, examples: Ints | None, device: torch.device
    ) -> Iterator[tuple[Inputs, Ints]]:
        """Yield inputs of some examples, or of all, and the number of the text that each label is from."""

    def losses(self, model: Any, inputs: Inputs) -> Losses:
        """Return the loss of the labels; logits are computed only where there is one."""
        states = self.states(model, inputs)
        return Losses(
            {self.name: vocabulary_loss(model.head, *select_labeled(states, inputs.tensors["labels"]))}
        )

    def evaluate(self, model: Any, split: str, examples: Ints | None = None) -> Evaluation:
        """Return the perplexity of a split, or of some of its examples, with the loss of each text."""
        sums, counts = np.zeros(len(self.texts[split])), np.zeros(len(self.texts[split]), np.int64)
        with evaluation_mode(model) as device:
            for batch, texts in self.evaluation_batches(split, examples, device):
                inputs = batch.to(device)
                labeled = select_labeled(self.states(model, inputs), inputs.tensors["labels"])
                losses = token_losses(model.head, *labeled).cpu().double().numpy()
                sums += np.bincount(texts, losses, len(sums))
                counts += np.bincount(texts, minlength=len(sums))
        return score_texts(sums, counts)

    def value(self, loss: float, right: int, n: int) -> float:
        return perplexity(loss)

    def content(self) -> str:
        return " ".join(tokens.folder.name for tokens in self.texts.values())


class PackedText(TextObjective):
    """Losses of tokens of documents that are packed side by side into rows. A row is a training example.

    `unsafe` says that the model's attention may see the padding after a text.
    """

    packs = True
    part_tokens = 2048
    shift = 0
    """How many positions ahead the predicted token is."""

    def __init__(
        self,
        texts: Mapping[str, Any],
        tokenizer: Tokenizer,
        *,
        block: int,
        together: bool = True,
        unsafe: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__(texts, tokenizer, seed)
        self.block, self.unsafe = block, unsafe
        self.packings: dict[str, Packing] = {
            name: pack(tokens.offsets, block, shift=self.shift, together=together)
            for name, tokens in self.texts.items()
        }
        for name, packing in self.packings.items():
            if not len(packing):
                raise UserError(f"{name} has no text with a token to predict")

    @classmethod
    def build(cls, setup: TextSetup) -> Objective:
        o, mechanism = setup.options, setup.mechanism
        if o.pack and not mechanism.segments:
            raise UserError(
                f"{mechanism.name} attention cannot keep packed documents apart; --no-pack gives each a row"
            )
        tokens, further = setup.texts.tokens(setup.tokenizer), cls.further_arguments(setup)
        return cls(tokens, setup.tokenizer, block=setup.block, together=o.pack, seed=o.seed, **further)

    @classmethod
    def further_arguments(cls, setup: TextSetup) -> dict[str, Any]:
        """Return the arguments of a subclass that this class does not have."""
        return {}

    def train_lengths(self) -> Ints:
        return self.packings["train"].lengths

    @abstractmethod
    def make_labels(
        self, split: str, ids: Ints, positions: Ints, rows: Ints, step: int | None
    ) -> tuple[Ints, Ints]:
        """Return the input ids and the labels [b, t] of rows.

        `positions` are the positions of the tokens in the split. Random choices depend on the step or, if it
        is None, on the split and the row.
        """

    def states(self, model: Any, inputs: Inputs) -> Tensor:
        t = inputs.tensors
        states: Tensor = model.body(t["ids"], t.get("mask"), segments=t.get("segments"))
        return states

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        arrays = self.arrays("train", examples, step)
        return [
            self.inputs({name: array[part] for name, array in arrays.items()})
            for part in np.array_split(np.arange(len(examples)), parts)
            if len(part)
        ]

    def arrays(self, split: str, rows: Ints, step: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return ids, labels and the piece that each position of some rows belongs to, all [b, t].

        "segments" are there if documents share a row, else "mask" if there is padding that must be hidden.
        """
        packing = self.packings[split]
        positions, pieces = packing.locate_tokens(rows)
        ids = np.asarray(self.texts[split].ids)[positions].astype(np.int64)
        real = pieces != PADDING
        padded = not bool(real.all())
        if padded:
            ids = np.where(real, ids, self.pad_id)
        ids, labels = self.make_labels(split, ids, positions, rows, step)
        if padded:
            labels = np.where(real, labels, IGNORED)
        arrays = {"ids": ids, "labels": labels, "pieces": pieces}
        if packing.has_several_documents(rows):
            return arrays | {"segments": pieces}
        if padded and self.sees_padding:
            return arrays | {"mask": real}
        return arrays

    @property
    def sees_padding(self) -> bool:
        """Whether padding after a text has to be hidden from it."""
        return True

    def inputs(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Inputs:
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if name != "pieces"}
        counted = int((arrays["labels"] != IGNORED).sum())
        real = int((arrays["pieces"] != PADDING).sum())
        return Inputs(tensors, {self.name: counted}, len(arrays["ids"]), real)

    def evaluation_batches(
        self, split: str, examples: Ints | None, device: torch.device
    ) -> Iterator[tuple[Inputs, Ints]]:
        packing = self.packings[split]
        rows = np.arange(len(packing)) if examples is None else examples
        for batch in iterate_by_length(packing.lengths[rows], device, f"scoring {split}"):
            arrays = self.arrays(split, rows[batch])
            yield self.inputs(arrays), packing.documents[arrays["pieces"][arrays["labels"] != IGNORED]]


def perplexity(loss: float) -> float:
    """Return exp(loss), or infinity if that is too large for a float."""
    with np.errstate(over="ignore"):
        return float(np.exp(loss))


def score_texts(sums: Floats, counts: Ints) -> Evaluation:
    """Return the perplexity exp(total loss / tokens) of texts with these summed losses and tokens."""
    n = int(counts.sum())
    loss = float(sums.sum() / n) if n else float("nan")
    return Evaluation("perplexity", perplexity(loss), loss, n, text_losses=sums, text_tokens=counts)
