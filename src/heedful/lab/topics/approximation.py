"""How near Performer, Linformer and BigBird come to full attention, and at what price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.errors import UserError
from heedful.lab import approximations
from heedful.lab.approximations import FEATURES, LENGTHS, Orders, Signs, exponent, layers_to_reach, ranks
from heedful.lab.arrays import Array
from heedful.lab.base import Finding, Number, Table, Vectors, at_least, at_most, exactly, fact, near
from heedful.lab.vectors import check_positive, check_vectors, choose_values, generate
from heedful.report.charts import lines

STRETCH = (1.0, 2.0, 3.0)
BLOCKS = 64
PATTERNS: dict[str, dict[str, int]] = {
    "window": {"window": 3, "n_global": 0, "n_random": 0},
    "window, random": {"window": 3, "n_global": 0, "n_random": 3},
    "window, global": {"window": 3, "n_global": 2, "n_random": 0},
    "window, global, random": {"window": 3, "n_global": 2, "n_random": 3},
}


@dataclass(frozen=True)
class ApproximationResults:
    """Errors are distances from softmax's output over its length."""

    features: tuple[int, ...]
    feature_errors: dict[str, Array]
    signs: list[Signs]
    orders: list[Orders]
    ranks: list[int]
    rank_errors: dict[str, Array]
    layers: dict[str, tuple[int, int]]
    """Layers until every token has seen every token: not causal, causal; 0 is never."""


def approximation(
    keys: Vectors | None = None,
    values: Vectors | None = None,
    queries: Vectors | None = None,
    *,
    scale: float = 1.0,
    draws: int = 24,
    size: int = 64,
    width: int = 16,
    seed: int = 0,
) -> Finding[ApproximationResults]:
    """What Performer, Linformer and BigBird leave out, and what that costs.

    Performer's features are positive or trigonometric, in orthogonal or
    independent directions; its product is computed in both orders. Linformer's
    rank is compared with the best possible one. BigBird's layers are counted
    until every token has seen every token. Times are only shown: they never make the topic fail.

    Examples:
      heedful lab approximation
      heedful lab approximation --size 128 --draws 30 --figure approximation.svg
      heedful lab approximation --keys keys.npy --queries queries.npy --json

    Parameters
    ----------
    keys
        Vectors, one per row: a .npy file, or numbers like 1,0;0,1. By default generated, with length about 1.
    queries
        Vectors as wide as the keys. By default generated, with length about 1.
    draws
        How often random directions are drawn; errors are root mean squares over them.
    size
        Number of vectors to generate.
    seed
        Seed of everything random.
    """
    check_positive(scale=scale)
    if draws < 2:
        raise UserError(f"draws: at least 2 for a mean, not {draws}")
    k = generate(size, width, seed, "keys") / width**0.5 if keys is None else check_vectors("keys", keys)
    if len(k) < 4:
        raise UserError(f"keys: {len(k)} vectors; at least 4 are needed")
    v = choose_values(k, values, seed)
    d = k.shape[1]
    if queries is None:
        q = generate(len(k), d, seed, "queries") / d**0.5
    else:
        q = check_vectors("queries", queries, width=d)
    errors = approximations.feature_errors(q, k, v, scale, draws, seed)
    stretched = [
        approximations.signs(x * q, x * k, v, scale, x, kind, draws, seed)
        for x in STRETCH
        for kind in ("positive", "trigonometric")
    ]
    both = [approximations.orders(n, 256, 64, seed) for n in LENGTHS]
    by_rank = approximations.rank_errors(q, k, v, scale, draws, seed)
    reach = {
        name: (layers_to_reach(BLOCKS, False, seed=seed, **p), layers_to_reach(BLOCKS, True, seed=seed, **p))
        for name, p in PATTERNS.items()
    }
    generated = keys is None and values is None and queries is None
    return Finding(
        topic="approximation",
        claim="random features err by 1/sqrt(m), a rank by what it cannot hold, a pattern by layers",
        construction=(
            f"softmax: scores = scale q k^T, scale = {scale:g}; {len(q)} queries, {len(k)} keys of width {d}",
            "performer: phi(q).phi(k) has the mean exp(scale q.k); m features, error over "
            f"{draws} draws, against softmax's output",
            "(Q'K'^T)V takes 2 n^2 (m + d) operations, Q'(K'^T V) takes 4 n m d: "
            "fewer from n = 2 m d / (m + d) on",
            "linformer: slots that are means of neighbors; as many slots as keys is softmax itself. "
            "Beside it the best weights of that rank, and the theorem's Gaussian projections",
            f"bigbird: {BLOCKS} blocks; one layer passes on what the visible blocks have seen",
        ),
        numbers=(
            *performer(errors, stretched, generated),
            *(at_most(f"both orders of the product, n = {o.length}: distance", o.apart, 1e-8) for o in both),
            at_most("linformer with a slot for every key: error", by_rank["pooled"][-1], 1e-10),
            near("random projections: exponent of the rank",
                 exponent(np.array(ranks(len(k))), by_rank["random"]), -0.5, 0.12),
            *bigbird(reach),
        ),
        results=ApproximationResults(FEATURES, errors, stretched, both, ranks(len(k)), by_rank, reach),
        figure=lines(
            {
                **{name: list(zip(FEATURES, curve, strict=True)) for name, curve in errors.items()},
                "theory's rate, 1/sqrt(m)": [
                    (m, errors["positive, independent"][0] * (FEATURES[0] / m) ** 0.5) for m in FEATURES
                ],
            },
            title="Performer's error falls with the square root of its features",
            subtitle=f"distance from softmax's output over its length, root mean square of {draws} draws",
            x_title="features m",
            y_title="error",
            log_x=True,
            log_y=True,
        ),
        tables=(
            Table(("features", *errors),
                  tuple((m, *(e[i] for e in errors.values())) for i, m in enumerate(FEATURES)),
                  "performer's error"),
            Table(("features", "times as long", "error", "error of the smallest tenth of the weights",
                   "negative weights", "negative normalizers"),
                  tuple((s.kind, s.length, s.error, s.small, s.negative_weights, s.negative_normalizers)
                        for s in stretched),
                  "longer queries and keys, 256 features"),
            Table(("n", "(Q'K'^T)V operations", "Q'(K'^T V) operations", "times fewer", "ms", "ms, linear"),
                  tuple((o.length, o.quadratic, o.linear, o.quadratic / o.linear, o.quadratic_ms, o.linear_ms)
                        for o in both),
                  "both orders, 256 features, width 64"),
            Table(("rank", "linformer, means of neighbors", "best possible", "random projections"),
                  tuple((r, by_rank["pooled"][i], by_rank["best"][i], by_rank["random"][i])
                        for i, r in enumerate(ranks(len(k)))),
                  "error against rank"),
            Table(("pattern", "not causal", "causal"),
                  tuple((name, *layers) for name, layers in reach.items()),
                  f"layers until all of {BLOCKS} blocks have seen all"),
        ),
    )  # fmt: skip


