"""Baselines: right on problems whose answer is known, and the same every time."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.sparse import csr_matrix

from heedful.data import load_task
from heedful.evaluation.baselines import (
    BagOfWords,
    chance_accuracy,
    find_most_frequent,
    fit_softmax,
    score_task_baselines,
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))


def draw(count: int, classes: int, seed: int, words: int = 30) -> tuple[list[str], np.ndarray]:
    """Texts of common words, one of which in ten hints at the class."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count).astype(np.int32)
    texts = []
    for label in labels:
        common = random.integers(0, 2000, words)
        hints = random.integers(0, 20, words // 10)
        texts.append(" ".join([*(f"w{w}" for w in common), *(f"hint{label}x{h}" for h in hints)]))
    return texts, labels


@pytest.mark.parametrize("classes", [2, 5])
def test_a_bag_of_words_learns_words_that_tell(classes: int) -> None:
    texts, labels = draw(1200, classes, 0)
    model = BagOfWords().fit(texts[:1000], None, labels[:1000], classes)
    assert np.mean(model.predict(texts[1000:]) == labels[1000:]) > 0.95


def test_a_bag_of_words_does_not_know_order() -> None:
    texts = ["dog bites man", "man bites dog"] * 50
    model = BagOfWords().fit(texts, None, np.array([0, 1] * 50, np.int32), 2)
    assert len(set(model.predict(texts).tolist())) == 1


def test_words_of_the_second_text_are_features_of_their_own() -> None:
    texts, pairs = ["yes", "no"] * 50, ["no", "yes"] * 50
    model = BagOfWords().fit(texts, pairs, np.array([1, 0] * 50, np.int32), 2)
    assert model.predict(["yes", "no"], ["no", "yes"]).tolist() == [1, 0]


def test_the_same_rows_give_the_same_weights() -> None:
    texts, labels = draw(300, 3, 1)
    first, second = (BagOfWords().fit(texts, None, labels, 3).weights for _ in range(2))
    assert np.array_equal(first, second)


def test_texts_of_unknown_words_get_the_commonest_class() -> None:
    texts, labels = draw(300, 2, 1)
    labels[:100] = 1
    model = BagOfWords().fit(texts, None, labels, 2)
    assert model.predict(["zzz", "", "zzz yyy"]).tolist() == [1, 1, 1]


def test_the_regression_ends_at_the_minimum() -> None:
    random = np.random.default_rng(0)
    x = csr_matrix(random.normal(size=(60, 4)))
    labels = random.integers(0, 3, 60)

    def loss(flat: np.ndarray) -> float:
        weights = flat.reshape(5, 3)
        scores = x @ weights[:-1] + weights[-1]
        logs = scores - np.log(np.exp(scores).sum(1, keepdims=True))
        return float(-logs[np.arange(60), labels].sum() + 0.25 * (weights[:-1] ** 2).sum())

    best = fit_softmax(x, labels, 3, l2=0.5).ravel()
    assert np.abs(approx_fprime(best, loss, 1e-6)).max() < 0.02


def test_scripts_without_spaces_are_told_apart_by_their_characters() -> None:
    texts = ["这个菜很好吃", "这个菜很难吃"] * 30
    model = BagOfWords().fit(texts, None, np.array([1, 0] * 30, np.int32), 2)
    assert model.predict(["服务很好", "服务很难"]).tolist() == [1, 0]


def test_ten_thousand_texts_take_seconds() -> None:
    texts, labels = draw(10_000, 2, 0, words=20)
    start = time.process_time()
    BagOfWords().fit(texts, None, labels, 2)
    assert time.process_time() - start < 20


def test_chance_and_majority_are_what_they_say(tmp_path: Path) -> None:
    assert chance_accuracy(4) == 0.25
    assert find_most_frequent(np.array([2, 1, 1, 2, 0], np.int32)) == 1
    for name, count in (("train", 30), ("dev", 20)):
        rows = "".join(f"meal number {n} was fine,{'c' if n % 3 else 'ab'[n % 2]}\n" for n in range(count))
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows)
    (tmp_path / "test.csv").write_text("text\nno label here\n")
    found = score_task_baselines(load_task(str(tmp_path)))
    assert list(found) == ["dev"]
    assert found["dev"]["chance"] == pytest.approx(1 / 3)
    assert found["dev"]["majority"] == 13 / 20
    assert set(found["dev"]) == {"chance", "majority", "bag_of_words"}


def test_of_many_rows_the_classifier_sees_every_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.evaluation.baselines.TRAIN_ROWS", 40)
    monkeypatch.setattr("heedful.evaluation.baselines.PREDICT_ROWS", 7)
    rows = "".join(f"a {['bad', 'good'][n >= 200]} meal number {n},{int(n >= 200)}\n" for n in range(400))
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows)
    assert score_task_baselines(load_task(str(tmp_path)))["dev"]["bag_of_words"] == 1.0


def test_a_constant_answer_is_the_baseline_of_text_to_text(tmp_path: Path) -> None:
    for name, places in (("train", ["Rome", "Oslo", "Rome"]), ("dev", ["Rome", "Oslo", "Bonn", "Rome"])):
        rows = "".join(f"Where was {name} {n} born?\t{place}\n" for n, place in enumerate(places))
        (tmp_path / f"birth_{name}.tsv").write_text(rows)
    assert score_task_baselines(load_task("birthplaces", data_dir=tmp_path)) == {"dev": {"majority": 0.5}}


def test_the_constant_answer_on_real_birth_places_is_five_percent(real_data: Path) -> None:
    assert (
        score_task_baselines(load_task("birthplaces", data_dir=real_data / "birthplaces"))["dev"]["majority"]
        == 0.05
    )
