"""Runs whose answers are several labels, numbers or ordered classes: every method trains them, or says why not."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.options.training import AdaptOptions
from heedful.training.rescore import evaluate_split
from heedful.training.train import train_run
from tiny import BAD, GOOD, PLAIN, make_model

KINDS = ("labels", "number", "ordered")
METHODS = ("full", "head", "prompt", "prefix", "lora", "bitfit", "top-layers")


def make_kind(folder: Path, kind: str, rows: int = 60) -> Path:
    """Texts with good and bad words: which of them occur, how many more good ones, or that in classes."""
    rng = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", rows), ("dev", rows // 2), ("test", rows // 3)):
        lines = ["text,good,bad" if kind == "labels" else "text,score"]
        for _ in range(count):
            good, bad = rng.randint(0, 3), rng.randint(0, 3)
            words = rng.choices(PLAIN, k=4) + rng.choices(GOOD, k=good) + rng.choices(BAD, k=bad)
            rng.shuffle(words)
            difference = max(-1, min(1, good - bad))
            answer = {
                "labels": f"{int(good > 0)},{int(bad > 0)}",
                "number": f"{10 + 1.25 * (good - bad):.2f}",
                "ordered": f"{difference + 2}",
            }[kind]
            lines.append(f"{' '.join(words)},{answer}")
        (folder / f"{split}.csv").write_text("\n".join([*lines, ""]), "utf-8")
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kinds")
    make_model(root / "model")
    for kind in KINDS:
        make_kind(root / kind, kind)
    return root


def make_options(root: Path, kind: str, out: str, **changes: Any) -> AdaptOptions:
    options = AdaptOptions(
        model=str(root / "model"), task=str(root / kind), kind=kind, precision="float32", threads=1,
        max_len=32, batch_size=8, lr=5e-3, epochs=1, train_rows=24, train_eval_rows=0, out=root / out,
    )  # fmt: skip
    return replace(options, **changes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_every_kind_and_its_saved_model_scores_the_same(
    root: Path, kind: str, method: str
) -> None:
    metric = "rmse" if kind == "number" else None  # of predictions that hardly differ, too
    options = make_options(root, kind, f"{kind}-{method}", method=method, metric=metric)
    if method == "prefix":
        options = replace(options, method_options=("length=2",))
    finished = train_run(options)
    checks = {check.name: check.status for check in finished.checks.checks}
    assert checks["reload"] == "passed"
    for split in ("dev", "test"):
        stored, again = finished.results.splits[split], evaluate_split(finished.folder, split)
        assert again.value == pytest.approx(stored.value, abs=1e-3)
        assert stored.other_metrics
