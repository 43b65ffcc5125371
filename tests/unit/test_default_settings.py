"""The rules that choose what the user leaves open, and the head that is fitted before the first step."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heedful.options.training import AdaptOptions
from heedful.training.build.settings import TaskFacts, choose_settings

FACTS = TaskFacts(
    rows=6000, labels=np.array([3000, 3000]), dev_labels=np.array([50, 50]), lengths=np.full(100, 20),
    room=512, width=384, new_linear_head=True,
)  # fmt: skip


def chosen(facts: TaskFacts, **options: Any) -> AdaptOptions:
    return choose_settings(AdaptOptions(model="minilm", task="t", **options), facts)[0]


def test_few_rows_and_many_labels_get_more_epochs() -> None:
    assert chosen(FACTS).epochs == 3
    few = chosen(replace(FACTS, rows=50))
    assert few.epochs is not None
    assert few.epochs * -(-50 // 16) >= 200
    many = replace(FACTS, rows=9000, labels=np.full(77, 117), dev_labels=None)
    assert chosen(many).epochs == 5  # 30 steps per label
    assert chosen(replace(many, rows=500, labels=np.full(77, 7))).epochs == 20  # and no more for those
    # Short epochs are not all followed by a score of dev.
    assert few.eval_every is not None
    assert few.epochs * 4 / few.eval_every <= 10
    assert chosen(FACTS).eval_every is None


def test_what_the_user_gives_is_kept() -> None:
    given = {
        "epochs": 2, "batch_size": 4, "lr": 1e-3, "warmup": 0.0, "max_len": 11, "class_weights": "balanced",
        "head_start": "random",
    }  # fmt: skip
    options, choices = choose_settings(AdaptOptions(model="minilm", task="t", **given), FACTS)  # type: ignore[arg-type]
    assert {name: getattr(options, name) for name in given} == given
    assert choices == {}
    assert chosen(FACTS, steps=7).steps == 7


@pytest.mark.parametrize(
    ("lengths", "room", "wanted"), [([20], 512, 32), ([33], 512, 64), ([900], 512, 256), ([900], 100, 100)]
)
def test_the_length_covers_most_texts(lengths: list[int], room: int, wanted: int) -> None:
    assert chosen(replace(FACTS, lengths=np.array(lengths), room=room)).max_len == wanted


@pytest.mark.parametrize(
    ("train", "dev", "wanted"),
    [
        ([900, 100], [50, 50], "balanced"),  # as in Yelp: the texts to come are unlike train
        ([900, 100], [90, 10], "none"),
        ([500, 500], [50, 50], "none"),
        ([900, 100], None, "none"),
        ([500, 500], [10, 90], "none"),
        ([110, 77], [13, 13], "none"),  # so few rows of dev differ by chance
    ],
)
def test_labels_are_weighted_if_dev_says_that_train_is_unlike_what_comes(
    train: list[int], dev: list[int] | None, wanted: str
) -> None:
    facts = replace(FACTS, labels=np.array(train), dev_labels=None if dev is None else np.array(dev))
    assert chosen(facts).class_weights == wanted


def test_a_token_budget_counts_its_own_steps() -> None:
    facts = replace(FACTS, rows=500, lengths=np.full(100, 20))
    options = chosen(facts, token_budget=5000)
    assert options.batch_size is None
    assert options.epochs == 100  # two steps each


def test_without_facts_the_settings_are_those_of_older_versions() -> None:
    options, _ = choose_settings(AdaptOptions(model="t5", task="t"), None)
    assert (options.lr, options.batch_size, options.head_start) == (5e-5, 32, "random")


def test_wider_models_get_a_lower_rate() -> None:
    assert chosen(FACTS).lr == 1e-4
    assert chosen(replace(FACTS, width=768)).lr == 5e-5
    assert chosen(replace(FACTS, width=768), method="lora").lr == chosen(FACTS, method="lora").lr


def test_a_new_head_is_fitted_and_a_loaded_one_is_kept(tmp_path: Path) -> None:
    from tests.tiny import make_model, make_task

    import heedful

    task, model = make_task(tmp_path / "task"), make_model(tmp_path / "model")
    fast: dict[str, Any] = {"steps": 1, "threads": 1, "precision": "float32", "pool": "mean"}
    heedful.adapt(model, task, out=tmp_path / "first", **fast)
    heedful.adapt(tmp_path / "first" / "best", task, out=tmp_path / "second", **fast)
    starts = [
        tomllib.loads((tmp_path / run / "config.toml").read_text())["adapt"]["head_start"]
        for run in ("first", "second")
    ]
    assert starts == ["fitted", "random"]
