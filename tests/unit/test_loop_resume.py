"""A run that was stopped and resumed ends with the same bits as one that never stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.runs.environment import environment
from heedful.runs.leases import Lease
from heedful.runs.processes import process_name
from heedful.training import checkpoint, loop, record, resume
from heedful.training.loop import Loop
from heedful.training.record import Finished
from heedful.training.signals import STOP_SIGNALS, StoppedError
from heedful.training.train import train_run
from tiny import make_model, make_task


class DiedError(Exception):
    """Stands for a death that leaves no time for anything."""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    root = tmp_path_factory.mktemp("tiny")
    return AdaptOptions(
        model=str(make_model(root / "model", words=20)), task=str(make_task(root / "task")), epochs=3,
        batch_size=8, lr=5e-3, max_len=32, precision="float32", threads=1,
    )  # fmt: skip


@pytest.fixture
def die_at(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let a run die, or receive a signal, in the given step; `every` makes a checkpoint at each step."""
    return partial(arrange, monkeypatch)


STEP, SECONDS = Loop.step, loop.CHECKPOINT_SECONDS


def arrange(
    patch: pytest.MonkeyPatch, number: int | None, sent: signal.Signals | None = None, *, every: bool = True
) -> None:
    def dying(self: Loop, at: int) -> None:
        if at == number and sent is None:
            raise DiedError
        if at == number and sent is not None:
            os.kill(os.getpid(), sent)
        STEP(self, at)

    patch.setattr(Loop, "step", dying)
    patch.setattr(loop, "CHECKPOINT_SECONDS", 0.0 if every else SECONDS)


def traces(folder: Path) -> dict[str, str]:
    """Everything that has to be the same, file by file."""
    last = max(checkpoint.steps(Run(folder)))
    files = [
        folder / "metrics.jsonl",
        folder / "predictions_dev.jsonl",
        folder / "predictions_test.jsonl",
        folder / "checks.json",
        *sorted(p for p in (folder / "best").rglob("*") if p.is_file()),
        folder / "checkpoints" / f"step-{last:08d}" / "weights.pt",
        folder / "checkpoints" / f"step-{last:08d}" / "optimizer.pt",
    ]
    return {str(path.relative_to(folder)): file_checksum(path) for path in files}


CASES: dict[str, dict[str, Any]] = {
    "full": {},
    "lora": {"method": "lora"},
    "head": {"method": "head"},
    "top-layers": {"method": "top-layers", "method_options": ("layers=1",), "train_rows": 56},
    "prompt": {"method": "prompt", "method_options": ("length=3",)},
    "prefix": {"method": "prefix", "method_options": ("length=3", "reparametrize=true", "hidden=5")},
    "bitfit": {"method": "bitfit", "optimizer": "sgd"},
    "contrastive": {"method": "contrastive", "epochs": None, "pool": "mean"},
    "joint": {"objective": "joint", "mlm_first": 3, "accumulate": 2},
    "rmsprop": {"optimizer": "rmsprop", "eval_every": 5, "class_weights": "balanced"},
    "muon": {"optimizer": "muon", "patience": 1, "eval_every": 3, "epochs": 4, "label_smoothing": 0.1},
}


@pytest.mark.parametrize("name", CASES)
def test_a_resumed_run_has_the_same_bits(
    name: str, base: AdaptOptions, tmp_path: Path, die_at: Callable[..., None]
) -> None:
    options = replace(base, **CASES[name])
    die_at(None, every=False)
    train_run(replace(options, out=tmp_path / "whole"))
    stopped = replace(options, out=tmp_path / "stopped", resume=True)
    die_at(4)
    with pytest.raises(DiedError):
        train_run(stopped)
    die_at(6, STOP_SIGNALS[0], every=False)
    with pytest.raises(StoppedError, match=r"stopped by SIG\w+ after step 7 of \d+; .*--resume") as caught:
        train_run(stopped)
    assert caught.value.status == 75
    assert checkpoint.steps(Run(tmp_path / "stopped"))[-1] == 7
    if name != "muon":  # which stops early
        die_at(13, every=False)
        with pytest.raises(DiedError):
            train_run(stopped)
    die_at(None, every=False)
    train_run(stopped)
    assert traces(tmp_path / "stopped") == traces(tmp_path / "whole")


