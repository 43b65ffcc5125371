"""Classification as text to text: each class has a label word that an encoder-decoder is to write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from heedful.data.batches import IGNORED
from heedful.errors import UserError, shorten, unknown
from heedful.models import EncoderDecoder
from heedful.objectives.base import Inputs, Ints, Losses, Objective
from heedful.objectives.classify import Classify, common_options
from heedful.objectives.setup import TaskSetup
from heedful.objectives.vocabulary import score_tokens
from heedful.text import Tokenizer

if TYPE_CHECKING:
    from heedful.data import Task


def parse_words(texts: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """Read label words written as `label=word`; a label may contain `=` itself."""
    words: dict[str, str] = {}
    for text in texts:
        matches = [name for name in names if text.startswith(f"{name}=")]
        if not matches:
            label, equals, _ = text.partition("=")
            if equals:
                raise unknown("label in --label-words", label, names)
            raise UserError(f'--label-words "{shorten(text)}": is not label=word')
        label = max(matches, key=len)
        words[label] = text[len(label) + 1 :]
    return words


class LabelWords:
    """The pieces of each class's word, its end included, and their scores by a model.

    The word of a class that `words` does not contain is the name of the class.
    """

    def __init__(
        self, names: Sequence[str], tokenizer: Tokenizer, words: Mapping[str, str] | None = None
    ) -> None:
        if tokenizer.eos_id is None:
            raise UserError("this tokenizer has no end-of-text token; label words need one")
        self.words = [(words or {}).get(name, name) for name in names]
        pieces = [(*e.ids, tokenizer.eos_id) for e in tokenizer.encode_batch(self.words, special=False)]
        owner: dict[tuple[int, ...], int] = {}
        for i, ids in enumerate(pieces):
            word = shorten(self.words[i])
            if len(ids) == 1:
                raise UserError(f'the label word "{word}" is empty to this tokenizer; choose another')
            if ids in owner:
                first = shorten(self.words[owner[ids]])
                unknown = " (this tokenizer does not know them)" if tokenizer.unk_id in ids else ""
                raise UserError(
                    f'the label words "{first}" and "{word}" have the same pieces{unknown}; choose others, '
                    f"as --label-words {shorten(names[owner[ids]])}=this {shorten(names[i])}=that"
                )
            owner[ids] = i
        rows = [torch.tensor(ids) for ids in pieces]
        self.targets = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=IGNORED)  # [c, l]

    def scores(self, model: Any, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return the summed log-probability [b, c] of each class's pieces, teacher-forced.

        The encoder runs once, and the decoder runs once over the words of all classes, packed side by side.
        Each word sees itself and the text, whose keys and values are computed once. Grade: same mathematics.
        """
        body: EncoderDecoder = model.body
        targets = self.targets.to(ids.device)
        real = targets != IGNORED  # [c, l]
        packed = body.shift(targets)[real].expand(len(ids), -1)  # [b, n]
        classes = torch.arange(len(targets), device=ids.device)[:, None].expand_as(targets)[real]  # [n]
        segments = classes.expand_as(packed)
        positions = body.embed.find_positions(packed, segments, 0, body.skip)
        states = body.decoder(
            body.embed(packed, positions),
            segments=segments,
            positions=positions,
            context=body.encode(ids, mask),
            context_keys=body.real_keys(mask),
        )  # [b, n, d]
        losses, _ = score_tokens(model.head, states.flatten(0, 1), targets[real].repeat(len(ids)))
        sums = losses.new_zeros(len(ids), len(targets))
        return sums.index_add(1, classes, -losses.view(len(ids), -1))


class Text2Text(Classify):
    """Cross-entropy of the tokens of the label's word (sums over tokens), as in T5 (Raffel et al. 2020).

    The prediction is the class whose word has the largest summed log-probability; nothing is generated.
    Probabilities are the softmax of these sums over the classes. During training, an example counts as right,
    with the weight of its pieces, if each piece of its word is the most probable token of the vocabulary.
    """

    name = "text2text"
    heads = {"encoder_decoder": "text2text"}  # noqa: RUF012
    own_options = (*Classify.own_options, "label_words")

    def __init__(
        self, task: Task, tokenizer: Tokenizer, *, words: Mapping[str, str] | None = None, **options: Any
    ) -> None:
        super().__init__(task, tokenizer, **options)
        self.words = LabelWords(task.label_names, tokenizer, words)
        self.weights = {self.name: 1.0}

    @classmethod
    def build(cls, setup: TaskSetup) -> Objective:
        if setup.task.kind not in cls.kinds:
            raise UserError(f"--objective {cls.name} writes one label per text; leave it out for other kinds")
        words = parse_words(setup.options.label_words, setup.task.label_names)
        return cls(setup.task, setup.tokenizer, words=words, **common_options(setup))

    def inputs(self, split: str, rows: Ints) -> Inputs:
        plain = super().inputs(split, rows)
        labels = plain.tensors["labels"]
        targets = self.words.targets[labels]  # [b, l]
        pieces = (targets != IGNORED).sum(1)  # [b]
        tensors = {**plain.tensors, "targets": targets[:, : int(pieces.max())]}
        divisors = None
        if self.class_weights is not None:
            divisors = {self.name: float((self.class_weights[labels].double() * pieces).sum())}
        return Inputs(tensors, {self.name: int(pieces.sum())}, plain.examples, plain.tokens, divisors)

    def train_ids(self) -> None:
        """Return None: the output layer may be the token table, and then every row of it changes."""

    def logits(self, model: nn.Module, inputs: Inputs) -> Tensor:
        return self.words.scores(model, inputs.tensors["ids"], inputs.tensors["mask"])

    def losses(self, model: Any, inputs: Inputs) -> Losses:
        t, body = inputs.tensors, model.body
        real = t["targets"] != IGNORED  # [b, l]
        states = body(t["ids"], t["mask"], decoder_input_ids=body.shift(t["targets"]))[real]  # [n, d]
        losses, right = score_tokens(model.head, states, t["targets"][real], self.label_smoothing)
        if self.class_weights is not None:
            weights = self.class_weights.to(losses.device)[t["labels"]]
            losses = losses * weights[:, None].expand_as(real)[real]
        wrong = torch.zeros_like(real).masked_scatter(real, ~right)
        whole = real & ~wrong.any(1, keepdim=True)
        return Losses({self.name: losses.sum()}, int(whole.sum()))
