"""The parts of the loop: schedules, optimizers, precision, checkpoints."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from heedful import models
from heedful.errors import UserError
from heedful.options.training import LoopOptions
from heedful.runs.directory import Run
from heedful.training import checkpoint, machine, optimizers, precision, schedules
from heedful.training.optimizers.muon import orthogonalize


@pytest.mark.parametrize("name", ["linear", "cosine", "wsd", "constant"])
@given(total=st.integers(1, 300), warmup=st.integers(0, 350))
def test_a_schedule_rises_in_warm_up_and_never_rises_again(name: str, total: int, warmup: int) -> None:
    factors = [schedules.factor(name, step, total, warmup) for step in range(total)]
    assert 0 < factors[0] <= 1
    assert all(a < b for a, b in pairwise(factors[:warmup]))
    after = factors[warmup:]
    assert all(a >= b for a, b in pairwise(after))
    assert all(0 <= f <= 1 for f in factors)
    if warmup < total and name != "constant":
        assert factors[-1] < 1 or total - warmup == 1 or (name == "wsd" and total - warmup < 6)


def test_warm_up_is_a_share_or_a_number_of_steps() -> None:
    assert schedules.warmup_steps(0.06, 1000) == 60
    assert schedules.warmup_steps(30, 1000) == 30
    with pytest.raises(UserError, match="--warmup -1"):
        schedules.warmup_steps(-1, 1000)
    with pytest.raises(UserError, match='did you mean "linear"'):
        schedules.factor("liner", 0, 10, 0)


def test_decay_goes_by_what_a_parameter_is_not_by_its_name() -> None:
    model = models.load("bert-tiny", head="classify", vocab_size=50)
    found = optimizers.group_parameters(model, dict(model.named_parameters()), 0.5)
    decayed = {id(p) for group in found if group["weight_decay"] for p in group["params"]}
    everything = [p for group in found for p in group["params"]]
    assert len(everything) == len(list(model.parameters()))
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            expected = isinstance(module, nn.Linear) and name == "weight"
            assert (id(parameter) in decayed) == expected


def problem() -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4))
    return model, torch.randn(64, 8), torch.randint(0, 4, (64,))


@pytest.mark.parametrize(("name", "lr"), [("adamw", 1e-2), ("sgd", 0.1), ("rmsprop", 1e-2), ("muon", 5e-2)])
def test_every_optimizer_learns_and_continues_from_its_state(name: str, lr: float) -> None:
    def run(steps: int, stop: int | None = None) -> tuple[list[float], list[torch.Tensor]]:
        model, x, y = problem()
        optimizer = optimizers.make(
            name, optimizers.group_parameters(model, dict(model.named_parameters()), 0.01), lr
        )
        losses = []
        for step in range(steps):
            if step == stop:
                weights, state = [p.detach().clone() for p in model.parameters()], optimizer.state_dict()
                model = problem()[0]
                with torch.no_grad():
                    for p, w in zip(model.parameters(), weights, strict=True):
                        p.copy_(w)
                optimizer = optimizers.make(
                    name, optimizers.group_parameters(model, dict(model.named_parameters()), 0.01), lr
                )
                optimizer.load_state_dict(state)
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
        return losses, [p.detach() for p in model.parameters()]

    losses, whole = run(60)
    assert losses[-1] < 0.8 * losses[0]
    _, resumed = run(60, stop=23)
    for a, b in zip(whole, resumed, strict=True):
        assert torch.equal(a, b)


def test_muon_makes_its_update_orthogonal() -> None:
    torch.manual_seed(0)
    for shape in ((8, 20), (20, 8), (16, 16)):
        values = torch.linalg.svdvals(orthogonalize(torch.randn(shape), 5))
        assert values.min() > 0.4
        assert values.max() < 1.4


def test_an_unknown_optimizer_lists_the_nearest() -> None:
    with pytest.raises(UserError, match='did you mean "adamw"'):
        optimizers.make("adam", [], 1.0)


@pytest.mark.parametrize(("code", "words"), [
    ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "died of signal 4"),
    ("raise SystemExit(3)", "gave an error"),
])  # fmt: skip
def test_a_probe_that_dies_means_float32(code: str, words: str) -> None:
    assert words in str(precision.probe(torch.device("cpu"), code)["failed"])


def test_precision_is_measured_once_and_decides_by_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path))
    calls = []

    def fake(device: torch.device) -> dict[str, object]:
        calls.append(device)
        return {"float32": 1.0, "bfloat16": 100.0, "finite": True}

    monkeypatch.setattr(precision, "probe", fake)
    cpu = torch.device("cpu")
    chosen, notice = precision.choose_precision("auto", cpu)
    assert chosen == "float32"
    assert notice is not None
    assert "0.01 times its speed" in notice
    assert precision.choose_precision("auto", cpu)[0] == "float32"
    assert len(calls) == 1
    assert precision.choose_precision("bfloat16", cpu) == ("bfloat16", None)
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(precision, "probe", lambda device: {"float32": 2.0, "bfloat16": 1.0, "finite": True})
    assert precision.choose_precision("auto", cpu) == ("bfloat16", None)


@pytest.mark.usefixtures("printed_messages")
def test_the_runs_of_one_process_tell_of_their_precision_once(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    found = {"float32": 1.0, "bfloat16": 3.7, "finite": True}
    monkeypatch.setattr(precision, "measure_precision", lambda device: found)
    machine.notice_once.cache_clear()
    for _ in range(3):
        assert machine.resolve_machine(LoopOptions(device="cpu", threads=1)).precision == "float32"
    assert capfd.readouterr().err.count("precision: float32, because bfloat16") == 1


def test_checkpoints_keep_the_last_two_and_the_best(tmp_path: Path) -> None:
    run = Run.create(tmp_path)
    for step in range(1, 7):
        progress = checkpoint.TrainingState(step=step, best_step=2 if step >= 2 else 1)
        checkpoint.save(run, progress, {"w": torch.full((3,), float(step))}, {"state": {}})
    assert checkpoint.steps(run) == [2, 5, 6]
    found = checkpoint.load_latest(run)
    assert found is not None
    assert found[0].step == 6
    assert found[0].best_value == float("-inf")


@pytest.mark.usefixtures("printed_messages")
def test_a_damaged_checkpoint_is_passed_over_and_said_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.create(tmp_path)
    for step in (1, 2):
        checkpoint.save(
            run, checkpoint.TrainingState(step=step, best_step=1), {"w": torch.full((3,), float(step))}, {}
        )
    path = run.checkpoints / "step-00000002" / "weights.pt"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    found = checkpoint.load_latest(run)
    assert found is not None
    assert found[0].step == 1
    assert "using the checkpoint before it" in capsys.readouterr().err
