"""When attention averages some values and ignores the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from heedful.errors import UserError
from heedful.lab.arrays import Array, compute_output, compute_weights
from heedful.lab.base import Finding, Number, Table, Vectors, at_least, at_most, exactly, fact, near
from heedful.lab.directions import Direction, Obstacle, direction, leak, smallest
from heedful.lab.vectors import (
    AVERAGE_KEYS,
    check_positive,
    check_share,
    choose_values,
    choose_vectors,
    find_index,
    orthonormal,
)
from heedful.report.charts import Chart, lines

SCALES = (1.0, 10.0, 100.0, 1000.0)
BETAS = (1.0, 2.0, 5.0, 10.0, 20.0)


@dataclass(frozen=True)
class AverageResults:
    """The exact query for the chosen keys, or why there is none, and the sum of the keys beside it."""

    beta: float
    """What orthonormal keys need for eps."""
    query: Array | None
    """A unit vector with one score for the chosen keys and a lower one for the others."""
    margin: float
    """How much lower, for a query of length 1; 0 if there is none."""
    scale: float
    """The smallest length that leaves at most eps to the others; infinite if there is none."""
    obstacle: Obstacle | None
    weights: Array
    """[n] of the exact query at that length; of q = 0 if there is none."""
    output: Array
    mean_errors: dict[str, float]
    """How far S times the chosen keys' mean is from equal weights, for S = 1, 10, 100, 1000."""
    best_scale: float
    """The S that is best for the mean."""
    gap: float
    """The spread of the chosen keys' scores under their mean: 0 if it is an exact query."""


def average(
    keys: Vectors | None = None,
    values: Vectors | None = None,
    *,
    chosen: tuple[int, ...] = (1, 2),
    eps: float = 0.01,
    scale: float = 1.0,
    size: int | None = None,
    width: int = 8,
    seed: int = 0,
) -> Finding[AverageResults]:
    """When attention averages a chosen few: the query that does it, or why there is none.

    Orthonormal keys have a closed form. For other keys the sum of the chosen
    ones is only nearly right, and becomes wrong when it is made longer; the
    exact query is perpendicular to their differences.

    Examples:
      heedful lab average
      heedful lab average --keys keys.npy --chosen 1 4 5
      heedful lab average --size 6 --width 3 --seed 2

    Parameters
    ----------
    keys
        Vectors, one per row: a .npy file, or numbers like 1,0;0,1. By default an example of a textbook.
    chosen
        The keys to average, counted from 1.
    """
    textbook = keys is None and size is None
    check_positive(scale=scale)
    check_share(eps=eps)
    k = choose_vectors("keys", keys, size, width, seed, AVERAGE_KEYS)
    c = [find_index("chosen", number, len(k)) for number in chosen]
    if len(set(c)) != len(c) or not c:
        raise UserError("chosen: name at least one key, each once")
    v = choose_values(k, values, seed)
    target = np.isin(np.arange(len(k)), c) / len(c)

    beta, closed = verify_orthonormal(len(k), eps, scale, seed)
    nothing = compute_weights(np.zeros((1, k.shape[1])), k, scale=scale)[0]
    mean_of_all = compute_weights(k.mean(0)[None], k, scale=scale)[0]
    numbers = [
        *closed,
        at_most("q = 0: weights' distance from 1/n, largest", np.abs(nothing - 1 / len(k)).max(), 1e-15),
        fact("q = mean of all keys: weights' distance from 1/n, largest", spread(mean_of_all)),
    ]
    mean = k[c].mean(0)
    errors = {s: distance(compute_weights(s * mean[None], k, scale=scale)[0], target) for s in SCALES}
    gap = scale * float(np.ptp(k[c] @ mean))
    best = best_scale(mean, k, target, scale)
    solution = direction(k, c)
    if isinstance(solution, Direction):
        exact = exact_query(solution)
        s = smallest(exact, k, c, eps, scale)[0]
        w = compute_weights(s * exact[None], k, scale=scale)[0]
        output = compute_output(s * exact[None], k, v, scale=scale)[0]
        numbers += verify(exact, k, c, s, w, output, v, eps)
    else:
        exact, s, w, output = None, math.inf, nothing, v.mean(0)
        label = "no query exists: distance of the two combinations that are one point"
        numbers += [
            at_most(label, solution.residual, 1e-6 * float(np.linalg.norm(k, axis=1).max())),
            at_least("its factors of the other keys, smallest", solution.others.min(), -1e-9),
        ]
    numbers += [
        *(fact(f"q = {s:g} x mean of the chosen: distance from equal shares", e) for s, e in errors.items()),
        fact("mean of the chosen: spread of their scores at length S = 1", gap),
        fact("mean of the chosen: the best S", best),
    ]
    if textbook and chosen == (1, 2) and scale == 1:
        numbers += verify_published(errors, mean_of_all, k, gap)
    return Finding(
        topic="average",
        claim="attention averages the values of some keys if the query scores them alike and above the rest",
        construction=(
            "orthonormal keys, q = beta (k_a + k_b): weights e^b / (2 e^b + n - 2) with b = scale beta",
            "the others keep eps from b = ln((n - 2) (1 - eps) / (2 eps)) on; beta = 1 is not enough",
            f"here scale = {scale:g} and eps = {eps:g}",
            "other keys: q.k_a = q.k_b for the chosen (q is perpendicular to their differences) and "
            "q.k_i < q.k_a for the rest: a linear program; none exists exactly if a convex combination of "
            "the rest lies in the affine hull of the chosen",
            "q = 0 averages everything exactly; the mean of the keys does not",
            f"S times the mean of the chosen scores them {gap:.4g} S apart: "
            f"{describe_outlook(mean, k, c, gap)}",
        ),
        numbers=tuple(numbers),
        results=AverageResults(
            beta=beta,
            query=exact,
            margin=solution.margin if isinstance(solution, Direction) else 0.0,
            scale=s,
            obstacle=solution if isinstance(solution, Obstacle) else None,
            weights=w,
            output=output,
            mean_errors={f"{s:g}": e for s, e in errors.items()},
            best_scale=best,
            gap=gap,
        ),
        figure=draw(mean, exact, k, target, scale, chosen),
        tables=(make_weight_table(k, c, mean, exact, s, scale), make_beta_table(eps, scale)),
    )  # fmt: skip


