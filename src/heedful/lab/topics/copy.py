"""When attention copies a value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from heedful.data.random import stream
from heedful.lab.arrays import Array, compute_output, compute_weights
from heedful.lab.base import Finding, Number, Table, Vector, Vectors, at_least, at_most, exactly, fact, near
from heedful.lab.directions import PRECISION, Direction, direction, leak, smallest
from heedful.lab.vectors import (
    ARGMAX_KEYS,
    ARGMAX_QUERY,
    AVERAGE_KEYS,
    check_positive,
    check_share,
    check_vector,
    choose_values,
    choose_vectors,
    find_index,
)
from heedful.report.charts import Chart, lines

SCALES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)
PROBES = 256
"""Random queries that try to select a key that none can select."""


@dataclass(frozen=True)
class Copying:
    """What can be copied from one set of n keys."""

    keys: Array
    own_margin: Array
    """[n] k_j.k_j less the largest k_j.k_i: above 0 where a key's own direction selects it."""
    own_weight: Array
    """[n, 6] the weight of each key under Q = S K, for S = 1, 10, ..., 1e5."""
    own_scale: Array
    """[n] the smallest S for which S k_j has a weight of 1 - eps on k_j; infinite where there is none."""
    directions: Array
    """[n, d] a unit vector that selects each key; zeros where the key is in the others' convex hull."""
    margin: Array
    """[n] how far the next score is below, along that vector; 0 where there is none."""
    scale: Array
    """[n] the smallest length of the query along that vector."""
    hull_residual: Array
    """[n] how far the found convex combination of the others is from the key; nan where there is none."""
    in_hull_weight: float
    """The largest weight that random queries gave a key in the others' hull; nan if there is no such key."""


@dataclass(frozen=True)
class CopyResults:
    """The sets that were looked at, and the copy of one key in the first."""

    sets: dict[str, Copying]
    scale: float
    """The smallest length of a query that copies the chosen key; infinite if none does."""
    output: Array
    """What attention returns for it."""


def copy(
    keys: Vectors | None = None,
    values: Vectors | None = None,
    query: Vector | None = None,
    *,
    key: int = 1,
    eps: float = 0.01,
    scale: float = 1.0,
    size: int | None = None,
    width: int = 8,
    seed: int = 0,
) -> Finding[CopyResults]:
    """When attention copies one value: which queries do it, and how long they must be.

    A query copies v_j when its weight on k_j is at least 1 - eps. A linear
    program finds a direction for every key, or proves that there is none.

    Examples:
      heedful lab copy
      heedful lab copy --keys keys.npy --key 3 --eps 1e-6
      heedful lab copy --size 50 --width 4 --figure copy.png

    Parameters
    ----------
    keys
        Vectors, one per row: a .npy file, or numbers like 1,0;0,1. By default two textbook examples.
    query
        A direction of your own, compared with the one that is found.
    key
        The key to copy, counted from 1.
    """
    check_positive(scale=scale)
    check_share(eps=eps)
    textbook = keys is None and size is None
    k = choose_vectors("keys", keys, size, width, seed, ARGMAX_KEYS)
    named = {"first keys": k, "second keys": AVERAGE_KEYS} if textbook else {"keys": k}
    j = find_index("key", key, len(k))
    v = choose_values(k, values, seed)
    u = check_vector("query", query, k.shape[1]) if query is not None else ARGMAX_QUERY if textbook else None

    sets = {name: examine(one, eps, scale, seed) for name, one in named.items()}
    numbers = [number for name, one in sets.items() for number in verify(name, one, eps, scale)]
    first = next(iter(sets.values()))
    s, output = float(first.scale[j]), np.full(v.shape[1], math.nan)
    if math.isfinite(s):
        output = compute_output(s * first.directions[j][None], k, v, scale=scale)[0]
        furthest, apart = float(np.linalg.norm(v - v[j], axis=1).max()), np.linalg.norm(output - v[j])
        most = eps * furthest * (1 + 1e-6) + 1e-12
        numbers.append(fact(f"k_{key}: smallest length of a query that copies it", s))
        numbers.append(at_most(f"k_{key}: distance of the output from v_{key}", apart, most))
    if u is not None:
        margin = float(scale * (k[j] @ u - np.delete(k @ u, j).max(initial=-math.inf)))
        needed, low, high = smallest(u, k, [j], eps, scale)
        numbers.append(fact(f"k_{key}: margin of the query {format_vector(u)}", margin))
        numbers.append(fact(f"k_{key}: smallest S for S {format_vector(u)}", needed))
        if textbook and query is None and key == 1 and scale == 1:
            numbers += verify_published(first, margin, needed, low, high)
    return Finding(
        topic="copy",
        claim="attention copies v_j if the query prefers k_j to every other key, and is long enough",
        construction=(
            f"weight on j = 1 / (1 + sum_i exp(-scale q.(k_j - k_i))), scale = {scale:g}; "
            f"copied: at least 1 - eps, eps = {eps:g}",
            "own direction, q = S k_j: selects k_j exactly if k_j.k_j > k_j.k_i for every other i",
            "some direction selects k_j exactly if k_j is outside the convex hull of the other keys: "
            "maximize m with u.(k_j - k_i) >= m for all i and |u_d| <= 1 (a linear program); m > 0 gives u",
            "length needed for a margin m of the scores and r other keys: from ln(1/eps - 1) / m to "
            "ln(r (1/eps - 1)) / m",
        ),
        numbers=tuple(numbers),
        results=CopyResults(sets, s, output),
        figure=draw(k, j, first, u, eps, scale),
        tables=tuple(make_table(name, one) for name, one in sets.items()),
    )


