"""The demo: every number real, a page and figures at the end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from heedful.attention import MECHANISMS


def test_the_quick_demo_measures_and_leaves_a_report(heedful: Callable[..., object], tmp_path: Path) -> None:
    done = heedful("demo", "--quick", "--json", "--out", tmp_path)
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    leaks = {f["attention"]: f["leak"] for f in facts["attention"]}
    for name, cls in MECHANISMS.items():
        if cls.causal:
            assert (leaks[name] > 1e-5) == cls.unsafe, name
    for task in facts["tasks"]:
        assert task["bag_of_words"] < task["best possible"]
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert (tmp_path / "attention.png").stat().st_size > 10_000
    assert (tmp_path / "tokenizer" / "tokenizer.json").is_file()
