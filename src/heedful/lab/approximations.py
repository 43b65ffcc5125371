"""How far Performer, Linformer and BigBird are from attention of everything to everything, in numbers."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from heedful.attention import Mask
from heedful.attention.bigbird import Bigbird
from heedful.attention.linformer import Linformer
from heedful.data.random import stream
from heedful.lab.arrays import Array, array, compute_output, compute_weights, mechanism, tensor

FEATURES = (64, 128, 256, 512, 1024, 2048)
KINDS: dict[str, dict[str, Any]] = {
    f"{kind}, {directions}": {"kind": kind, "orthogonal": directions == "orthogonal"}
    for kind in ("positive", "trigonometric")
    for directions in ("orthogonal", "independent")
}
LENGTHS = (256, 1024, 2048)


def exponent(x: Array, y: Array) -> float:
    """Return the exponent b of y = a x^b, fitted by least squares of the logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def relative(output: Array, exact: Array) -> float:
    """Return the distance from the exact output relative to its length."""
    return float(np.linalg.norm(output - exact) / np.linalg.norm(exact))


def feature_errors(q: Array, k: Array, v: Array, scale: float, draws: int, seed: int) -> dict[str, Array]:
    """Return Performer's root mean square error over draws, by kind, for each of FEATURES."""
    exact = compute_output(q, k, v, scale=scale)

    def square(features: int, seed: int, options: dict[str, Any]) -> float:
        out = compute_output(q, k, v, "performer", scale=scale, features=features, seed=seed, **options)
        return relative(out, exact) ** 2

    errors = {}
    for name, options in KINDS.items():
        squares = [[square(m, seed + draw, options) for draw in range(draws)] for m in FEATURES]
        errors[name] = np.sqrt(np.mean(squares, axis=1))
    return errors


@dataclass(frozen=True)
class Signs:
    """What one kind of features does at one length of queries and keys."""

    kind: str
    length: float
    error: float
    small: float
    """Error of the smallest tenth of the weights, root mean square over the weight itself."""
    negative_weights: float  # a share
    negative_normalizers: float
    """Share of the rows whose features sum to less than zero."""


def signs(
    q: Array, k: Array, v: Array, scale: float, length: float, kind: Literal["positive", "trigonometric"],
    draws: int, seed: int, features: int = 256,
) -> Signs:  # fmt: skip
    """Compare Performer's weights with softmax's, over several draws."""
    true, exact = compute_weights(q, k, scale=scale), compute_output(q, k, v, scale=scale)
    least = true <= np.quantile(true, 0.1)
    errors, small, below, norms = [], [], [], []
    for draw in range(draws):
        options: dict[str, Any] = {"features": features, "kind": kind, "seed": seed + draw}
        approximate = compute_weights(q, k, "performer", scale=scale, **options)
        errors.append(relative(approximate @ v, exact) ** 2)
        small.append(np.mean((approximate[least] / true[least] - 1) ** 2))
        below.append(np.mean(approximate < 0))
        norms.append(np.mean(normalizers(q, k, scale, options) < 0))
    root = math.sqrt(np.mean(errors)), math.sqrt(np.mean(small))
    return Signs(kind, length, *root, float(np.mean(below)), float(np.mean(norms)))


def normalizers(q: Array, k: Array, scale: float, options: dict[str, Any]) -> Array:
    """Return phi(q) . sum of phi(k) [t]."""
    features = mechanism("performer", q.shape[1], len(k), scale, **options).feature_map()  # type: ignore[operator]
    lifted = []
    for x in (tensor(q) * scale**0.5, tensor(k) * scale**0.5):
        u = features.project(x)
        lifted.append(features.lift(u, x, x.new_zeros(x.shape[:-1])))
    sums: Array = (lifted[0] @ lifted[1].sum(-2, keepdim=True).mT)[0, 0, :, 0].numpy()
    return sums


@dataclass(frozen=True)
class Orders:
    """Both orders of the product at one length."""

    length: int
    quadratic: float
    """Multiplications and additions of (Q'K'^T)V."""
    linear: float
    """Multiplications and additions of Q'(K'^T V)."""
    quadratic_ms: float
    linear_ms: float
    apart: float


