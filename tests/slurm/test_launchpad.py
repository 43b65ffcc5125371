"""`sbatch launchpad.sh`, as the handout says it, on a real Slurm."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tiny import make_model

ROOT = Path(__file__).parents[2]


@pytest.mark.needs("slurm")
@pytest.mark.usefixtures("cluster")
def test_a_submitted_handout_leaves_its_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "handouts", tmp_path / "handouts", ignore=shutil.ignore_patterns("runs", "*.out"))
    for name, value in {
        "HEEDFUL_PYTHON": sys.executable,
        "HEEDFUL_STAND_IN": str(make_model(tmp_path / "minilm")),
        "NUM_EPOCHS": "1",
        "MORE": "--max_len 16",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    place = tmp_path / "handouts" / "boolq"
    words = ["sbatch", "--wait", "--parsable", "launchpad.sh"]
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    said = (place / f"boolq-{done.stdout.strip()}.out").read_text()
    assert done.returncode == 0, done.stderr + said
    assert said.startswith("STAND-IN: minilm stands in for distilbert-base-uncased")
    assert "no CUDA here: using the CPU" in said
    out = place / "runs" / "boolq-overfit"
    assert json.loads((out / "results.json").read_text())["splits"]["test"]["metric"] == "accuracy"
    assert list((out / "figures").glob("*.png"))
    assert (out / "report.html").is_file()
