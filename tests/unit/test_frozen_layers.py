"""Adapters do no work below the lowest layer that they change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from heedful import checkpoints
from heedful.errors import UserError
from heedful.methods import make, read_adapter, write_adapter
from heedful.models import Classifier
from heedful.models.blocks import Block
from heedful.objectives import ClassifyTopLayers
from heedful.options.training import AdaptOptions
from heedful.training.build import build_job
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    root = tmp_path_factory.mktemp("frozen")
    return AdaptOptions(
        model=str(make_model(root / "model")), task=str(make_task(root / "task")), precision="float32",
        threads=1, max_len=32, lr=5e-3, epochs=2, batch_size=8, method="lora", head_start="random",
    )  # fmt: skip


def make_classifier(folder: str, name: str, **values: Any) -> Classifier:
    torch.manual_seed(0)
    model = checkpoints.load(folder, head="classify", n_classes=2)
    assert isinstance(model, Classifier)
    make(name, **values).attach(model)
    return model.train()


def count_products(model: Classifier) -> tuple[int, int]:
    """Return the operations of the matrix products of one step, forward and backward."""
    ids = torch.arange(5, 29).view(2, 12)
    with FlopCounterMode(display=False) as forward:
        logits = model(ids, torch.ones_like(ids))
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("name", ["lora", "prefix", "prompt"])
def test_no_gradient_goes_below_the_lowest_trained_parameter(options: AdaptOptions, name: str) -> None:
    model = make_classifier(options.model, name, **({} if name == "lora" else {"length": 4}))
    inputs = []
    hooks = [
        layer.register_forward_pre_hook(lambda _, x: inputs.append(x[0].requires_grad))
        for layer in model.body.stack.layers
    ]
    count_products(model)
    for hook in hooks:
        hook.remove()
    assert inputs == ([True, True] if name == "prompt" else [False, True])
    frozen = [p for p in model.parameters() if not p.requires_grad]
    assert frozen
    assert all(p.grad is None for p in frozen)


def test_adapters_in_the_upper_layers_halve_the_work(options: AdaptOptions) -> None:
    everywhere, upper = (make_classifier(options.model, "lora", layers=layers) for layers in (0, 1))
    (_, whole), (_, part) = count_products(everywhere), count_products(upper)
    assert part < 0.7 * whole
    full = make_classifier(options.model, "full")
    assert whole < count_products(full)[1]


def test_the_layers_below_the_adapters_run_once(
    options: AdaptOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upper = replace(options, method_options=("layers=1",), out=tmp_path / "run")
    job = build_job(upper)
    assert isinstance(job.objective, ClassifyTopLayers)
    calls = {0: 0, 1: 0}
    layers = list(job.model.body.stack.layers)
    plain = Block.forward

    def counted(self: Block, *args: Any, **kwargs: Any) -> torch.Tensor:
        calls[layers.index(self)] += 1
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(Block, "forward", counted)
    part = job.objective.prepare(job.objective.rows[:8], 0)[0]
    losses = job.objective.losses(job.model, part)
    assert calls == {0: 0, 1: 1}
    next(iter(losses.sums.values())).backward()
    monkeypatch.undo()
    done = train_run(upper)
    assert done.results.splits["test"].value is not None


def test_an_adapter_of_the_upper_layers_is_read_back(options: AdaptOptions, tmp_path: Path) -> None:
    model = make_classifier(options.model, "lora", layers=1, rank=2).eval()
    with torch.no_grad():
        for parameter in model.method.trainable(model).values():
            parameter.copy_(torch.randn_like(parameter))
    write_adapter(model, model.method, tmp_path / "adapter", options.model)
    torch.manual_seed(0)
    again = checkpoints.load(options.model, head="classify", n_classes=2)
    read_adapter(tmp_path / "adapter", again)
    ids = torch.arange(5, 29).view(2, 12)
    with torch.no_grad():
        assert torch.equal(model(ids), again.eval()(ids))
    assert again.method.options()["layers"] == 1


def test_more_layers_than_there_are_is_refused(options: AdaptOptions) -> None:
    with pytest.raises(UserError, match="lora: layers 3: this model has 2"):
        make_classifier(options.model, "lora", layers=3)