def format_vector(vector: Array) -> str:
    return f"({', '.join(f'{x:.4g}' for x in vector)})"


def own_queries(keys: Array, s: float) -> Array:
    """Return all queries at once: each key asks for itself."""
    return s * keys


def examine(keys: Array, eps: float, scale: float, seed: int) -> Copying:
    n, d = keys.shape
    products = keys @ keys.T
    others = np.where(np.eye(n, dtype=bool), -np.inf, products)
    own_weights = np.array(
        [np.diag(compute_weights(own_queries(keys, s), keys, scale=scale)) for s in SCALES]
    ).T
    vectors, margins = np.zeros((n, d)), np.zeros(n)
    scales, residual = np.full(n, math.inf), np.full(n, math.nan)
    inside: list[int] = []
    for j in range(n):
        solution = direction(keys, [j])
        if isinstance(solution, Direction):
            vectors[j], margins[j] = solution.vector, solution.margin
            scales[j] = smallest(solution.vector, keys, [j], eps, scale)[0]
        else:
            residual[j] = solution.residual
            inside.append(j)
    probes = stream(seed, "lab probes").standard_normal((PROBES, d))
    reached = [
        float(compute_weights(s * probes, keys, scale=scale)[:, inside].max()) for s in SCALES if inside
    ]
    return Copying(
        keys=keys,
        own_margin=np.diag(products) - others.max(1),
        own_weight=own_weights,
        own_scale=np.array([smallest(keys[j], keys, [j], eps, scale)[0] for j in range(n)]),
        directions=vectors,
        margin=margins,
        scale=scales,
        hull_residual=residual,
        in_hull_weight=max(reached, default=math.nan),
    )


