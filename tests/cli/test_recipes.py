"""Every recipe of the project runs as it stands, for a few steps on a made world."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.runs.config import load_run_config

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
READ = [path for path in RECIPES if not path.stem.endswith("-questions")]
SHORT = ("steps=3", "threads=1", "precision=float32", "eval_every=none")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_has_known_options_and_says_what_it_costs(path: Path) -> None:
    load_run_config(path)
    comment = [line for line in path.read_text("utf-8").splitlines() if line.startswith("#")]
    assert any("cost" in line.lower() for line in comment)
    assert all(len(line) <= 120 for line in path.read_text("utf-8").splitlines())


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_a_recipe_reads_and_then_answers(heedful: Callable[..., Any], path: Path, tmp_path: Path) -> None:
    options = load_run_config(path)
    world = ["corpus=world/birthplaces"]
    if getattr(options, "questions", None):
        world.append("questions=world/birthplaces")
    read = heedful("run", path, "--set", *SHORT, *world, "batch_size=8", "--out", tmp_path / "read")
    assert read.status == 0, read.err
    asked = path.with_name(f"{path.stem}-questions.toml")
    own = [f"model={tmp_path / 'read'}", "task=world/birthplaces", "batch_size=8", "dev_rows=40"]
    done = heedful("run", asked, "--set", *SHORT, *own, "--out", tmp_path / "born")
    assert done.status == 0, done.err
    assert "exact match" in done.out
