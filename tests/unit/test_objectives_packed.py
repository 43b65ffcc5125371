"""Causal and masked language modeling on packed documents."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from heedful import models
from heedful.data import Tokens, tokenize
from heedful.data.batches import IGNORED
from heedful.errors import UserError
from heedful.objectives import Causal, Masked
from heedful.objectives import vocabulary as vocabulary_module
from heedful.objectives.packed import TokenLists
from heedful.objectives.vocabulary import token_losses, vocabulary_loss
from heedful.options.training import PretrainOptions
from heedful.runs.directory import Run
from heedful.text import Tokenizer, train
from heedful.training.loop import Loop

WORDS = list("abcdefghijklmnop")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tokens, Tokenizer]:
    rng = random.Random(0)
    path = tmp_path_factory.mktemp("text") / "text.txt"
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 14))) for _ in range(40)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    tokenizer = train(lines, kind="bpe", vocab_size=380)
    return tokenize(path, tokenizer), tokenizer


def make(tokenizer: Tokenizer, kind: str = "decoder", **changes: Any) -> Any:
    torch.manual_seed(0)
    preset = "char-gpt" if kind == "decoder" else "bert-tiny"
    sizes = {"d_model": 16, "n_layers": 2, "n_heads": 2, "d_head": 8, "d_ff": 32, "max_len": 64, "n_types": 0}
    config = models.PRESETS[preset].config.replace(
        vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id, pooler=False, **sizes | changes
    )
    model = models.build(config.with_dropout(0.0), "causal" if kind == "decoder" else "masked").double()
    for parameter in model.parameters():  # far from zero, so that what should not be seen would show
        torch.nn.init.normal_(parameter, std=0.3)
    return model.eval()


@pytest.mark.parametrize(("attention", "position"), [
    ("softmax", "learned"), ("softmax", "sinusoidal"), ("softmax", "rotary"), ("softmax", "relative"),
    ("performer", "learned"), ("performer", "rotary"), ("additive", "learned"),
])  # fmt: skip
def test_a_packed_document_has_the_loss_it_has_alone(corpus: Any, position: str, attention: str) -> None:
    tokens, tokenizer = corpus
    model = make(tokenizer, position=position, attention=attention)
    packed = Causal({"dev": tokens}, tokenizer, block=20)
    alone = Causal({"dev": tokens}, tokenizer, block=20, together=False)
    assert len(packed.packings["dev"]) < len(alone.packings["dev"]) * 0.8
    ours, theirs = packed.evaluate(model, "dev"), alone.evaluate(model, "dev")
    assert ours.text_losses is not None
    assert theirs.text_losses is not None
    short = tokens.lengths <= 21  # of longer ones the first has further pieces
    assert short.sum() > 20
    assert np.abs(ours.text_losses - theirs.text_losses)[short].max() < 1e-9


def test_the_loss_is_torch_s_own(corpus: Any) -> None:
    tokens, tokenizer = corpus
    model = make(tokenizer)
    objective = Causal({"train": tokens}, tokenizer, block=64)
    found = objective.evaluate(model, "train")
    total = 0.0
    with torch.inference_mode():
        for i in range(len(tokens)):
            ids = torch.from_numpy(tokens[i].astype(np.int64))[None]
            total += F.cross_entropy(model(ids)[0, :-1], ids[0, 1:], reduction="sum").item()
    n = int((tokens.lengths - 1).sum())
    assert found.n == n
    assert found.loss == pytest.approx(total / n, rel=1e-9)
    assert found.value == pytest.approx(np.exp(total / n), rel=1e-9)
    sums = [objective.losses(model, part).sums["causal"].item()
            for part in objective.prepare(np.arange(len(objective.train_lengths())), 0, 3)]  # fmt: skip
    assert sum(sums) == pytest.approx(total, rel=1e-9)


def test_of_a_divided_document_every_token_counts_once(corpus: Any) -> None:
    tokens, tokenizer = corpus
    found = Causal({"dev": tokens}, tokenizer, block=5).evaluate(make(tokenizer), "dev")
    assert found.text_tokens is not None
    assert found.text_tokens.tolist() == (tokens.lengths - 1).tolist()


def test_some_rows_can_be_scored_alone(corpus: Any) -> None:
    tokens, tokenizer = corpus
    objective, model = Causal({"train": tokens}, tokenizer, block=16), make(tokenizer)
    whole = objective.evaluate(model, "train")
    half = np.arange(len(objective.train_lengths())) % 2 == 0
    parts = [objective.evaluate(model, "train", np.flatnonzero(own)) for own in (half, ~half)]
    assert sum(part.n for part in parts) == whole.n
    assert sum(part.loss * part.n for part in parts) == pytest.approx(whole.loss * whole.n, rel=1e-9)


@pytest.mark.parametrize("objective", [Causal, Masked])
def test_parts_of_a_step_have_the_gradient_of_the_whole(corpus: Any, objective: Any, tmp_path: Path) -> None:
    tokens, tokenizer = corpus
    found = []
    for size in (0, 40):
        made = objective({"train": tokens}, tokenizer, block=20)
        made.part_tokens = size
        model = make(tokenizer, "decoder" if objective is Causal else "encoder")
        options = PretrainOptions(batch_size=12, clip=0.0)
        loop = Loop(model, dict(model.named_parameters()), made, options, 1e-3, Run(tmp_path))
        assert loop.count_parts(loop.choose_examples(0)) == (1 if size == 0 else 6)
        grads: dict[str, torch.Tensor] = {}
        loop.optimizer.step = lambda own=loop, to=grads: to.update(  # type: ignore[method-assign, assignment, misc]
            {name: p.grad.clone() for name, p in own.parameters.items() if p.grad is not None}
        )
        loop.step(0)
        found.append(grads)
    assert found[0].keys() == found[1].keys()
    for name, gradient in found[0].items():
        assert (gradient - found[1][name]).abs().max() < 1e-10, name


def test_masked_text_is_hidden_anew_at_each_step_and_always_the_same_for_scoring(corpus: Any) -> None:
    tokens, tokenizer = corpus
    objective = Masked({"train": tokens, "dev": tokens}, tokenizer, block=24)
    rows = np.arange(3)
    first, again, other = (objective.arrays("train", rows, step) for step in (1, 1, 2))
    assert (first["labels"] == again["labels"]).all()
    assert (first["labels"] != other["labels"]).any()
    whole = objective.arrays("dev", np.arange(len(objective.packings["dev"])))
    some = objective.arrays("dev", np.array([4, 1]))
    width = some["labels"].shape[1]
    assert (some["labels"] == whole["labels"][[4, 1]][:, :width]).all()
    model = make(tokenizer, "encoder")
    assert objective.evaluate(model, "dev").loss == objective.evaluate(model, "dev").loss


def test_special_tokens_and_padding_are_never_predicted_by_a_masked_model(corpus: Any) -> None:
    tokens, tokenizer = corpus
    objective = Masked({"train": tokens}, tokenizer, block=24, rate=0.9)
    arrays = objective.arrays("train", np.arange(len(objective.train_lengths())), 0)
    predicted = arrays["labels"][arrays["labels"] != IGNORED]
    assert len(predicted) > 100
    assert not set(predicted.tolist()) & tokenizer.special_ids


def test_a_masked_document_does_not_see_its_neighbours(corpus: Any) -> None:
    tokens, tokenizer = corpus
    model = make(tokenizer, "encoder")
    objective = Masked({"train": tokens}, tokenizer, block=24)
    arrays = objective.arrays("train", np.arange(4), 0)
    inputs = objective.inputs(arrays)
    with torch.inference_mode():
        states = objective.states(model, inputs)
        for row in range(4):
            for piece in set(arrays["pieces"][row].tolist()) - {-1}:
                own = arrays["pieces"][row] == piece
                alone = model.body(inputs.tensors["ids"][row, own][None])[0]
                assert (states[row, own] - alone).abs().max() < 1e-9


def test_wide_logits_are_made_in_chunks_with_the_same_loss(
    corpus: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tokenizer = corpus
    head = make(tokenizer).head
    states = torch.randn(17, 16, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(tokenizer.vocab_size, (17,))
    results = []
    for numbers in (1 << 21, 5 * tokenizer.vocab_size, 1):
        monkeypatch.setattr(vocabulary_module, "NUMBERS", numbers)
        (gradient,) = torch.autograd.grad(vocabulary_loss(head, states, labels), states)
        results.append((token_losses(head, states, labels).detach(), gradient))
    own = F.cross_entropy(head(states), labels, reduction="none").detach()
    for losses, gradient in results:
        assert (losses - own).abs().max() < 1e-12
        assert (gradient - results[0][1]).abs().max() < 1e-12


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
@pytest.mark.parametrize("tied", [False, True])
def test_a_loss_with_its_gradient_is_torch_s_own(
    corpus: Any, kind: str, tied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, tokenizer = corpus
    model = make(tokenizer, kind, tie_output=tied, output_scale=0.5 if kind == "decoder" else 1.0)
    states = torch.randn(23, 16, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(tokenizer.vocab_size, (23,))
    monkeypatch.setattr(vocabulary_module, "LEAST_ROWS", 5)
    monkeypatch.setattr(vocabulary_module, "CACHED", 1)
    wanted = [states, *model.head.parameters()]
    ours = vocabulary_loss(model.head, states, labels)
    own = F.cross_entropy(model.head(states), labels, reduction="sum")
    assert (ours - own).abs() < 1e-10
    for a, b in zip(
        torch.autograd.grad(ours * 0.3, wanted), torch.autograd.grad(own * 0.3, wanted), strict=True
    ):
        assert (a - b).abs().max() < 1e-10


def test_a_frozen_output_gets_no_gradient_and_no_states_no_loss(corpus: Any) -> None:
    _, tokenizer = corpus
    model = make(tokenizer)
    model.head.requires_grad_(False)
    states = torch.randn(4, 16, dtype=torch.float64, requires_grad=True)
    vocabulary_loss(model.head, states, torch.arange(4)).backward()
    assert states.grad is not None
    assert model.head.out.weight.grad is None
    nothing = vocabulary_loss(model.head, states[:0], torch.empty(0, dtype=torch.long))
    assert nothing == 0
    nothing.backward()


def test_what_cannot_be_predicted_is_refused_in_one_line(corpus: Any) -> None:
    tokens, tokenizer = corpus
    with pytest.raises(UserError, match="dev has no text with a token to predict"):
        Causal({"dev": TokenLists.of([[3], [4]])}, tokenizer, block=8)
    with pytest.raises(UserError, match="the rate is above 0 and below 1"):
        Masked({"train": tokens}, tokenizer, block=8, rate=1.5)
    with pytest.raises(UserError, match="no mask token"):
        Masked({"train": tokens}, train(WORDS, kind="word", min_count=1), block=8)
