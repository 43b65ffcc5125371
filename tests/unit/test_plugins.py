"""Registries name what they hold without importing it, and take objects from installed packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.plugins import Registry, installed


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package with two entry points, one of which cannot be imported."""
    (tmp_path / "outside_package.py").write_text("THING = 42\n")
    info = tmp_path / "outside_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[heedful.things]\nforty_two = outside_package:THING\nbroken = outside_package:MISSING\nown = outside_package:THING\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    installed.cache_clear()
    yield
    installed.cache_clear()
    sys.modules.pop("outside_package", None)


def things() -> Registry[int]:
    return Registry("thing", {"own": "math:pi"})


def test_names_are_listed_without_importing_the_package(outside):
    assert list(things()) == ["own", "forty_two", "broken"]
    assert "forty_two" in things()
    assert "outside_package" not in sys.modules


def test_an_outside_object_is_imported_when_it_is_used(outside):
    registry = things()
    assert registry.find("forty_two") == 42
    assert registry.package("forty_two") == "outside-package"


def test_a_built_in_name_cannot_be_replaced(outside):
    assert things()["own"] != 42
    assert things().package("own") == "heedful"


def test_a_package_that_cannot_be_imported_is_named_in_one_line(outside):
    with pytest.raises(UserError, match='thing "broken" of the package outside-package cannot be imported'):
        things().find("broken")


def test_a_script_can_add_an_object_for_its_own_process():
    registry = things()
    registry["mine"] = 7
    assert list(registry) == ["own", "mine"]
    assert "mine" in registry
    assert len(registry) == 2
    assert registry.find("mine") == 7


def test_an_unknown_name_lists_the_nearest(outside):
    with pytest.raises(UserError, match='unknown thing "forty_too"; did you mean "forty_two"'):
        things().find("forty_too")


def test_importing_the_registry_imports_no_torch():
    code = "import sys, heedful.plugins; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_names_are_listed_and_a_tokenizer_is_loaded_without_torch():
    code = (
        "import sys, heedful\n"
        "from heedful.training.optimizers import OPTIMIZERS\n"
        "print(*heedful.methods.METHODS, *OPTIMIZERS, *heedful.checkpoints.FAMILIES)\n"
        "print(*heedful.attention.MECHANISMS)\n"
        "heedful.text.load('minilm')\n"
        "print('torch' in sys.modules)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == [
        "full head top-layers prompt prefix lora bitfit contrastive adamw sgd rmsprop muon bert distilbert roberta gpt2 t5",
        "softmax argmax additive linformer bigbird performer synthesizer zero_after zero_scores",
        "False",
    ]
