"""Causal language modelling: every token is predicted from those before it in its document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data import Tokens
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
    evaluation_tokens,
    in_length_order,
)
from heedful.objectives.vocabulary import labelled, token_losses, vocabulary_loss
from heedful.text import Tokenizer


def next_token_losses(model: Any, inputs: Inputs) -> Tensor:
    """The summed loss of a decoder's rows: `ids`, `labels` and, of packed rows, `segments`, all [b, t].

    Padding stands on the right, where no earlier token sees it.
    """
    t = inputs.tensors
    states = model.body(t["ids"], t.get("mask"), segments=t.get("segments"))
    return vocabulary_loss(model.head, *labelled(states, t["labels"]))


class Causal(Objective):
    """The loss of each token given those before it (sums over tokens), on packed documents."""

    name = "causal"
    metric = "perplexity"
    lower_is_better = True

    def __init__(
        self,
        tokens: Mapping[str, Tokens],
        tokenizer: Tokenizer,
        *,
        block: int,
        together: bool = True,
        unsafe: bool = False,
    ) -> None:
        self.tokens, self.tokenizer, self.block, self.unsafe = dict(tokens), tokenizer, block, unsafe
        self.weights = {self.name: 1.0}
        self.pad_id = 0 if tokenizer.pad_id is None else tokenizer.pad_id
        self.packings: dict[str, Packing] = {
            name: pack(own.offsets, block, shift=1, together=together) for name, own in self.tokens.items()
        }
        for name, packing in self.packings.items():
            if not len(packing):
                raise UserError(f"{name} has no text of two tokens; there is nothing to predict")

    @property
    def splits(self) -> Sequence[str]:
        """The splits that there are."""
        return list(self.tokens)

    def train_lengths(self) -> Ints:
        """Tokens of each packed row."""
        return self.packings["train"].lengths

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        """Packed rows of training text."""
        return [self.inputs("train", part) for part in np.array_split(examples, parts) if len(part)]

    def inputs(self, split: str, rows: Ints) -> Inputs:
        """Rows of a split: tokens, their successors as labels, and whose they are where that matters."""
        packing, ids = self.packings[split], np.asarray(self.tokens[split].ids)
        places, pieces = packing.places(rows)
        real = pieces != PADDING
        whole = bool(real.all())
        read, wanted = ids[places].astype(np.int64), ids[places + 1].astype(np.int64)
        if not whole:
            read, wanted = np.where(real, read, self.pad_id), np.where(real, wanted, IGNORED)
        tensors = {"ids": torch.from_numpy(read), "labels": torch.from_numpy(wanted)}
        if packing.several(rows):
            tensors["segments"] = torch.from_numpy(pieces)
        elif self.unsafe and not whole:
            tensors["mask"] = torch.from_numpy(real)
        n = int(real.sum())
        return Inputs(tensors, {self.name: n}, len(rows), n)

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        """Cross-entropy of every next token."""
        return Losses({self.name: next_token_losses(model, inputs)})

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        """Perplexity of a split, or of some of its rows; with each text's loss."""
        packing = self.packings[split]
        rows = np.arange(len(packing)) if examples is None else examples
        sums = np.zeros(len(self.tokens[split]))
        counts = np.zeros(len(self.tokens[split]), np.int64)
        device = next(model.parameters()).device
        was_training = model.training
        model.eval()
        with torch.inference_mode():
            lengths = packing.lengths[rows]
            for batch in in_length_order(lengths, evaluation_tokens(device), f"scoring {split}"):
                inputs = self.inputs(split, rows[batch]).to(device)
                _, pieces = packing.places(rows[batch])
                documents = packing.documents[pieces[pieces != PADDING]]
                found = self.each(model, inputs).double().cpu().numpy()
                sums += np.bincount(documents, found, len(sums))
                counts += np.bincount(documents, minlength=len(sums))
        model.train(was_training)
        return language_score(sums, counts)

    def each(self, model: Any, inputs: Inputs) -> Tensor:
        """The loss of each predicted token, in the order of rows and places."""
        t = inputs.tensors
        states = model.body(t["ids"], t.get("mask"), segments=t.get("segments"))
        return token_losses(model.head, *labelled(states, t["labels"]))

    def content(self) -> str:
        """Texts as ids, by the name of their cached form."""
        return " ".join(tokens.folder.name for tokens in self.tokens.values())

    def value(self, loss: float, right: int, n: int) -> float:
        """Perplexity while training."""
        return float(np.exp(loss))

    def facts(self) -> Mapping[str, Any]:
        """Rows, and how full they are."""
        train = self.packings["train"]
        return {
            "train_rows": len(train),
            "train_texts": len(self.tokens["train"]),
            "filled": float(train.sizes.sum() / (len(train) * train.block)),
        }


def language_score(sums: Floats, counts: Ints) -> Evaluation:
    """Corpus perplexity exp(total loss / tokens), from each text's summed loss and tokens."""
    n = int(counts.sum())
    loss = float(sums.sum() / n) if n else float("nan")
    with np.errstate(over="ignore"):
        value = float(np.exp(loss))
    return Evaluation("perplexity", value, loss, n, text_losses=sums, text_tokens=counts)
