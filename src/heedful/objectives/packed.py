"""What language modeling objectives on plain text share: packed rows, and a loss per text."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

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
    evaluation_batch_tokens,
    iterate_by_length,
)
from heedful.objectives.setup import TextSetup
from heedful.objectives.vocabulary import select_labeled, token_losses, vocabulary_loss
from heedful.text import Tokenizer


@dataclass(frozen=True)
class TokenLists:
    """Texts as ids in memory; `heedful.data.Tokens` are the same on disk."""

    ids: npt.NDArray[np.integer]
    offsets: Ints

    @classmethod
    def of(cls, texts: Sequence[Sequence[int]]) -> TokenLists:
        """Put lists of ids one after the other."""
        ends = np.cumsum([0, *map(len, texts)])
        return cls(np.array([i for text in texts for i in text], np.int64), ends)

    def __len__(self) -> int:
        return len(self.offsets) - 1


class PackedText(Objective):
    """Losses of tokens (sums), on documents side by side in rows; each row a training example.

    `unsafe` says that the model's attention may see the padding after a text.
    """

    metric = "perplexity"
    outputs = ("losses",)
    problem = "next_token"
    commands = ("pretrain",)
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
        self.texts, self.tokenizer, self.block, self.unsafe = dict(texts), tokenizer, block, unsafe
        self.seed = seed
        self.weights = {self.name: 1.0}
        self.pad_id = 0 if tokenizer.pad_id is None else tokenizer.pad_id
        self.packings: dict[str, Packing] = {
            name: pack(own.offsets, block, shift=self.shift, together=together)
            for name, own in self.texts.items()
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
        tokens = setup.texts.tokens(setup.tokenizer)
        return cls(
            tokens, setup.tokenizer, block=setup.block, together=o.pack, seed=o.seed, **cls.more(setup)
        )

    @classmethod
    def more(cls, setup: TextSetup) -> dict[str, Any]:
        """Return the further arguments of a subclass."""
        return {}

    @property
    def splits(self) -> Sequence[str]:
        return list(self.texts)

    def train_lengths(self) -> Ints:
        return self.packings["train"].lengths

    @abstractmethod
    def labels(self, split: str, ids: Ints, places: Ints, rows: Ints, step: int | None) -> tuple[Ints, Ints]:
        """What is read and what is predicted [b, t], of rows whose tokens stand at `places`.

        Random choices depend on the step; without one, on the split and the row alone.
        """

    @abstractmethod
    def states(self, model: Any, inputs: Inputs) -> Tensor:
        """The last states [b, t, d]."""

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        arrays = self.arrays("train", examples, step)
        return [
            self.inputs({name: array[part] for name, array in arrays.items()})
            for part in np.array_split(np.arange(len(examples)), parts)
            if len(part)
        ]

    def arrays(self, split: str, rows: Ints, step: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Rows of a split: ids, labels, and the piece that each place belongs to."""
        packing = self.packings[split]
        places, pieces = packing.locate_tokens(rows)
        ids = np.asarray(self.texts[split].ids)[places].astype(np.int64)
        real = pieces != PADDING
        padded = not bool(real.all())
        if padded:
            ids = np.where(real, ids, self.pad_id)
        ids, labels = self.labels(split, ids, places, rows, step)
        if padded:
            labels = np.where(real, labels, IGNORED)
        found = {"ids": ids, "labels": labels, "pieces": pieces}
        if packing.has_several_documents(rows):
            return found | {"segments": pieces}
        if padded and self.sees_padding:
            return found | {"mask": real}
        return found

    @property
    def sees_padding(self) -> bool:
        """Whether padding after a text has to be hidden from it."""
        return True

    def inputs(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Inputs:
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items() if name != "pieces"}
        counted = int((arrays["labels"] != IGNORED).sum())
        real = int((arrays["pieces"] != PADDING).sum())
        return Inputs(tensors, {self.name: counted}, len(arrays["ids"]), real)

    def losses(self, model: Any, inputs: Inputs) -> Losses:
        """Cross-entropy of what is predicted; logits are made nowhere else."""
        states = self.states(model, inputs)
        found = vocabulary_loss(model.head, *select_labeled(states, inputs.tensors["labels"]))
        return Losses({self.name: found})

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        """Perplexity of a split, or of some of its rows, with each text's loss."""
        packing = self.packings[split]
        rows = np.arange(len(packing)) if examples is None else examples
        sums, counts = np.zeros(len(self.texts[split])), np.zeros(len(self.texts[split]), np.int64)
        device = next(model.parameters()).device
        was_training = model.training
        model.eval()
        with torch.inference_mode():
            lengths = packing.lengths[rows]
            for batch in iterate_by_length(lengths, evaluation_batch_tokens(device), f"scoring {split}"):
                arrays = self.arrays(split, rows[batch])
                inputs = self.inputs(arrays).to(device)
                states = self.states(model, inputs)
                each = token_losses(model.head, *select_labeled(states, inputs.tensors["labels"]))  # type: ignore[arg-type]
                documents = packing.documents[arrays["pieces"][arrays["labels"] != IGNORED]]
                sums += np.bincount(documents, each.cpu().double().numpy(), len(sums))
                counts += np.bincount(documents, minlength=len(sums))
        model.train(was_training)
        return score_texts(sums, counts)

    def value(self, loss: float, right: int, n: int) -> float:
        return perplexity(loss)

    def content(self) -> str:
        return " ".join(tokens.folder.name for tokens in self.texts.values())


def perplexity(loss: float) -> float:
    """exp(loss), infinite where that is too large for a number."""
    with np.errstate(over="ignore"):
        return float(np.exp(loss))


def score_texts(sums: Floats, counts: Ints) -> Evaluation:
    """Corpus perplexity exp(total loss / tokens), from each text's summed loss and tokens."""
    n = int(counts.sum())
    loss = float(sums.sum() / n) if n else float("nan")
    return Evaluation("perplexity", perplexity(loss), loss, n, text_losses=sums, text_tokens=counts)
