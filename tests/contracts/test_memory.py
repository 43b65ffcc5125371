"""Peak memory at length 4,096, forward and backward, of the mechanisms that promise not to make t x s (x d)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LENGTH = 4096
CHILD = """
import json, resource, sys
import torch
from heedful.attention import Mask, make

name, heads, width, length, causal, options = json.loads(sys.argv[1])
torch.set_num_threads(1)
mechanism = make(name, n_heads=heads, d_head=width, max_len=length, **options)

def run(t):
    q, k, v = (torch.randn(1, heads, t, width, requires_grad=True) for _ in range(3))
    mechanism(q, k, v, Mask(causal=causal)).sum().backward()

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024

run(256)
before = peak()
run(length)
print(json.dumps(peak() - before))
"""


def growth_mb(name: str, heads: int, width: int, causal: bool, **options: object) -> float:
    """How much a child process's peak resident memory rises by one pass at length 4,096."""
    job = json.dumps([name, heads, width, LENGTH, causal, options])
    done = subprocess.run([sys.executable, "-c", CHILD, job], capture_output=True, text=True, check=True)
    return float(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.parametrize(
    ("name", "heads", "width", "bound", "options"),
    [
        # One tensor of t x s x d would be 537 MB, one of t x s 67 MB; q, k, v and their gradients are 3 MB.
        ("additive", 1, 8, 40, {}),
        # One tensor of t x s for 8 heads would be 537 MB; q, k, v, the output and their gradients are 67 MB.
        ("linformer", 8, 64, 130, {"rank": 256}),
        ("bigbird", 8, 64, 130, {}),
        ("performer", 8, 64, 180, {"features": 256}),
    ],
)
def test_peak_memory_stays_under_its_bound(
    name: str, heads: int, width: int, bound: float, options: dict[str, int]
) -> None:
    for causal in (False, True):
        if causal and name == "linformer":
            continue
        assert growth_mb(name, heads, width, causal, **options) < bound


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
def test_the_measure_sees_a_mechanism_that_keeps_its_weights() -> None:
    """The same measure on explicit weights of 8 heads finds at least one t x s; otherwise the bounds say nothing."""
    assert growth_mb("zero_scores", 2, 64, True, unsafe=True) > 130