def distance(w: Array, target: Array) -> float:
    """Return half the sum of the absolute differences: the weight in the wrong place."""
    return float(np.abs(w - target).sum() / 2)


def spread(w: Array) -> float:
    """Return the largest distance from equal shares."""
    return float(np.abs(w - 1 / len(w)).max())


def describe_outlook(mean: Array, keys: Array, chosen: Sequence[int], gap: float) -> str:
    """Describe what becomes of the mean of the chosen keys when it is made longer."""
    scores = keys @ mean
    others = np.delete(scores, list(chosen))
    if len(others) and others.max() >= scores[list(chosen)].max() - 1e-12:
        return "another key scores at least as high, and takes part or wins"
    return f"one of them wins from about S = {1 / gap:.4g} on" if gap > 1e-12 else "it is an exact query"


def exact_query(solution: Direction) -> Array:
    """Return the query of length 1 that scores the chosen alike."""
    return solution.vector


def closed_form(beta: float, n: int, scale: float) -> float:
    """Return the weight of each of the two under q = beta (k_a + k_b), for n orthonormal keys."""
    return 1 / (2 + (n - 2) * math.exp(-scale * beta))


def beta_needed(n: int, eps: float, scale: float) -> float:
    """Return the beta from which on the others keep at most eps."""
    return max(0.0, math.log((n - 2) * (1 - eps) / (2 * eps)) / scale) if n > 2 else 0.0


def verify_orthonormal(n: int, eps: float, scale: float, seed: int) -> tuple[float, list[Number]]:
    """Check the closed form on n random orthonormal keys, through attention."""
    n = max(n, 3)
    k = orthonormal(n, n, seed)
    pair = k[0] + k[1]
    pair_weights = {b: compute_weights(b * pair[None], k, scale=scale)[0][:2] for b in BETAS}
    apart = max(float(np.abs(w - closed_form(b, n, scale)).max()) for b, w in pair_weights.items())
    beta = beta_needed(n, eps, scale)
    left, label = leak(beta * pair, k, [0, 1], scale), f"{n} orthonormal keys"
    return beta, [
        at_most(f"{label}: weights' distance from the closed form, largest", apart, 1e-12),
        fact(f"{label}: weight of each of the two at beta = 1", closed_form(1, n, scale)),
        fact(f"{label}: beta needed for eps = {eps:g}", beta),
        near(f"{label}: weight left to the others at that beta", left, min(eps, (n - 2) / n), 1e-12),
    ]


