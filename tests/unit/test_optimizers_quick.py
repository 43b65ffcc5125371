"""Optimizers that work without torch's compiler take the same steps."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from heedful.training.optimizers import OPTIMIZERS, make, quick


def take_steps(optimizer: torch.optim.Optimizer, parameters: list[torch.nn.Parameter]) -> None:
    for step in range(4):
        for number, parameter in enumerate(parameters):
            draw = torch.Generator().manual_seed(10 * step + number)
            parameter.grad = torch.randn(parameter.shape, generator=draw)
        optimizer.step()
        assert torch.is_grad_enabled()
        optimizer.zero_grad(set_to_none=True)


def groups() -> tuple[list[torch.nn.Parameter], list[dict[str, object]]]:
    torch.manual_seed(0)
    weight, bias = (torch.nn.Parameter(torch.randn(shape)) for shape in ((8, 6), (6,)))
    return [weight, bias], [
        {"params": [weight], "weight_decay": 0.1, "kind": "matrix"},
        {"params": [bias], "weight_decay": 0.0, "kind": "plain"},
    ]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_steps_have_the_same_bits(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, our_groups = groups()
    theirs, their_groups = groups()
    monkeypatch.setattr(quick, "COMPILER", "a compiler that nobody has imported")
    one = make(name, our_groups, 0.01)
    other = OPTIMIZERS.find(name).build(their_groups, 0.01)
    take_steps(one, ours)
    take_steps(other, theirs)
    for mine, its in zip(ours, theirs, strict=True):
        assert torch.equal(mine, its)
    again = make(name, groups()[1], 0.01)
    again.load_state_dict(one.state_dict())


def test_the_compiler_is_not_imported() -> None:
    code = (
        "import sys, torch\n"
        "from heedful.training.optimizers import make\n"
        "weight = torch.nn.Parameter(torch.ones(3, 3))\n"
        "for name in ('adamw', 'sgd', 'rmsprop'):\n"
        "    optimizer = make(name, [{'params': [weight], 'weight_decay': 0.0, 'kind': 'plain'}], 0.1)\n"
        "    weight.grad = torch.ones(3, 3)\n"
        "    optimizer.step()\n"
        "    optimizer.zero_grad()\n"
        "    optimizer.load_state_dict(optimizer.state_dict())\n"
        "print('torch._dynamo' in sys.modules, bool((weight < 1).all()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
