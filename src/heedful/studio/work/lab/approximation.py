"""The topic approximation, played with: random features, a low rank, and a pattern of blocks."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from heedful.lab.approximations import KINDS, linformer, pooling, relative, spread
from heedful.lab.arrays import Array, compute_output, compute_weights
from heedful.lab.base import Finding
from heedful.lab.vectors import generate
from heedful.studio.work.lab.play import find, read_curves
from heedful.studio.work.lab.settings import Settings

SIZE, WIDTH, BLOCKS, SHOWN, SEED = 64, 16, 24, 24, 0
"""As the topic generates them."""


@cache
def find_once() -> tuple[Finding[Any], dict[str, Any]]:
    """Return the finding, which no slider changes and which takes seconds."""
    return find("approximation", size=SIZE, width=WIDTH)


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    part = settings.choice("part", ("performer", "linformer", "bigbird"))
    finding, said = find_once()
    k, v = generate(SIZE, WIDTH, SEED, "keys") / WIDTH**0.5, generate(SIZE, WIDTH, SEED, "values")
    q = generate(SIZE, WIDTH, SEED, "queries") / WIDTH**0.5
    shown = {"performer": play_performer, "linformer": play_linformer, "bigbird": play_bigbird}[part]
    return {"finding": said, "part": part, "size": SIZE, **shown(settings, finding, q, k, v)}


def crop(matrix: Array) -> Array:
    """Return what a picture shows of a matrix."""
    return np.round(matrix[:SHOWN, :SHOWN], 6)


def play_performer(settings: Settings, finding: Finding[Any], q: Array, k: Array, v: Array) -> dict[str, Any]:
    features, longer = 2 ** settings.whole("features", 8, 3, 12), settings.number("longer", 1.0, 0.25, 3.0)
    name, draw = settings.choice("kind", tuple(KINDS)), settings.whole("draw", 0, 0, 10**6)
    q, k = longer * q, longer * k
    exact = compute_weights(q, k)
    options = {"features": features, "seed": SEED + draw, **KINDS[name]}
    near = compute_weights(q, k, "performer", **options)
    apart = relative(compute_output(q, k, v, "performer", **options), compute_output(q, k, v))
    return {
        "exact": crop(exact),
        "near": crop(near),
        "error": apart,
        "negative": float((near < 0).mean()),
        "features": features,
        "curves": read_curves(finding.figure),
        "operations": {"quadratic": 2 * SIZE**2 * (features + WIDTH), "linear": 4 * SIZE * features * WIDTH},
    }


def play_linformer(settings: Settings, finding: Finding[Any], q: Array, k: Array, v: Array) -> dict[str, Any]:
    rank = settings.whole("rank", 8, 1, SIZE)
    exact, mix = compute_weights(q, k), pooling(SIZE, rank)
    u, s, vt = np.linalg.svd(exact)
    best = (u[:, :rank] * s[:rank]) @ vt[:rank]
    output = compute_output(q, k, v)
    results = finding.results
    return {
        "exact": crop(exact),
        "near": crop(linformer(q, k, np.eye(SIZE), 1.0, mix)),
        "best": crop(best),
        "error": relative(linformer(q, k, v, 1.0, mix), output),
        "best_error": relative(best @ v, output),
        "rank": rank,
        "curves": {
            name: list(zip(results.ranks, results.rank_errors[key], strict=True))
            for name, key in (("means of neighbors", "pooled"), ("the best of this rank", "best"),
                              ("random projections", "random"))
        },
    }  # fmt: skip


def play_bigbird(settings: Settings, finding: Finding[Any], q: Array, k: Array, v: Array) -> dict[str, Any]:
    pattern = {
        "window": settings.whole("window", 3, 1, 9),
        "n_global": settings.whole("global", 0, 0, 4),
        "n_random": settings.whole("random", 0, 0, 4),
    }
    causal = settings.flag("causal")
    seen, may = spread(BLOCKS, causal, block=1, seed=SEED, **pattern)
    first = np.zeros((BLOCKS, BLOCKS), dtype=int)
    for layer, tokens in enumerate(seen, 1):
        first[(first == 0) & tokens.numpy()] = layer
    done = bool((seen[-1] | ~may).all())
    return {
        "first": first,
        "may": may.int(),
        "layers": len(seen) if done else 0,
        "deepest": len(seen),
        "pairs": int(seen[0].sum()),
        "of": int(may.sum()),
        "blocks": BLOCKS,
        "pattern": pattern,
    }
