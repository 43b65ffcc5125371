"""A function that is called from Python leaves the caller's process as it was."""

from __future__ import annotations

import ctypes
import logging
import os
import random
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.process_state import is_guest, keep_process_state, name_keywords
from tiny import make_model, make_task

QUICK: dict[str, Any] = {"epochs": 1, "max_len": 16, "precision": "float32", "threads": 2}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_task(tmp_path_factory.mktemp("tasks") / "task", 24)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("texts") / "notes.txt"
    path.write_text("the sun is warm and the rain is cold\n" * 40)
    return path


STATES: dict[str, Callable[[], Any]] = {
    "threads": torch.get_num_threads,
    "torch": lambda: torch.get_rng_state().tolist(),
    "numpy": lambda: str(np.random.get_state()),
    "random": random.getstate,
    "signals": lambda: [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)],
    "warnings": lambda: list(warnings.filters),
    "environment": lambda: dict(os.environ),
    "handlers": lambda: (logging.getLogger("heedful").handlers[:], logging.getLogger().handlers[:]),
    "python threads": threading.active_count,
    "gradients": torch.is_grad_enabled,
    "default type": torch.get_default_dtype,
}


def test_every_call_leaves_the_process_as_it_was(model: Path, task: Path, text: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    run = tmp_path / "run"

    def refused() -> None:
        with pytest.raises(ValueError, match="is not empty"):
            heedful.adapt(model, task, out=run, **QUICK)

    calls: dict[str, Callable[[], Any]] = {
        "adapt": lambda: heedful.adapt(model, task, out=run, **QUICK),
        "load": lambda: heedful.load(run).predict(["warm"]),
        "evaluate": lambda: heedful.evaluate(run, split="dev"),
        "pretrain": lambda: heedful.pretrain(
            "char-gpt", text, steps=2, dev_share=0.0, batch_size=2, block=16, out=tmp_path / "lm", threads=2, precision="float32"
        ),
        "fit": lambda: heedful.TextClassifier(model, **QUICK).fit(["warm", "cold"] * 8, ["a", "b"] * 8).predict(["warm"]),
        "mistake": refused,
    }  # fmt: skip
    for call, function in calls.items():
        before = {name: state() for name, state in STATES.items()}
        function()
        for name, state in STATES.items():
            assert state() == before[name], (call, name)


def test_malloc_is_left_alone(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.training import machine

    asked = []
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda name: asked.append(name) or ctypes.CDLL(name))
    options: dict[str, Any] = {
        "steps": 1,
        "dev_share": 0.0,
        "batch_size": 2,
        "block": 16,
        "threads": 1,
        "precision": "float32",
    }
    heedful.pretrain("char-gpt", text, out=tmp_path / "a", **options)
    assert not asked


def test_the_state_is_put_back_after_an_exception() -> None:
    before = random.getstate()

    def work() -> None:
        assert is_guest()
        random.seed(1)
        torch.manual_seed(1)
        os.environ["HEEDFUL_TRACE"] = "1"
        warnings.simplefilter("ignore")
        raise KeyError

    with pytest.raises(KeyError), keep_process_state():
        work()
    assert not is_guest()
    assert random.getstate() == before
    assert "HEEDFUL_TRACE" not in os.environ


@pytest.mark.parametrize(("message", "expected"), [
    ("corpus: has no dev; --dev names a text, --dev-share 0 does without",
     "corpus: has no dev; dev names a text, dev_share=0 does without"),
    ("runs/a: is not finished; heedful adapt --resume --out runs/a continues it",
     "runs/a: is not finished; heedful adapt --resume --out runs/a continues it"),
])  # fmt: skip
def test_errors_name_keywords_and_leave_commands_as_they_are(message: str, expected: str) -> None:
    assert name_keywords(message) == expected
    with pytest.raises(heedful.UserError) as caught, keep_process_state():
        raise heedful.UserError(message)
    assert str(caught.value) == expected
