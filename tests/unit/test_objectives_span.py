"""Span corruption as an objective: what is hidden, where the loss is, and scores that never move by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.data import load_task, open_corpus, tokenize
from heedful.data.batches import IGNORED
from heedful.data.corruption import find_salient
from heedful.errors import UserError
from heedful.inference.generation import generate
from heedful.models import PRESETS, LanguageModel, build
from heedful.objectives.answer import AnswerObjective
from heedful.objectives.mixed import Mixed
from heedful.objectives.questions import QuestionFormat
from heedful.objectives.span import Corruption, Span
from heedful.text import Tokenizer, train

LINES = [
    "Ada Lund. Ada Lund (born 3 May 1901 in Oslo, Norway) was a painter .",
    "Bo Ek. Born in Port Elm, Ek became a welder in 1930 .",
    "",
    "x",
    "Cy P. Dahl. Dahl is a poet who was born in Ulm and lives in Rome .",
    "nothing here has a capital letter, and there is no title either",
]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "wiki.txt"
    path.write_text("\n".join(LINES) + "\n", "utf-8")
    return path


def tokenizer_for(kind: str) -> Tokenizer:
    return train(
        [*LINES * 3, "Where was Ada Lund born?"], kind=kind, vocab_size=None if kind == "char" else 400
    )


def objective(path: Path, kind: str = "wordpiece", whole: bool = False, **how: Any) -> Span:
    tokenizer = tokenizer_for(kind)
    corpus = open_corpus(path)
    tokens = tokenize(corpus, tokenizer, special=False)
    salient = {"train": find_salient(corpus, tokenizer)} if how.pop("salient", False) else None
    return Span(
        {"train": tokens},
        tokenizer,
        corruption=Corruption(**{"block": 64, **how}),
        whole=whole,
        salient=salient,
    )


def model_for(tokenizer: Tokenizer, kind: str = "decoder") -> LanguageModel:
    torch.manual_seed(0)
    preset, head = ("char-gpt", "causal") if kind == "decoder" else ("t5-mini", "text2text")
    config = PRESETS[preset].config.replace(
        vocab_size=tokenizer.vocab_size, d_model=32, n_layers=1, n_heads=2, d_head=16, d_ff=64, max_len=64,
        pad_id=tokenizer.pad_id,
    ).with_dropout(0.0)  # fmt: skip
    model = build(config, head)
    assert isinstance(model, LanguageModel)
    return model


@pytest.mark.parametrize("form", ["line", "window"])
def test_a_step_always_prepares_the_same_rows_and_another_step_others(corpus, form):
    span = objective(corpus, form=form, salient=True)
    rows = np.arange(len(span.rows["train"]))

    def ids(step: int) -> list[list[int]]:
        return [part.tensors["ids"].tolist() for part in span.prepare(rows, step)]

    assert ids(3) == ids(3)
    assert ids(3) != ids(4)


def test_texts_too_short_to_hide_something_in_are_skipped(corpus):
    span = objective(corpus, "char")
    assert len(span.texts["train"]) == 5  # the empty line is no text
    assert len(span.rows["train"]) == 4


def test_a_window_tells_one_salient_span_after_the_title_and_a_few_tokens(corpus):
    span = objective(corpus, form="window", salient=True, left=2, right=1)
    mask = span.tokenizer.mask_id
    told = set()
    for step in range(60):
        for part in span.prepare(np.array([0]), step):
            ids, targets = part.tensors["ids"][0], part.tensors["labels"][0]
            first, second = (ids == mask).nonzero().flatten().tolist()
            assert span.tokenizer.decode(ids[:3].tolist()) == "Ada Lund."
            assert first - 3 <= 2
            assert second - first - 1 <= 1
            assert (targets[:second] == IGNORED).all()
            assert targets[second:-1].tolist() == ids[second + 1 :].tolist()
            assert targets[-1] == mask
            told.add(span.tokenizer.decode(targets[second:-1].tolist()))
    assert told == {"3 May 1901", "Oslo", "Norway"}


def test_a_token_budget_counts_the_tokens_that_windows_have(corpus):
    span = objective(corpus, form="window", salient=True)
    rows = np.arange(3)
    tokens = sum(part.tokens for step in range(60) for part in span.prepare(rows, step))
    assert span.train_lengths()[rows].sum() == pytest.approx(tokens / 60, rel=0.2)


def test_a_text_without_names_and_title_still_gives_windows(corpus):
    span = objective(corpus, form="window", salient=True)
    last = len(span.rows["train"]) - 1
    told = {span.prepare(np.array([last]), step)[0].tensors["ids"].shape[1] for step in range(30)}
    assert len(told) > 1


def test_rows_in_parts_have_the_loss_of_rows_alone(corpus):
    span = objective(corpus, "char")
    model = model_for(span.tokenizer).double()
    rows = np.arange(len(span.rows["train"]))
    together, apart = span.prepare(rows, 1, 1), span.prepare(rows, 1, 4)
    assert len(apart) == 4
    sums = [
        sum(span.losses(model, part).sums["span"].item() for part in parts) for parts in (together, apart)
    ]
    assert sums[0] == pytest.approx(sums[1], rel=1e-10)
    assert sum(p.counts["span"] for p in together) == sum(p.counts["span"] for p in apart)
    assert sum(p.tensors["ids"].numel() for p in apart) <= sum(p.tensors["ids"].numel() for p in together)


def test_loss_on_the_span_is_a_part_of_the_loss_on_all(corpus):
    everywhere, alone = (objective(corpus, "char", counted=counted) for counted in ("all", "span"))
    rows = np.arange(len(alone.rows["train"]))
    a, b = everywhere.prepare(rows, 0)[0], alone.prepare(rows, 0)[0]
    assert torch.equal(a.tensors["ids"], b.tensors["ids"])
    counted = b.tensors["labels"] != IGNORED
    assert torch.equal(a.tensors["labels"][counted], b.tensors["labels"][counted])
    assert 0 < b.counts["span"] < a.counts["span"]


@pytest.mark.parametrize(
    ("kind", "form"), [("decoder", "line"), ("decoder", "window"), ("encoder_decoder", "line")]
)
def test_a_score_depends_on_the_text_and_not_on_what_is_scored_with_it(corpus, kind, form):
    span = objective(corpus, "unigram", whole=kind != "decoder", form=form, salient=True)
    model = model_for(span.tokenizer, kind).double()
    whole = span.evaluate(model, "train")
    assert whole.metric == "perplexity"
    assert whole.value == pytest.approx(np.exp(whole.loss))
    assert whole.n == whole.text_tokens.sum()
    for row, document in enumerate(span.rows["train"]):
        alone = span.evaluate(model, "train", np.array([row]))
        assert alone.text_losses[document] == pytest.approx(whole.text_losses[document], rel=1e-9)
        assert alone.n == whole.text_tokens[document] > 0


def test_scores_count_the_span_alone_whatever_training_counts(corpus):
    scores = []
    for counted in ("all", "span"):
        span = objective(corpus, "char", counted=counted)
        scores.append(span.evaluate(model_for(span.tokenizer), "train"))
    assert scores[0].n == scores[1].n
    assert scores[0].loss == scores[1].loss


def test_what_cannot_be_is_refused_in_one_line(corpus):
    with pytest.raises(UserError, match="did you mean"):
        Corruption(form="windw")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="--block 8"):
        Corruption(block=8)
    with pytest.raises(UserError, match="windows are for decoders"):
        objective(corpus, "unigram", whole=True, form="window", salient=True)
    with pytest.raises(UserError, match="T5's spans need both"):
        objective(corpus, "char", whole=True)
    with pytest.raises(UserError, match="windows need salient spans, and none were searched for"):
        objective(corpus, form="window")
    (corpus.parent / "short.txt").write_text("a\nb\n")
    with pytest.raises(UserError, match="long enough"):
        objective(corpus.parent / "short.txt", "char")


def questions(folder: Path, tokenizer: Tokenizer) -> AnswerObjective:
    (folder / "birth_places_train.tsv").write_text(
        "Where was Ada Lund born?\tOslo\nWhere was Bo Ek born?\tPort Elm\n"
    )
    (folder / "birth_dev.tsv").write_text("Where was Cy P. Dahl born?\tUlm\n")
    return AnswerObjective(
        load_task("birthplaces", data_dir=folder), QuestionFormat(tokenizer, 64, False), generate
    )


def test_every_step_has_its_questions_and_an_epoch_of_them_has_each_once(corpus):
    span = objective(corpus, form="window", salient=True)
    answer = questions(corpus.parent, span.tokenizer)
    mixed = Mixed(span, answer, batch_size=1)
    model = model_for(span.tokenizer)
    rows = np.arange(len(span.rows["train"]))
    asked = []
    for step in range(4):
        *read, last = mixed.prepare(rows, step)
        assert [part.tensors["ids"].tolist() for part in read] == [
            part.tensors["ids"].tolist() for part in span.prepare(rows, step)
        ]
        assert set(last.counts) == {"answer"}
        assert set(mixed.losses(model, last).sums) == {"answer"}
        assert set(mixed.losses(model, read[0]).sums) == {"span"}
        asked.append(tuple(last.tensors["ids"][0].tolist()))
    assert set(asked[:2]) == set(asked[2:])
    assert len(set(asked)) == 2


def test_scores_with_questions_mixed_in_are_the_text_s(corpus):
    span = objective(corpus, form="window", salient=True)
    mixed = Mixed(span, questions(corpus.parent, span.tokenizer), batch_size=1)
    model = model_for(span.tokenizer)
    assert mixed.one_mean
    assert (mixed.metric, mixed.outputs) == ("perplexity", ("losses",))
    assert mixed.evaluate(model, "train").loss == span.evaluate(model, "train").loss