def best_scale(mean: Array, keys: Array, target: Array, scale: float) -> float:
    """Return the S for which S times the mean comes nearest to equal shares."""

    def error(log_s: float) -> float:
        return distance(compute_weights(math.exp(log_s) * mean[None], keys, scale=scale)[0], target)

    grid = np.linspace(math.log(1e-3), math.log(1e6), 120)
    start = min(grid, key=error)
    step = grid[1] - grid[0]
    return math.exp(minimize_scalar(error, bounds=(start - step, start + step), method="bounded").x)


def verify(
    exact: Array, keys: Array, chosen: Sequence[int], s: float, w: Array, output: Array, values: Array,
    eps: float,
) -> list[Number]:  # fmt: skip
    longest = float(np.linalg.norm(keys, axis=1).max())
    chosen_weights = w[list(chosen)]
    mean = values[list(chosen)].mean(0)
    furthest = float(np.linalg.norm(values - mean, axis=1).max())
    apart, away = np.ptp(keys[list(chosen)] @ exact), np.linalg.norm(output - mean)
    most = eps * furthest * (1 + 1e-6) + 1e-9
    return [
        at_most("exact query: spread of the chosen scores, for length 1", apart, 1e-12 * longest),
        fact("exact query: smallest length for eps", s),
        at_most("exact query: weight left to the others", 1 - chosen_weights.sum(), eps * (1 + 1e-6) + 1e-15),
        at_most("exact query: difference of the chosen weights, largest", np.ptp(chosen_weights), 1e-9),
        at_most("exact query: distance of the output from the average", away, most),
    ]


def verify_published(errors: dict[float, float], mean_of_all: Array, keys: Array, gap: float) -> list[Number]:
    """Verify what is published of the textbook's keys: longer is not always better."""
    return [
        exactly("the best of S = 1, 10, 100, 1000", min(errors, key=lambda s: errors[s]), 10),
        at_least("S = 100 is worse than S = 10, by", errors[100.0] - errors[10.0], 1e-3),
        at_least("S = 1000 is worse than S = 1, by", errors[1000.0] - errors[1.0], 1e-3),
        near("the reason: (k_1 + k_2)/2 . (k_2 - k_1) = (|k_2|^2 - |k_1|^2) / 2", gap,
             float(keys[1] @ keys[1] - keys[0] @ keys[0]) / 2, 1e-15),
        at_least("mean of all keys: weights' distance from 1/n", spread(mean_of_all), 1e-3),
    ]  # fmt: skip


def draw(
    mean: Array, exact: Array | None, keys: Array, target: Array, scale: float, named: Sequence[int]
) -> Chart:
    steps = np.logspace(-1, 4, 101)
    directions = {"mean of the chosen keys": mean}
    if exact is not None:
        directions["exact query, perpendicular to their differences"] = exact * np.linalg.norm(mean)
    series = {
        name: [(s, max(distance(w, target), 1e-17)) for s, w in zip(
            steps, compute_weights(steps[:, None] * u, keys, scale=scale), strict=True)]
        for name, u in directions.items()
    }  # fmt: skip
    which = " and ".join(f"k_{i}" for i in named) if len(named) <= 3 else f"{len(named)} keys"
    claim = "no query scores them alike and above the others"
    if exact is not None:
        claim = "a longer query helps only if it scores them exactly alike"
    return lines(
        series,
        title=f"Averaging {which}: {claim}",
        subtitle=f"{len(keys)} keys; scale of the scores {scale:g}",
        x_title="S, length of the query in lengths of the mean",
        y_title="weight in the wrong place",
        log_x=True,
        log_y=True,
        y_domain=(1e-6, 1.2),
    )


def make_weight_table(
    keys: Array, chosen: Sequence[int], mean: Array, exact: Array | None, s: float, scale: float
) -> Table:
    queries = {f"{t:g} x mean": t * mean for t in SCALES}
    if exact is not None:
        queries[f"exact, length {s:.4g}"] = s * exact
    columns = [compute_weights(q[None], keys, scale=scale)[0] for q in queries.values()]
    rows = tuple((f"k_{i + 1}", keys[i], *(w[i] for w in columns)) for i in range(len(keys)))
    return Table(("key", "k", *queries), rows, f"weights; chosen: {', '.join(f'k_{i + 1}' for i in chosen)}")


def make_beta_table(eps: float, scale: float) -> Table:
    columns = ("keys n", "weight of each at beta = 1", f"beta needed for eps = {eps:g}")
    sizes = (3, 4, 10, 100, 1000, 10000)
    rows = tuple((n, closed_form(1, n, scale), beta_needed(n, eps, scale)) for n in sizes)
    return Table(columns, rows, "orthonormal keys")
