"""`heedful.adapt` and `heedful.load`: the command line's options and defaults, from Python."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import heedful
from heedful.errors import UserError
from heedful.options.training import AdaptOptions


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("task") / "notes.csv"
    rows = [f"{'warm sun' if i % 2 else 'cold rain'} today {i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from heedful import checkpoints, models, text
    from heedful.models import PRESETS

    folder = tmp_path_factory.mktemp("model")
    tokenizer = text.train(
        ["warm sun cold rain today 0 1 2 3 4 5 6 7 8 9"] * 5, kind="wordpiece", vocab_size=80, sentinels=0
    )
    tokenizer.save(folder / "t")
    sizes = {"d_model": 32, "d_ff": 64, "d_head": 16, "max_len": 32, "n_layers": 1}
    config = PRESETS["bert-tiny"].config.replace(vocab_size=tokenizer.vocab_size, **sizes)
    return checkpoints.export(models.build(config), folder / "m", tokenizer=folder / "t")


def test_every_public_name_is_there() -> None:
    for name in heedful.__all__:
        assert getattr(heedful, name) is not None
        assert name in dir(heedful)
    for name in heedful.SUBPACKAGES:
        assert inspect.ismodule(getattr(heedful, name))
    with pytest.raises(AttributeError, match="no attribute 'adopt'"):
        heedful.adopt  # noqa: B018


def test_the_signature_shows_the_command_lines_options_and_defaults() -> None:
    shown = inspect.signature(heedful.adapt).parameters
    assert list(shown)[:2] == ["model", "task"]
    options = {f.name: f.default for f in fields(AdaptOptions) if f.name not in ("model", "task")}
    assert {name: p.default for name, p in shown.items() if name in options} == options
    assert len(shown) == len(options) + 2


def test_adapt_and_load_work_together(model: Path, task: Path, tmp_path: Path) -> None:
    done = heedful.adapt(
        model, task, method="lora", method_options={"rank": 2}, epochs=3, lr=0.02, max_len=16, threads=1,
        precision="float32", out=tmp_path / "run",
    )  # fmt: skip
    assert done.folder == tmp_path / "run"
    assert done.results.method == "lora"
    assert set(done.results.splits) == {"dev", "test"}
    assert done.checks.checks
    adapted = heedful.load(done.folder)
    assert adapted.labels == ["no", "yes"]
    first, second = adapted.predict(["warm sun today", "cold rain today"])
    assert first.label in adapted.labels
    assert first.confidence == max(first.probabilities.values())
    assert sum(second.probabilities.values()) == pytest.approx(1)
    assert adapted.predict([]) == []


def test_the_same_options_give_the_command_lines_run(
    model: Path, task: Path, tmp_path: Path, heedful: object
) -> None:
    import heedful as package

    package.adapt(model, task, epochs=1, max_len=16, threads=1, precision="float32", out=tmp_path / "a")
    options = ("--epochs", 1, "--max-len", 16, "--threads", 1, "--precision", "float32")
    assert heedful("adapt", model, task, *options, "--out", tmp_path / "b").status == 0  # type: ignore[operator]
    for name in ("metrics.jsonl", "config.toml", "predictions_test.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(("options", "line"), [
    ({"epoch": 3}, 'heedful.adapt: unknown option "epoch"; did you mean "epochs"'),
    ({"epochs": "3"}, 'heedful.adapt: epochs "3": must be a whole number'),
    ({"out": 3}, "heedful.adapt: out 3: must be a path"),
    ({"head": "wide"}, 'heedful.adapt: head "wide": must be auto, linear or family'),
    ({"method": "lora", "method_options": {"rnk": 1}}, 'unknown option of lora "rnk"'),
])  # fmt: skip
def test_a_wrong_option_is_told_as_on_the_command_line(
    model: Path, task: Path, options: dict[str, object], line: str
) -> None:
    with pytest.raises(UserError) as told:
        heedful.adapt(model, task, **options)
    assert line in str(told.value)


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run"):
        heedful.load(tmp_path)


def test_asking_for_adapt_does_not_import_torch() -> None:
    code = "import sys, heedful; heedful.adapt; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
