"""Classification: which rows are chosen, how texts become tensors, what is remembered of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from heedful import checkpoints
from heedful.data import load_task, tokenize
from heedful.data.batches import collate
from heedful.errors import UserError
from heedful.objectives import Classify
from heedful.objectives.base import pad_rows
from heedful.objectives.classify import choose_train_rows
from heedful.runs.config import load_adapt_config
from heedful.text import load as load_tokenizer
from tiny import make_model, make_task


@given(st.lists(st.integers(0, 3), min_size=8, max_size=80), st.integers(0, 5), st.data())
def test_train_rows_are_balanced_nested_and_seeded(labels: list[int], seed: int, data: Any) -> None:
    given_labels = np.array([0, 1, 2, 3, *labels])
    few = data.draw(st.integers(4, len(given_labels) - 1))
    more = data.draw(st.integers(few, len(given_labels)))
    small, large = (choose_train_rows(given_labels, n, seed, balanced=True) for n in (few, more))
    assert len(small) == len(set(small.tolist())) == few
    assert set(small.tolist()) <= set(large.tolist())
    assert small.tolist() == choose_train_rows(given_labels, few, seed, balanced=True).tolist()
    chosen, there = (np.bincount(given_labels[rows], minlength=4) for rows in (small, slice(None)))
    # As equal as they can be: a label that has fewer than another has no rows left.
    for i in range(4):
        assert chosen[i] >= min(there[i], chosen.max() - 1)


@given(st.lists(st.integers(0, 3), min_size=8, max_size=80), st.integers(0, 5), st.data())
def test_train_rows_keep_the_shares_of_the_labels(labels: list[int], seed: int, data: Any) -> None:
    given_labels = np.array([0, 1, 2, 3, *labels])
    few = data.draw(st.integers(4, len(given_labels) - 1))
    more = data.draw(st.integers(few, len(given_labels)))
    small, large = (choose_train_rows(given_labels, n, seed) for n in (few, more))
    assert len(small) == len(set(small.tolist())) == few
    assert set(small.tolist()) <= set(large.tolist())
    chosen, there = (np.bincount(given_labels[rows], minlength=4) for rows in (small, slice(None)))
    assert chosen.min() >= 1
    assert np.abs(chosen - few * there / there.sum()).max() <= 4  # each label rounds up or has its first row


def test_old_runs_and_studies_chose_balanced_rows(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    table = 'command = "adapt"\n[adapt]\nmodel = "minilm"\ntask = "sst2"\n'
    for rows, balanced in (
        ("", False),
        ("train_rows = 9\n", True),
        ("train_rows = 9\nbalanced = false\n", False),
    ):
        (folder / "config.toml").write_text(table + rows)
        assert load_adapt_config(folder).balanced is balanced
    (tmp_path / "recipe.toml").write_text(table + "train_rows = 9\n")
    assert load_adapt_config(tmp_path / "recipe.toml").balanced is False


def test_train_rows_differ_by_seed_and_impossible_numbers_are_refused() -> None:
    labels = np.arange(100) % 2
    assert choose_train_rows(labels, 20, 0).tolist() != choose_train_rows(labels, 20, 1).tolist()
    with pytest.raises(UserError, match="--train-rows 101: the training data has 100 rows"):
        choose_train_rows(labels, 101, 0)
    with pytest.raises(UserError, match="--train-rows 1: there are 2 labels"):
        choose_train_rows(labels, 1, 0)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("tiny")
    return make_model(root / "model", dropout=0.0), make_task(root / "task")


@pytest.mark.parametrize("pairs", [False, True])
def test_gathering_texts_at_once_is_gathering_them_one_by_one(
    places: tuple[Path, Path], tmp_path: Path, pairs: bool
) -> None:
    rows = (places[1] / "train.csv").read_text("utf-8").splitlines()[1:]
    second = [f"the {'long ' * (i % 4)}plot," if pairs else "" for i in range(len(rows))]
    lines = [f"{a}{row}" for a, row in zip(second, rows, strict=True)]
    for name in ("train", "dev"):
        head = "text,pair,label" if pairs else "text,label"
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *lines, ""]), "utf-8")
    task = load_task(str(tmp_path), text_column="text", pair_column="pair" if pairs else None)
    tokens = tokenize(task.splits["train"], load_tokenizer(places[0]), max_len=9)
    chosen = np.array([5, 59, 0, 17, 17, 30])
    ids, mask, types = pad_rows(tokens, chosen, 7)
    slow = collate([tokens[int(i)] for i in chosen], pad_id=7, types=[tokens.types(int(i)) for i in chosen])
    assert np.array_equal(ids, slow.ids)
    assert np.array_equal(mask, slow.mask)
    assert ids.dtype == np.int64
    assert (types is not None) == pairs
    if types is not None:
        assert np.array_equal(types, slow.types)
        assert types.any()
    assert [array.shape for array in pad_rows(tokens, chosen[:0], 7)[:2]] == [(0, 0), (0, 0)]


def test_a_single_text_needs_no_types(places: tuple[Path, Path]) -> None:
    part = Classify(load_task(str(places[1])), load_tokenizer(places[0]), max_len=32, with_types=True)
    model = checkpoints.load(places[0], head="classify", n_classes=2).eval()
    inputs = part.inputs("dev", np.arange(9))
    t = inputs.tensors
    assert "types" not in t
    with torch.no_grad():
        assert torch.equal(part.logits(model, inputs), model(t["ids"], t["mask"], torch.zeros_like(t["ids"])))


def test_scores_do_not_depend_on_the_order_or_company_of_texts(places: tuple[Path, Path]) -> None:
    part = Classify(load_task(str(places[1])), load_tokenizer(places[0]), max_len=32, with_types=True)
    model = checkpoints.load(places[0], head="classify", n_classes=2).double()
    whole = part.probabilities(model, "dev", np.arange(30))
    some = np.array([29, 3, 11])
    assert np.abs(part.probabilities(model, "dev", some) - whole[some]).max() < 1e-12
    found = part.evaluate(model, "dev")
    logs = np.log(whole[np.arange(30), part.labels["dev"]])
    assert found.loss == pytest.approx(-logs.mean(), abs=1e-12)
    assert found.value == (whole.argmax(1) == part.labels["dev"]).mean()


def test_the_ids_that_occur_are_those_of_the_chosen_rows(places: tuple[Path, Path]) -> None:
    task, tokenizer = load_task(str(places[1])), load_tokenizer(places[0])
    for rows in (None, 4):
        part = Classify(task, tokenizer, max_len=32, with_types=True, train_rows=rows)
        seen = {int(i) for row in part.rows for i in part.tokens["train"][int(row)]}
        found = part.train_ids()
        assert found is not None
        assert set(found.tolist()) == seen | {part.pad_id}


def test_other_labels_or_texts_are_other_data(places: tuple[Path, Path], tmp_path: Path) -> None:
    tokenizer = load_tokenizer(places[0])
    names = {
        Classify(load_task(str(task)), tokenizer, max_len=length, with_types=True).content()
        for task, length in ((places[1], 32), (places[1], 5), (make_task(tmp_path / "b", seed=1), 32))
    }
    assert len(names) == 3
    part = Classify(load_task(str(places[1])), tokenizer, max_len=32, with_types=True)
    before = part.content()
    part.labels["train"][0] ^= 1
    assert part.content() != before


def test_the_training_rows_that_are_scored_are_rows_that_are_trained_on(places: tuple[Path, Path]) -> None:
    model = checkpoints.load(places[0], head="classify", n_classes=2)
    task = load_task(str(places[1]))
    few = Classify(task, load_tokenizer(places[0]), max_len=32, with_types=True, train_rows=6)
    whole = Classify(task, load_tokenizer(places[0]), max_len=32, with_types=True)
    found = few.evaluate(model, "train", np.array([0, 3, 5]))
    assert few.rows.tolist() != list(range(6))
    expected = whole.evaluate(model, "train", few.rows[[0, 3, 5]])
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)
    np.testing.assert_array_equal(found.labels, expected.labels)
