"""The demo with its birthplaces as `make demo` has them, and less of the rest: what it must show anywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.demo import stages
from heedful.runs import Run, read_answer


@pytest.mark.nightly
@pytest.mark.timeout(1800)
def test_the_demo_s_numbers_are_those_of_its_runs_and_reading_is_knowing(
    heedful: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = replace(stages.LONG, notes=1000, steps=60, labels=((50, 2, 1), (1000, 1, 1)))
    monkeypatch.setattr(stages, "LONG", shorter)
    out = tmp_path / "demo"
    done = heedful("demo", "--long", "--out", out, "--json")
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    page = (out / "report.html").read_text(encoding="utf-8")
    arms = {(f["labels"], f["model"], f["method"]): f for f in facts["reviews"]}
    assert len(arms) == 2 * 2 * 3
    for (labels, model, method), f in arms.items():
        found = read_answer(out / f"reviews-{labels}").facts["arms"][f"{model} {method}"]
        assert found == [f["accuracy"], f["low"], f["high"]]
        assert f"{f['low']:.3f} to {f['high']:.3f}" in page
    solved = facts["letters"]
    assert solved["accuracy"] == Run.open(out / "solved").read_results().splits["test"].value
    assert solved["low"] > solved["bag_of_words"] + 0.3, "MiniLM knows subjects that no labeled letter had"
    for name in (
        "letters",
        "score-against-cost",
        "heads",
        "attention",
        "pretraining",
        "reviews",
        "birthplaces",
    ):
        assert (out / "figures" / f"{name}.png").stat().st_size > 5_000

    born = facts["birthplaces"]
    for name, arm in born.items():
        assert (
            Run(out / "birthplaces" / "runs" / name).read_results().splits["dev"].value == arm["exact_match"]
        )
    constant = born["pretrained"]["constant_answer"]
    assert born["pretrained"]["ci95"][0] > 2 * constant
    assert born["nothing"]["ci95"][0] <= constant, "without the biographies nobody can know"

    for command in (("study", "show", out / "reviews-50"), ("study", "show", out / "birthplaces")):
        assert heedful(*command).status == 0
    assert heedful("report", out / "pretrained", "--out", tmp_path / "pretrained.html").status == 0