def verify(name: str, copying: Copying, eps: float, scale: float) -> list[Number]:
    """Verify what must hold for any set of keys."""
    keys, n = copying.keys, len(copying.keys)
    longest = float(np.linalg.norm(keys, axis=1).max())
    selects = copying.own_margin > PRECISION * longest**2
    rows = np.concatenate([compute_weights(own_queries(keys, s), keys, scale=scale) for s in SCALES])
    label = f"{name}: rows of softmax(S K K^T) that do not sum to 1, S up to 1e5"
    numbers = [
        at_most(label, np.abs(rows.sum(1) - 1).max(), 1e-12),
        fact(f"{name}: keys that their own direction selects, of {n}", float(selects.sum())),
    ]
    leaks = [leak(copying.own_scale[j] * keys[j], keys, [j], scale) for j in range(n) if selects[j]]
    if leaks:
        label = f"{name}: weight left to others by S k_j, largest"
        numbers.append(at_most(label, max(leaks), eps * (1 + 1e-6)))
    if not selects.all():
        label = f"{name}: weight on k_j by S k_j where k_j.k_j is not the largest, largest"
        numbers.append(at_most(label, copying.own_weight[~selects].max(), 0.5 + 1e-6))
    outside = np.isfinite(copying.scale)
    numbers.append(fact(f"{name}: keys outside the others' convex hull, of {n}", float(outside.sum())))
    pairs = [(j, copying.scale[j]) for j in range(n) if outside[j]]
    if pairs:
        left = [leak(s * copying.directions[j], keys, [j], scale) for j, s in pairs]
        label = f"{name}: weight left to others along the program's directions, largest"
        numbers.append(at_most(label, max(left), eps * (1 + 1e-6)))
        shorter = [leak(0.99 * s * copying.directions[j], keys, [j], scale) for j, s in pairs if s > 0]
        if shorter:
            label = f"{name}: eps less what a query 1 % shorter leaves, largest"
            numbers.append(at_most(label, eps - min(shorter), 0))
    if not outside.all():
        label = f"{name}: distance of keys in the hull from the combination found, largest"
        numbers.append(at_most(label, np.nanmax(copying.hull_residual), 1e-6 * longest))
        label = f"{name}: weight on a key in the hull over {PROBES} random queries, largest"
        numbers.append(at_most(label, copying.in_hull_weight, 0.5 + 1e-6))
    return numbers


def verify_published(copying: Copying, margin: float, needed: float, low: float, high: float) -> list[Number]:
    """Verify what is published of the textbook's keys."""
    return [
        exactly("k_1.k_1 - k_1.k_2: a tie in its own direction", copying.own_margin[0], 0),
        near("weight of k_1 under 1e5 k_1", copying.own_weight[0, -1], 0.5, 1e-12),
        exactly("margin of (-2, 1, 1): 3 - 1", margin, 2),
        at_least("smallest S for S (-2, 1, 1), lower bound", needed, low),
        at_most("smallest S for S (-2, 1, 1), upper bound", needed, high),
    ]


def draw(keys: Array, j: int, copying: Copying, query: Array | None, eps: float, scale: float) -> Chart:
    ties = " (a tie)" if abs(copying.own_margin[j]) <= PRECISION * float(keys[j] @ keys[j]) else ""
    directions = {f"its own direction, k_{j + 1}{ties}": keys[j]}
    if math.isfinite(copying.scale[j]):
        directions["direction found by the linear program"] = copying.directions[j]
    if query is not None:
        directions[f"direction {format_vector(query)}"] = query
    s = float(copying.scale[j])
    copies = math.isfinite(s) and s > 0
    steps = np.logspace(-2, 1.5, 81) * (s if copies else 10.0)
    series = {
        name: list(
            zip(steps, compute_weights(np.outer(steps, normalize(u)), keys, scale=scale)[:, j], strict=True)
        )
        for name, u in directions.items()
    }
    return lines(
        series,
        title=f"Attention copies v_{j + 1} if the query prefers k_{j + 1} to all others, and is long enough",
        subtitle=f"{len(keys)} keys; scale of the scores {scale:g}",
        x_title="length of the query",
        y_title=f"attention weight on k_{j + 1}",
        log_x=True,
        y_domain=(0, 1.12),
        rules={f"weight {1 - eps:g} from length {s:.3g} on": s} if copies else None,
    )


def normalize(vector: Array) -> Array:
    """Return a vector of length 1 in the same direction; zero stays."""
    scaled: Array = vector / (np.linalg.norm(vector) or 1.0)
    return scaled


def make_table(name: str, copying: Copying) -> Table:
    c, rows = copying, []
    for j in range(len(c.keys)):
        vector = c.directions[j] if c.margin[j] else "none: in the others' hull"
        own_direction = (c.keys[j], c.own_margin[j], c.own_weight[j, -1], c.own_scale[j])
        rows.append((f"k_{j + 1}", *own_direction, vector, c.margin[j], c.scale[j]))
    titles = ("key", "k", "k.k - next", "weight, 1e5 k", "S for S k", "unit vector found", "margin", "length")
    return Table(titles, tuple(rows), name)
