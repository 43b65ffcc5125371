"""The progress of long work, as a file for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful import progress


def test_the_last_count_is_in_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "FILE_EVERY_SECONDS", 0.0)
    path = tmp_path / "progress.json"
    with progress.write_progress_to(path):
        for _ in progress.track(range(3), "reading"):
            pass
        with progress.progress("training (steps)", 96) as bar:
            bar.advance(7, "loss 0.3")
    written = json.loads(path.read_text())
    assert written.pop("seconds") >= 0
    assert written == {
        "label": "training (steps)",
        "done": 7,
        "total": 96,
        "note": "loss 0.3",
        "labels": ["reading", "training (steps)"],
    }
    with progress.progress("later", 2) as bar:
        bar.advance(1)
    assert json.loads(path.read_text())["label"] == "training (steps)"
    assert [p.name for p in tmp_path.iterdir()] == ["progress.json"]


def test_the_file_is_written_seldom_and_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    with progress.write_progress_to(tmp_path / "progress.json"), progress.progress("a", 100) as bar:
        for _ in range(100):
            bar.advance(1)
    assert json.loads((tmp_path / "progress.json").read_text())["done"] == 1
    with progress.write_progress_to(tmp_path / "none" / "progress.json"), progress.progress("a", 1) as bar:
        bar.advance(1)
