"""`--dev-rows`: dev is cut to rows that are fixed for ever, and everything is said of those rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data import load_task
from heedful.data.splits import Split, sample
from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.runs.directory import Run
from heedful.training.rescore import evaluate_split
from heedful.training.run_task import load_run_task
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    root = tmp_path_factory.mktemp("tiny")
    return AdaptOptions(
        model=str(make_model(root / "model")), task=str(make_task(root / "task")), epochs=1, batch_size=8,
        lr=5e-3, max_len=32, precision="float32", threads=1, dev_rows=7,
    )  # fmt: skip


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Split:
    """Dev with 60 rows of one label, 30 of another and 10 of a third."""
    folder = tmp_path_factory.mktemp("uneven")
    labels = ["no"] * 60 + ["yes"] * 30 + ["maybe"] * 10
    for name in ("train", "dev"):
        lines = [f"{name} text number {i},{label}" for i, label in enumerate(labels)]
        (folder / f"{name}.csv").write_text("\n".join(["text,label", *lines]) + "\n")
    return load_task(str(folder)).splits["dev"]


@given(count=st.integers(1, 100), seed=st.integers(0, 5))
def test_a_sample_has_the_labels_shares_and_contains_the_smaller_ones(
    uneven: Split, count: int, seed: int
) -> None:
    few = sample(uneven, count, seed)
    assert uneven.labels is not None
    assert few.labels is not None
    assert len(few) == len(set(few.texts)) == len(few.labels) == count
    assert few.of == 100
    whole = np.bincount(uneven.labels) / 100
    assert np.abs(np.bincount(few.labels, minlength=3) - whole * count).max() <= 1.5
    assert set(sample(uneven, max(1, count // 2), seed).texts) <= set(few.texts)
    places = [list(uneven.texts).index(text) for text in few.texts]
    assert places == sorted(places)
    assert [uneven[place] for place in places] == list(few)


def test_the_split_seed_draws_the_rows_and_the_training_seed_never(base: AdaptOptions) -> None:
    def rows(options: AdaptOptions) -> list[str]:
        return list(load_run_task(options).splits["dev"].texts)

    assert rows(base) == rows(replace(base, seed=9))
    assert rows(base) != rows(replace(base, split_seed=9))


def test_a_run_scores_those_rows_of_dev_and_the_whole_of_test(base: AdaptOptions, tmp_path: Path) -> None:
    done = train_run(replace(base, out=tmp_path / "run"))
    splits = done.results.splits
    assert (splits["dev"].n, splits["dev"].of) == (7, 30)
    assert (splits["test"].n, splits["test"].of) == (20, None)
    run = Run.open(done.folder)
    assert {row.n for row in run.read_metrics() if row.split == "dev"} == {7}
    chosen = load_run_task(base).splits["dev"]
    assert [p.text for p in run.read_predictions("dev")] == list(chosen.texts)
    assert chosen.labels is not None
    assert splits["dev"].baselines is not None
    assert splits["dev"].baselines["majority"] == pytest.approx(float((chosen.labels == 0).mean()), abs=1e-9)
    assert evaluate_split(done.folder, "dev") == splits["dev"]


@pytest.mark.parametrize(("count", "reason"), [(0, "must be at least 1"), (31, "dev has 30 rows")])
def test_impossible_numbers_are_refused(base: AdaptOptions, count: int, reason: str) -> None:
    with pytest.raises(UserError, match=f"--dev-rows {count}: {reason}"):
        train_run(replace(base, dev_rows=count))
