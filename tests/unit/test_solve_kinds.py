"""`heedful solve` for several labels per text, numbers and ordered classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.solve.average_loss import LogLoss, SquaredLoss
from heedful.solve.ensemble import blend_outputs
from tiny import make_model


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("kinds"), np.random.default_rng(0)
    sets, numbers, stars = ["text,label"], ["text,score"], ["text,stars"]
    for i in range(260):
        noise = " ".join(rng.choice(["the", "a", "so", "and"], 3))
        chosen = [name for name in ("joy", "love", "fear") if rng.random() < 0.4]
        sets.append(f"{' '.join(chosen)} {noise} {i},{'|'.join(chosen)}")
        number, star = rng.random() * 5, rng.integers(1, 5)
        numbers.append(f"{'good ' * round(number)}{noise} {i},{number:.3f}")
        stars.append(f"star{star} {noise} {i},{star}")
    for name, rows in (("sets", sets), ("numbers", numbers), ("stars", stars)):
        (folder / f"{name}.csv").write_text("\n".join(rows))
    make_model(folder / "tiny")
    return folder


@pytest.mark.parametrize(
    ("name", "options", "metric"),
    [
        ("sets", {}, "micro F1"),
        ("numbers", {}, "Pearson correlation"),
        ("stars", {"kind": "ordered", "metric": "quadratic_kappa"}, "quadratic"),
    ],
)
def test_each_kind_is_solved(
    name: str,
    options: dict[str, Any],
    metric: str,
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    solved = heedful.solve(
        files / f"{name}.csv",
        model=files / "tiny",
        minutes=3,
        candidates=["majority", "tfidf", *(["head"] if name == "numbers" else [])],
        threads=1,
        out=tmp_path / "solved",
        **options,
    )
    answer = solved.answer
    assert answer.finished
    assert metric in answer.summary[0]
    assert answer.facts["test"] > 0.8
    assert (tmp_path / "solved" / "report.html").is_file()
    assert not any("most frequent label" in line for line in answer.summary) or name == "stars"
    assert len(heedful.load(tmp_path / "solved").predict_proba(["joy good star1"])) == 1


def test_averages_of_numbers_and_of_several_labels_have_the_best_weights() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=400)
    numbers = np.stack(
        [truth + rng.normal(size=400), truth + rng.normal(size=400), truth + 5 * rng.normal(size=400)]
    )
    weights, outputs = blend_outputs(numbers, truth) or pytest.fail("they help each other")
    assert weights[:2] == pytest.approx([0.5, 0.5], abs=0.1)
    assert weights[2] == 0
    assert np.mean((outputs - truth) ** 2) < 0.6
    by_hand = min(
        np.linspace(0, 1, 1001), key=lambda w: np.mean((w * numbers[0] + (1 - w) * numbers[1] - truth) ** 2)
    )
    assert SquaredLoss(numbers.T, truth).fit([0, 1])[0] == pytest.approx(by_hand, abs=1e-3)
    sets = (rng.random((300, 4)) < 0.3).astype(np.uint8)
    tables = np.clip(
        np.stack([0.6 * sets + 0.2 + rng.normal(0, 0.2, sets.shape) for _ in range(2)]), 0.01, 0.99
    )
    weights, outputs = blend_outputs(tables, sets) or pytest.fail("they help each other")
    assert outputs.shape == (300, 4)
    assert weights.sum() == pytest.approx(1)
    of_truth = np.where(sets == 1, tables, 1 - tables).reshape(2, -1).T
    assert LogLoss(of_truth).measure([0, 1]) < min(LogLoss(of_truth).measure([i]) for i in range(2))
