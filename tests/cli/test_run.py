"""A run made again from its configuration, recipes, and a person's own defaults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_run_made_again_from_its_configuration_is_the_same_to_the_bit(
    heedful: Callable[..., Any],
    run_of: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    first = run_of(method)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "heedful.toml").write_text("[adapt]\neval_every = 3\nseed = 9\n")  # not for recipes
    done = heedful("run", first / "config.toml", "--out", "again", "--json")
    assert done.status == 0, done.err
    assert Path("again/metrics.jsonl").read_bytes() == (first / "metrics.jsonl").read_bytes()
    assert (
        Path("again/predictions_test.jsonl").read_bytes() == (first / "predictions_test.jsonl").read_bytes()
    )
    weights = "model.safetensors" if method == "full" else "adapter_model.safetensors"
    assert Path("again/best", weights).read_bytes() == (first / "best" / weights).read_bytes()
    assert Path("again/config.toml").read_bytes() == (first / "config.toml").read_bytes()


def test_set_changes_options(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    done = heedful(
        "run", run_of("lora"), "--set", "epochs=1", "seed=3", "--set", "lr=none", "--set", "method_options=rank=1",
        "--out", tmp_path / "r", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert json.loads(done.out)["seed"] == 3
    assert (
        max(json.loads(line)["epoch"] for line in (tmp_path / "r/metrics.jsonl").read_text().splitlines())
        == 1
    )
    assert "lr = 0.0005" in (tmp_path / "r/config.toml").read_text()
    assert json.loads((tmp_path / "r/best/adapter_config.json").read_text())["r"] == 1


def test_a_recipe_needs_only_what_differs(
    heedful: Callable[..., Any],
    tiny_bert: Path,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("recipe.toml").write_text(
        f'command = "adapt"\n[adapt]\nmodel = "{tiny_bert}"\ntask = "{tiny_task}"\n'
        'method = "head"\nepochs = 1\nmax-len = 32\nprecision = "float32"\nthreads = 1\nout = "made"\n'
    )
    assert heedful("run", "recipe.toml").status == 0
    assert Path("made/results.json").is_file()
    done = heedful("run", "recipe.toml")
    assert done.status == 2
    assert "--resume continues the run there, --overwrite replaces it" in done.err
    assert heedful("run", "recipe.toml", "--resume").status == 0
    assert heedful("run", "recipe.toml", "--overwrite").status == 0


@pytest.mark.parametrize(("recipe", "changes", "line"), [
    ('[adapt]\nmodel = "m"', [], "has no command"),
    ('command = "adopt"', [], 'unknown command "adopt"; did you mean "adapt"?'),
    ('command = "adapt"\n[adapt]\nmodel = "m"', [], "[adapt] has no task"),
    ('command = "adapt"\n[adapt]\nepoch = 3', [], 'unknown option "epoch"; did you mean "epochs"'),
    ('command = "adapt"\n[adpt]\nepochs = 3', [], 'unknown table or key "adpt"; did you mean "adapt"?'),
    ('command = "adapt"\n[adapt]\nepochs = "3"', [], 'recipe.toml: epochs "3": must be a whole number'),
    ('command = "adapt"\n[adapt]\nepochs = true', [], "epochs true: must be a whole number"),
    ('command = "adapt"\n[adapt]\nout = 3', [], "out 3: must be a path"),
    ('command = "adapt"\n[adapt]\nsplit = "random"', [], 'split "random": must be hash, first or none'),
    ('command = "adapt"\nadapt = 3', [], "adapt is not a table"),
    ('command = "adapt"\n[adapt', [], "recipe.toml: is not TOML"),
    ('command = "adapt"', ["lrr=3"], '--set: unknown option "lrr"; did you mean "lr"?'),
    ('command = "adapt"', ["lr"], 'must be option=value'),
    ('command = "adapt"', ["lr=fast"], '--set lr "fast": must be a number'),
    ('command = "adapt"', ["epochs=2.5"], '--set epochs "2.5": must be a whole number'),
])  # fmt: skip
def test_a_mistake_in_a_recipe_names_the_place_and_what_is_right(
    heedful: Callable[..., Any], tmp_path: Path, recipe: str, changes: list[str], line: str
) -> None:
    (tmp_path / "recipe.toml").write_text(recipe)
    done = heedful("run", tmp_path / "recipe.toml", *(part for c in changes for part in ("--set", c)))
    assert done.status == 2
    assert line in done.err
    assert len(done.err.splitlines()) == 1


@pytest.fixture
def homes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """./heedful.toml and the user's own."""
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    (home / "heedful").mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    return here / "heedful.toml", home / "heedful" / "heedful.toml"


def test_flags_beat_the_folders_defaults_which_beat_the_users_own(
    heedful: Callable[..., Any], homes: tuple[Path, Path], tiny_bert: Path, tiny_task: Path
) -> None:
    here, home = homes
    home.write_text(
        '[adapt]\nepochs = 1\nmethod = "lora"\nmethod_options = ["rank=2"]\nseed = 1\nmax_len = 32\n'
    )
    here.write_text('[adapt]\nseed = 2\nbatch-size = 64\nprecision = "float32"\n[check]\n')
    done = heedful("adapt", tiny_bert, tiny_task, "--batch-size", 32, "--threads", 1, "--out", "run")
    assert done.status == 0, done.err
    config = Path("run/config.toml").read_text()
    for line in (
        "epochs = 1",
        'method = "lora"',
        'method_options = ["rank=2"]',
        "seed = 2",
        "batch_size = 32",
    ):
        assert line in config.splitlines()


@pytest.mark.parametrize(("text", "line"), [
    ("[adapt]\nepoch = 3\n", "Did you mean --epochs?"),
    ("[adapt]\nlr = 'fast'\n", 'heedful.toml: lr "fast": must be a number'),
    ("[adopt]\nlr = 1\n", 'heedful.toml: unknown table "adopt"; did you mean "adapt"?'),
    ("adapt = 1\n", "heedful.toml: adapt is not a table"),
    ("[adapt\n", "heedful.toml: is not TOML"),
])  # fmt: skip
def test_a_mistake_in_a_persons_defaults_names_the_file(
    heedful: Callable[..., Any], homes: tuple[Path, Path], text: str, line: str
) -> None:
    homes[0].write_text(text)
    done = heedful("adapt", "minilm", "sst2")
    assert done.status == 2
    assert line in done.err