def performer(errors: dict[str, Array], stretched: list[Signs], generated: bool) -> list[Number]:
    """Verify theory about random features; for vectors that are not generated only what holds of all."""
    slope = {name: exponent(np.array(FEATURES), by_features) for name, by_features in errors.items()}
    ratio = {
        kind: float(np.exp(np.mean(np.log(errors[f"{kind}, orthogonal"] / errors[f"{kind}, independent"]))))
        for kind in ("positive", "trigonometric")
    }
    by_kind: dict[str, Any] = {
        kind: [s for s in stretched if s.kind == kind] for kind in ("positive", "trigonometric")
    }
    lost = sum(s.negative_weights + s.negative_normalizers for s in by_kind["positive"])
    trig = max(s.negative_weights for s in by_kind["trigonometric"])
    numbers = [exactly("positive features: negative weights and normalizers", lost, 0)]
    if not generated:
        return [
            *numbers,
            *(fact(f"{name}: exponent of m", b) for name, b in slope.items()),
            *(fact(f"{kind}: error of orthogonal over independent", x) for kind, x in ratio.items()),
            fact("trigonometric features: share of negative weights, up to", trig),
        ]
    label = "trigonometric over positive: error of the smallest weights, longest vectors"
    smallest = by_kind["trigonometric"][-1].small / by_kind["positive"][-1].small
    return [
        *numbers,
        *(near(f"{name}: exponent of m", b, -0.5, 0.12) for name, b in slope.items()),
        at_most("trigonometric: error of orthogonal over independent", ratio["trigonometric"], 0.9),
        fact("positive: error of orthogonal over independent", ratio["positive"]),
        at_least("trigonometric features: share of negative weights, up to", trig, 0.01),
        at_least(label, smallest, 1.0),
    ]


def bigbird(reach: dict[str, tuple[int, int]]) -> list[Number]:
    """A window of three passes on one block per layer, causal two; global blocks need two layers in all."""
    label = "bigbird, window and global, causal: layers, as nothing behind the global blocks is nearer"
    behind = BLOCKS - 1 - PATTERNS["window, global"]["n_global"]
    return [
        exactly("bigbird, window: layers", reach["window"][0], BLOCKS - 1),
        exactly("bigbird, window, causal: layers", reach["window"][1], -(-(BLOCKS - 1) // 2)),
        exactly("bigbird, window and global: layers", reach["window, global"][0], 2),
        exactly(label, reach["window, global"][1], -(-behind // 2)),
        fact("bigbird, window and random: layers", reach["window, random"][0]),
        fact("bigbird, window and random, causal: layers", reach["window, random"][1]),
    ]