def orders(n: int, features: int, width: int, seed: int) -> Orders:
    """Measure Performer's weights times v, and the same without making them."""
    rng = stream(seed, f"lab orders {n}")
    q, k, v = (tensor(rng.standard_normal((n, width)) / width**0.5) for _ in range(3))
    performer = mechanism("performer", width, n, features=features, seed=seed)
    with torch.inference_mode():
        start = time.perf_counter()
        first = performer.weights(q, k, Mask()) @ v
        middle = time.perf_counter()
        second = performer(q, k, v, Mask())
        end = time.perf_counter()
    operations = 2.0 * n * n * (features + width), 4.0 * n * features * width
    apart = float((first - second).abs().max())
    return Orders(n, *operations, 1000 * (middle - start), 1000 * (end - middle), apart)


def rank_errors(q: Array, k: Array, v: Array, scale: float, draws: int, seed: int) -> dict[str, Array]:
    """Return the errors at ranks 1, 2, 4, ... up to the number of keys, of three ways to have that rank.

    pooled: Linformer whose slots are the means of neighbors; random: softmax's weights through Gaussian
    projections of that rank (the paper's theorem); best: the weights' best approximation of that rank.
    """
    n = len(k)
    exact, true = compute_output(q, k, v, scale=scale), compute_weights(q, k, scale=scale)
    u, s, vt = np.linalg.svd(true)
    pooled, random, best = [], [], []
    for rank in ranks(n):
        pooled.append(relative(linformer(q, k, v, scale, pooling(n, rank)), exact))
        best.append(relative((u[:, :rank] * s[:rank]) @ vt[:rank] @ v, exact))
        squares = []
        for draw in range(draws):
            r = stream(seed + draw, "lab ranks").standard_normal((n, rank)) / rank**0.5
            squares.append(relative((true @ r) @ (r.T @ v), exact) ** 2)
        random.append(math.sqrt(np.mean(squares)))
    return {"pooled": np.array(pooled), "random": np.array(random), "best": np.array(best)}


def ranks(n: int) -> list[int]:
    """Return 1, 2, 4, ... and n."""
    return [*(2**i for i in range(int(math.log2(n)) + 1) if 2**i < n), n]


def pooling(n: int, rank: int) -> Array:
    """Return the means of neighbors [n, rank]; the identity when there are as many slots as positions."""
    belongs = np.eye(rank)[np.arange(n) * rank // n]
    mix: Array = belongs / belongs.sum(0)
    return mix


def linformer(q: Array, k: Array, v: Array, scale: float, mix: Array) -> Array:
    attention = mechanism("linformer", q.shape[1], len(k), scale, rank=mix.shape[1], share="all")
    assert isinstance(attention, Linformer)
    with torch.inference_mode():
        attention.k_mix.copy_(torch.from_numpy(mix)[None])
        return array(attention(tensor(q), tensor(k), tensor(v), Mask()))


def layers_to_reach(blocks: int, causal: bool, **pattern: int) -> int:
    """Return how many layers of BigBird it takes until every token has seen all it may; 0 if never.

    `pattern` holds its options: window, n_global, n_random and seed.
    """
    seen, may = spread(blocks, causal, **pattern)
    return len(seen) if bool((seen[-1] | ~may).all()) else 0


def spread(blocks: int, causal: bool, block: int = 4, **pattern: int) -> tuple[list[Tensor], Tensor]:
    """Return which tokens each token has seen after 1, 2, ... layers of BigBird, and which it may see.

    It ends with the layer after which all is seen, or nothing more ever is.
    """
    n = blocks * block
    bigbird = mechanism("bigbird", 1, n, block=block, **pattern)
    assert isinstance(bigbird, Bigbird)
    mask = Mask(causal=causal)
    step = bigbird.dense(mask, 1, n, n)[0, 0]
    allowed = mask.allowed(n, n, torch.device("cpu"))
    may = torch.ones(n, n, dtype=torch.bool) if allowed is None else allowed.expand(1, 1, n, n)[0, 0]
    step = step & may
    seen = [step]
    while not bool((seen[-1] | ~may).all()):
        further = (seen[-1].float() @ step.float()) > 0
        if bool((further == seen[-1]).all()):
            break
        seen.append(further)
    return seen, may
