"""In which direction a query selects some keys: found by a linear program, or proven not to exist.

Keys C are selected alike by a query q exactly if q.k is the same for all of them and smaller for all others.
Such a q exists exactly if no convex combination of the others lies in the affine hull of C (for a single key:
if it is outside the convex hull of the others), because then and only then a hyperplane separates the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import brentq, linprog

from heedful.lab.arrays import Array, compute_weights

PRECISION = 1e-9
"""Margins below this, relative to the longest key, are ties."""


@dataclass(frozen=True)
class Direction:
    """A unit vector along which the chosen keys score alike and above all others."""

    vector: Array
    margin: float
    """How far the next key's score is below, for a query of length 1; infinite if there is no other key."""


@dataclass(frozen=True)
class Obstacle:
    """Why there is none: these combinations of the chosen and of the other keys are one point."""

    chosen: Array
    """Factors of the chosen keys; they add up to 1."""
    others: Array
    """Factors of the other keys; none is negative, and they add up to 1."""
    residual: float
    """The distance of the two points."""


def direction(keys: Array, chosen: Sequence[int]) -> Direction | Obstacle:
    """Find the direction that selects the chosen keys (indices), or what prevents it."""
    rest = [i for i in range(len(keys)) if i not in chosen]
    if not rest:
        return Direction(np.zeros(keys.shape[1]), math.inf)
    longest = float(np.linalg.norm(keys, axis=1).max()) or 1.0
    scaled = keys / longest
    first = scaled[chosen[0]]
    free = alike(scaled[list(chosen)])  # [d, f]: every vector in its span gives the chosen one score
    gaps = (first - scaled[rest]) @ free  # [r, f]
    f = free.shape[1]
    if f:
        # Largest m with gaps z >= m, the components of z between -1 and 1.
        program = linprog(
            np.r_[np.zeros(f), -1.0],
            A_ub=np.c_[-gaps, np.ones(len(rest))],
            b_ub=np.zeros(len(rest)),
            bounds=[(-1.0, 1.0)] * f + [(0.0, None)],
        )
        length = float(np.linalg.norm(program.x[:f])) if program.x is not None else 0.0
        if length:
            vector = free @ program.x[:f] / length
            margin = float(((first - scaled[rest]) @ vector).min())
            if margin > PRECISION:
                return Direction(vector, margin * longest)
    return obstacle(keys, list(chosen), rest, longest)


def alike(chosen: Array) -> Array:
    """Return an orthonormal basis [d, f] of the vectors that have one product with all chosen keys."""
    if len(chosen) == 1:
        return np.eye(chosen.shape[1])
    basis: Array = null_space(chosen[1:] - chosen[0])
    return basis


def obstacle(keys: Array, chosen: list[int], rest: list[int], longest: float) -> Obstacle:
    """Return the common point of the affine hull of the chosen and the convex hull of the others."""
    scaled = keys / longest
    c, r, d = len(chosen), len(rest), keys.shape[1]
    points = np.c_[scaled[chosen].T, -scaled[rest].T]  # [d, c + r]
    slack = np.ones((d, 1))
    sums = np.zeros((2, c + r + 1))
    sums[0, :c] = sums[1, c : c + r] = 1.0
    # Smallest t with |points x| <= t in every component.
    program = linprog(
        np.r_[np.zeros(c + r), 1.0],
        A_ub=np.r_[np.c_[points, -slack], np.c_[-points, -slack]],
        b_ub=np.zeros(2 * d),
        A_eq=sums,
        b_eq=np.ones(2),
        bounds=[(None, None)] * c + [(0.0, None)] * (r + 1),
    )
    x = program.x
    return Obstacle(x[:c], x[c : c + r], float(np.linalg.norm(points @ x[: c + r])) * longest)


def leak(query: Array, keys: Array, chosen: Sequence[int], scale: float = 1.0) -> float:
    """Return the weight that softmax leaves to the other keys, summed alone so that it keeps its digits."""
    rest = [i for i in range(len(keys)) if i not in chosen]
    return float(compute_weights(query[None], keys, scale=scale)[0][rest].sum())


def smallest(
    vector: Array, keys: Array, chosen: Sequence[int], eps: float, scale: float = 1.0
) -> tuple[float, float, float]:
    """Return the smallest S for which the query S * vector leaves at most eps to the other keys.

    Then the bounds that theory gives: with c chosen keys, r others and a margin m of the scores,
    ln((1 - eps) / (c eps)) / m <= S <= ln(r (1 - eps) / (c eps)) / m. Infinite where no S will do.
    """
    rest = [i for i in range(len(keys)) if i not in chosen]
    if not rest:
        return 0.0, 0.0, 0.0
    margin = scale * float((keys[list(chosen)] @ vector).min() - (keys[rest] @ vector).max())
    if margin <= PRECISION * scale * float(np.linalg.norm(keys, axis=1).max()) * np.linalg.norm(vector):
        return math.inf, math.inf, math.inf
    c, r = len(chosen), len(rest)
    low = max(0.0, math.log((1 - eps) / (c * eps)) / margin)
    high = max(0.0, math.log(r * (1 - eps) / (c * eps)) / margin)

    def excess(s: float) -> float:
        return math.log(leak(s * vector, keys, chosen, scale) or 5e-324) - math.log(eps)

    if excess(low) <= 0:
        return low, low, high
    if excess(high) >= 0:  # all others are level, so that the bound is met and rounding decides
        return high, low, high
    return float(brentq(excess, low, high, xtol=1e-12 * high, rtol=1e-14)), low, high
