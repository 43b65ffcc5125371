"""Within one call chain every frame has a name of its own, so that a traceback reads like a sentence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from tests.tiny import make_model, make_task

import heedful as package

SOURCE = str(Path(package.__file__).parent)
PUBLIC = {
    ("evaluate", "Classify.evaluate"), ("evaluate", "TextObjective.evaluate"),
    ("RunResult.predict", "Predictor.predict"), ("TextClassifier.predict_proba", "Predictor.predict_proba"),
}  # fmt: skip
"""Both names are documented: users call the first, and the second is part of an extension point."""


def is_named(code: CodeType) -> bool:
    """Whether a function is ours and has a name: no lambda, no special method.

    Every part of a model computes with torch's `forward`, and calls that of its own parts.
    """
    named = not code.co_name.startswith(("<", "__")) and code.co_name != "forward"
    return named and code.co_filename.startswith(SOURCE)


@contextmanager
def watch_calls(repeated: set[tuple[str, str]]) -> Iterator[None]:
    """Collect each call of a function while another one of the same name is running.

    A method may call the one that it overrides, with `super()`: that is of the same object.
    """
    named: dict[CodeType, bool] = {}

    def look(frame: FrameType, *_: Any) -> None:
        code, outer = frame.f_code, frame.f_back
        if code not in named:
            named[code] = is_named(code)
        if not named[code]:
            return
        while outer is not None:
            same_name = outer.f_code.co_name == code.co_name and outer.f_code is not code
            if same_name and outer.f_code.co_filename.startswith(SOURCE):
                owner = frame.f_locals.get("self")
                if owner is None or outer.f_locals.get("self") is not owner:
                    repeated.add((outer.f_code.co_qualname, code.co_qualname))
            outer = outer.f_back

    former = sys.gettrace()
    sys.settrace(look)  # called once per call: it returns None, which asks for no lines
    try:
        yield
    finally:
        sys.settrace(former)


def test_no_two_frames_of_a_call_chain_have_the_same_name(
    heedful: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))  # so that everything is made here
    model, task = make_model(tmp_path / "model"), make_task(tmp_path / "task")
    tiny = {"n_layers": 1, "d_model": 16, "n_heads": 2}
    text = tmp_path / "task" / "train.csv"
    repeated: set[tuple[str, str]] = set()
    with watch_calls(repeated):
        lora = tmp_path / "lora"
        assert heedful("adapt", model, task, "--method", "lora", "--epochs", 1, "--out", lora).status == 0
        assert heedful("evaluate", lora, "--split", "dev").status == 0
        assert heedful("predict", lora, "--in", text, "--out", tmp_path / "labeled.csv").status == 0
        assert heedful("report", lora, "--out", tmp_path / "report.html").status == 0
        run = package.pretrain(
            "char-gpt",
            text,
            tokenizer="char",
            steps=2,
            block=16,
            model_options=tiny,
            out=tmp_path / "pretrained",
        )
        assert run.metrics().num_rows
        assert heedful("evaluate", run.folder, "--sentences", "a film").status == 0
        assert heedful("generate", run.folder, "a", "--max-tokens", 2).status == 0
        assert package.adapt(model, task, method="head", epochs=1, out=tmp_path / "head").predict(["a film"])
    assert repeated <= PUBLIC
