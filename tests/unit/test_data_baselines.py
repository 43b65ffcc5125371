"""Baselines: right on problems whose answer is known, and the same every time."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from heedful.data import Task, load_task
from heedful.evaluation.baselines import (
    BagOfWords,
    chance_accuracy,
    find_most_frequent,
    score_task_baselines,
)
from heedful.evaluation.metrics import ACCURACY
from heedful.evaluation.scorer import LabelResults
from heedful.linear.model import TfidfModel


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))


def fit(texts: list[str], labels: np.ndarray) -> TfidfModel:
    return TfidfModel.fit(texts, None, labels, [str(label) for label in range(labels.max() + 1)])


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
    model = fit(texts[:1000], labels[:1000])
    assert np.mean(model.probabilities(texts[1000:]).argmax(1) == labels[1000:]) > 0.95


def test_words_of_the_second_text_are_features_of_their_own() -> None:
    model = TfidfModel.fit(["yes", "no"] * 50, ["no", "yes"] * 50, np.array([1, 0] * 50), ["a", "b"])
    assert model.probabilities(["yes", "no"], ["no", "yes"]).argmax(1).tolist() == [1, 0]


def test_the_same_rows_give_the_same_weights() -> None:
    texts, labels = draw(300, 3, 1)
    first, second = (fit(texts, labels).linear.weight for _ in range(2))
    assert np.array_equal(first, second)


def test_texts_of_unknown_words_get_the_commonest_class() -> None:
    texts, labels = draw(300, 2, 1)
    labels[:100] = 1
    assert fit(texts, labels).probabilities(["zzz", "", "zzz yyy"]).argmax(1).tolist() == [1, 1, 1]


def test_scripts_without_spaces_are_told_apart_by_their_characters() -> None:
    model = fit(["这个菜很好吃", "这个菜很难吃"] * 30, np.array([1, 0] * 30))
    assert model.probabilities(["服务很好", "服务很难"]).argmax(1).tolist() == [1, 0]


def test_ten_thousand_texts_take_seconds() -> None:
    texts, labels = draw(10_000, 2, 0, words=20)
    start = time.process_time()
    fit(texts, labels)
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


def write_meals(folder: Path) -> Task:
    rows = "".join(f"a {['bad', 'good'][n >= 200]} meal number {n},{int(n >= 200)}\n" for n in range(400))
    for name in ("train", "dev"):
        (folder / f"{name}.csv").write_text("text,label\n" + rows)
    return load_task(str(folder))


@pytest.mark.parametrize(("limit", "value", "fewest"), [("MOST_ROWS", 40, 40), ("MOST_CHARACTERS", 900, 39)])
def test_of_very_many_rows_the_bag_of_words_sees_a_sample_of_every_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, fewest: int
) -> None:
    monkeypatch.setattr(f"heedful.evaluation.baselines.{limit}", value)
    monkeypatch.setattr("heedful.evaluation.baselines.PREDICT_ROWS", 7)
    task = write_meals(tmp_path)
    bag = BagOfWords.from_task(task)
    assert fewest <= bag.n_rows <= 42
    assert score_task_baselines(task, bag=bag)["dev"]["bag_of_words"] == 1.0
    assert BagOfWords.from_task(task, np.arange(150, 170)).n_rows == 20
    scorer = LabelResults(task, np.arange(400))
    assert scorer.score_baselines("dev", ACCURACY)["bag_of_words"] == 1.0
    assert scorer.result_fields(None, 0, 0.0)["bag_of_words_rows"] == bag.n_rows


def test_a_fit_that_takes_long_is_shared_by_the_runs_on_the_same_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task, fits = write_meals(tmp_path), []
    fit_model = TfidfModel.fit
    monkeypatch.setattr(
        TfidfModel,
        "fit",
        lambda *given, **options: fits.append(len(given[0])) or fit_model(*given, **options),
    )
    quick = [BagOfWords.from_task(task) for _ in range(2)]
    monkeypatch.setattr("heedful.evaluation.baselines.WORTH_KEEPING", 1_000)
    kept = [BagOfWords.from_task(task) for _ in range(2)]
    assert fits == [400, 400, 400]
    dev = task.splits["dev"]
    assert all(np.array_equal(quick[0].score_rows(dev), bag.score_rows(dev)) for bag in (*quick, *kept))
    BagOfWords.from_task(task, np.arange(150, 250))
    BagOfWords.from_task(task, balanced=True)
    changed = task.splits["train"].targets.copy()
    changed[0] = 1
    monkeypatch.setattr(task.splits["train"], "targets", changed)
    BagOfWords.from_task(task)
    assert fits == [400, 400, 400, 100, 400, 400]


def test_all_rows_are_fitted_and_none_of_them_is_mentioned_where_they_are_few(tmp_path: Path) -> None:
    task = write_meals(tmp_path)
    scorer = LabelResults(task, np.arange(300))
    assert scorer.bag.n_rows == 300
    scorer.ask_bag("dev")
    assert "bag_of_words_rows" not in scorer.result_fields(None, 0, 0.0)
    without = LabelResults(task, np.arange(300), with_bag=False)
    assert set(without.score_baselines("dev", ACCURACY)) == {"chance", "majority"}


def test_the_bag_of_words_takes_the_class_weights_of_the_run(tmp_path: Path) -> None:
    rows = "".join(f"a meal number {n % 7},{int(n % 10 == 0)}\n" for n in range(400))
    for name in ("train", "dev"):
        (tmp_path / f"{name}.csv").write_text("text,label\n" + rows)
    task = load_task(str(tmp_path))
    means = [
        LabelResults(task, np.arange(400), balanced=balanced).ask_bag("dev").mean(0)[1]
        for balanced in (False, True)
    ]
    assert means == pytest.approx([0.1, 0.5], abs=0.02)


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