@pytest.mark.parametrize("moment", ["save_best", "write_scored", "check_run_itself", "write_results"])
def test_a_death_after_training_loses_nothing(
    moment: str, base: AdaptOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.evaluation.scorer import LabelScorer
    from heedful.training import train as module

    options = replace(base, method="lora", epochs=1, out=tmp_path / "run", resume=True)
    places: dict[str, Any] = {"save_best": record, "write_scored": LabelScorer, "write_results": Run}
    place = places.get(moment, module)
    right = getattr(place, moment)

    def dying(*args: Any) -> Any:
        if moment != "write_results":
            right(*args)
        raise DiedError

    with monkeypatch.context() as patch:
        patch.setattr(place, moment, dying)
        with pytest.raises(DiedError):
            train_run(options)
    assert not Run(tmp_path / "run").has_results
    train_run(options)
    train_run(replace(options, out=tmp_path / "whole"))
    assert traces(tmp_path / "run") == traces(tmp_path / "whole")


def test_a_signal_outside_training_stops_at_once_with_the_same_status(
    base: AdaptOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*args: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr("heedful.training.train.check_run_itself", ask)
        with pytest.raises(StoppedError, match="stopped by SIGTERM; the same command with --resume"):
            train_run(replace(base, epochs=1, out=tmp_path))
    assert train_run(replace(base, epochs=1, out=tmp_path, resume=True)).results.splits["test"].n == 20
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_resuming_a_finished_run_gives_its_results_again(base: AdaptOptions, tmp_path: Path) -> None:
    first = train_run(replace(base, epochs=1, out=tmp_path))
    before = (tmp_path / "results.json").stat().st_mtime_ns
    again: Finished = train_run(replace(base, epochs=1, out=tmp_path, resume=True))
    assert again.results == first.results
    assert (tmp_path / "results.json").stat().st_mtime_ns == before
    with pytest.raises(UserError, match=r"was begun with --lr 0\.005, now it is 0\.5"):
        train_run(replace(base, epochs=1, lr=0.5, out=tmp_path, resume=True))


@pytest.fixture(scope="module")
def first_half(base: AdaptOptions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has died in its second epoch, with a checkpoint for each step."""
    out = tmp_path_factory.mktemp("half") / "run"
    with pytest.MonkeyPatch.context() as patch:
        arrange(patch, 11)
        with pytest.raises(DiedError):
            train_run(replace(base, out=out))
    return out


@pytest.fixture(scope="module")
def whole(base: AdaptOptions, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, never stopped."""
    return train_run(replace(base, out=tmp_path_factory.mktemp("whole") / "run")).folder


@pytest.fixture
def begun(base: AdaptOptions, first_half: Path, tmp_path: Path) -> AdaptOptions:
    """Ready to go on."""
    return replace(base, out=shutil.copytree(first_half, tmp_path / "run"), resume=True)


DIFFERENT: list[tuple[dict[str, Any], str]] = [
    ({"lr": 1e-3}, "--lr 0.005, now it is 0.001"),
    ({"batch_size": 4}, "--batch-size 8, now it is 4"),
    ({"seed": 3}, "--seed 0, now it is 3"),
    ({"method": "lora"}, "--method full, now it is lora"),
    ({"max_len": 16}, "--max-len 32, now it is 16"),
    ({"train_rows": 20}, "was begun without --train-rows, now it is 20"),
    ({"precision": "bfloat16"}, "--precision float32, now it is bfloat16"),
]


def test_other_options_are_refused_by_name(begun: AdaptOptions) -> None:
    assert begun.out is not None
    before = {p: p.stat().st_mtime_ns for p in begun.out.rglob("*.*") if ".lease" not in p.name}
    for changes, words in DIFFERENT:
        with pytest.raises(UserError, match=words):
            train_run(replace(begun, **changes))
    assert {p: p.stat().st_mtime_ns for p in begun.out.rglob("*.*") if ".lease" not in p.name} == before


@pytest.mark.usefixtures("printed_messages")
def test_what_changes_bits_is_said(
    begun: AdaptOptions, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert begun.out is not None
    other = environment(threads=1, device="cpu", precision="float32")
    Run(begun.out).write_environment(replace(other, cpu="Abacus 3", packages={"torch": "0.1"}))
    monkeypatch.setattr(
        "heedful.training.train.check_run_itself", lambda *args: (_ for _ in ()).throw(DiedError)
    )
    before = torch.get_num_threads()
    with pytest.raises(DiedError):
        train_run(replace(begun, threads=2))
    torch.set_num_threads(before)
    said = capsys.readouterr().err
    assert "was begun with 1 threads, goes on with 2: its bits will not be" in said
    assert "processor Abacus 3 is now" in said
    assert "torch 0.1 is now" in said


def test_threads_and_precision_are_those_of_the_beginning(begun: AdaptOptions) -> None:
    found = resume.restore_stored_options(replace(begun, threads=None, precision="auto"), {**stored(begun)})
    assert (found.threads, found.precision) == (1, "float32")


def stored(options: AdaptOptions) -> dict[str, Any]:
    assert options.out is not None
    return resume.stored_options(options.out)


def test_other_data_is_refused(begun: AdaptOptions, tmp_path: Path) -> None:
    rows = (Path(begun.task) / "train.csv").read_text("utf-8")
    try:
        (Path(begun.task) / "train.csv").write_text(
            rows.replace(",yes", ",YES").replace(",no", ",yes").replace(",YES", ",no"), "utf-8"
        )
        with pytest.raises(UserError, match="was made with other data"):
            train_run(begun)
    finally:
        (Path(begun.task) / "train.csv").write_text(rows, "utf-8")


def test_two_processes_never_work_on_one_run(begun: AdaptOptions) -> None:
    assert begun.out is not None
    place = begun.out / "checkpoints" / ".lease"
    lease = Lease.claim(place, "elsewhere process 7", 60)
    assert lease is not None
    for options in (begun, replace(begun, resume=False, overwrite=True)):
        with pytest.raises(UserError, match=r"run: another process \(elsewhere process 7\) is working on"):
            train_run(options)
    assert len(checkpoint.steps(Run(begun.out))) >= 2
    lease.release()
    train_run(begun)


def test_a_dead_process_on_this_machine_blocks_nobody(begun: AdaptOptions) -> None:
    assert begun.out is not None
    place = begun.out / "checkpoints" / ".lease"
    assert Lease.claim(place, process_name(os.getpid()).replace("begun ", "begun 1"), 600)
    train_run(begun)


def test_a_run_that_was_taken_over_stops(begun: AdaptOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loop, "step", lambda self, step: self.lost.set())
    with pytest.raises(UserError, match="another process has taken this run over"):
        train_run(begun)


def damage(folder: Path) -> None:
    data = bytearray((folder / "weights.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "weights.pt").write_bytes(data)


@pytest.mark.usefixtures("printed_messages")
@pytest.mark.parametrize("which", ["last", "best", "all"])
def test_damaged_checkpoints_cost_time_but_no_bits(
    which: str, begun: AdaptOptions, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert begun.out is not None
    run = Run(begun.out)
    steps = checkpoint.steps(run)
    last = run.checkpoints / f"step-{steps[-1]:08d}"
    best = json.loads((last / "progress.json").read_text("utf-8"))["best_step"]
    assert best == 8
    hit = {"last": steps[-1:], "best": [best], "all": steps}[which]
    for step in hit:
        damage(run.checkpoints / f"step-{step:08d}")
    train_run(begun)
    said = capsys.readouterr().err
    assert "weights.pt does not have the content that was written; using the checkpoint before it" in said
    assert ("starting from the beginning" in said) == (which != "last")
    assert traces(begun.out) == traces(whole)


def test_the_best_of_each_kept_checkpoint_is_kept_too(tmp_path: Path) -> None:
    run = Run.create(tmp_path)
    for step, best in ((1, 1), (2, 1), (3, 1), (4, 4)):
        checkpoint.save(
            run, checkpoint.TrainingState(step=step, best_step=best), {"w": torch.full((3,), float(step))}, {}
        )
    assert checkpoint.steps(run) == [1, 3, 4]
    shutil.rmtree(run.checkpoints / "step-00000004")
    found = checkpoint.load_latest(run)
    assert found is not None
    assert checkpoint.load_weights(run, found[0].best_step)["w"][0] == 1


def test_the_configuration_makes_the_run_again(
    base: AdaptOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.runs.config import load_run_config

    monkeypatch.chdir(Path(base.model).parent)
    options = replace(base, model="model", task="task", threads=None, lr=None, method="lora", epochs=2,
                      method_options=("rank=2", "alpha=3"), train_rows=31)  # fmt: skip
    before = torch.get_num_threads()
    train_run(replace(options, out=tmp_path / "first"))
    monkeypatch.chdir(tmp_path)
    train_run(replace(load_run_config(tmp_path / "first"), out=tmp_path / "again"))
    torch.set_num_threads(before)
    assert Run(tmp_path / "first").read_config() == Run(tmp_path / "again").read_config()
    first, again = traces(tmp_path / "first"), traces(tmp_path / "again")
    for trace in (first, again):  # they name the base as it was given
        for name in ("best/heedful.json", "best/README.md", "best/adapter_config.json"):
            trace.pop(name, None)
    assert first == again
    assert (
        Run(tmp_path / "first").read_environment().threads
        == stored(replace(options, out=tmp_path / "first"))["threads"]
    )


def test_a_measured_precision_is_replayed_and_never_measured_again(
    base: AdaptOptions, tmp_path: Path, die_at: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.runs.config import load_run_config
    from heedful.training import precision

    def answer(faster: str) -> None:
        speeds = {"float32": 2.0, "bfloat16": 2.0, faster: 1.0}
        monkeypatch.setattr(precision, "measure_precision", lambda device: {**speeds, "finite": True})

    monkeypatch.setattr("heedful.training.machine.begin_measurement", lambda *args: None)
    options = replace(base, precision="auto", epochs=2)
    answer("float32")
    train_run(replace(options, out=tmp_path / "whole"))
    stopped = replace(options, out=tmp_path / "stopped", resume=True)
    die_at(4)
    with pytest.raises(DiedError):
        train_run(stopped)
    die_at(None, every=False)
    answer("bfloat16")  # the opposite
    train_run(stopped)
    assert traces(tmp_path / "stopped") == traces(tmp_path / "whole")
    train_run(replace(load_run_config(tmp_path / "whole"), out=tmp_path / "again"))
    assert traces(tmp_path / "again") == traces(tmp_path / "whole")
    train_run(replace(options, out=tmp_path / "other"))
    assert Run(tmp_path / "other").read_environment().precision == "bfloat16"
    assert traces(tmp_path / "other") != traces(tmp_path / "whole")
