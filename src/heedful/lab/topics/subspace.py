"""How one of two averaged values is recovered, if the two come from different subspaces."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from heedful.data.random import stream
from heedful.errors import UserError
from heedful.lab.arrays import Array, compute_output
from heedful.lab.base import Finding, Number, Table, Vectors, at_least, at_most, fact, near
from heedful.lab.vectors import check_positive, check_vectors, orthonormal
from heedful.report.charts import Chart, lines

PAIRS = 64
"""Pairs v_a, v_b that are averaged and taken apart again."""
PRECISION = 1e-9
"""Subspaces whose smallest angle has a sine below this share a direction."""
ANGLES = (90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2, 1)


@dataclass(frozen=True)
class Recovery:
    """A matrix M with M (v_a + v_b) / 2 = v_a, or the direction that makes it impossible."""

    matrix: Array | None
    angle: float
    """The smallest angle between the subspaces, in degrees."""
    amplification: float
    """The most by which the projection stretches noise, 1 / sin(angle); infinite if there is no M."""
    error: float
    """The largest distance of M (v_a + v_b) / 2 from v_a, relative to the length of v_a and v_b."""
    common: Array | None
    """A unit vector in both subspaces, if there is one."""


@dataclass(frozen=True)
class SubspaceResults:
    cases: dict[str, Recovery]


def subspace(
    a: Vectors | None = None,
    b: Vectors | None = None,
    *,
    width: int = 8,
    size: int = 3,
    angle: float = 30.0,
    noise: float = 0.01,
    seed: int = 0,
) -> Finding[SubspaceResults]:
    """How v_a is recovered from the average of v_a and v_b, each from a subspace of its own.

    It is possible exactly if the subspaces share no direction. If they are not
    orthogonal, the answer is twice the oblique projection onto A along B, and
    it amplifies noise by 1 / sin of the smallest angle between them.

    Examples:
      heedful lab subspace
      heedful lab subspace --angle 5
      heedful lab subspace --a 1,0,0;0,1,0 --b 0,1,1

    Parameters
    ----------
    a
        Vectors that span A, one per row: a .npy file, or numbers like 1,0;0,1. By default generated.
    b
        Vectors that span B.
    size
        Number of dimensions of each generated subspace.
    angle
        Smallest angle between the generated subspaces, in degrees.
    noise
        Standard deviation of the noise that the figure adds to the average.
    """
    check_positive(noise=noise)
    if (a is None) != (b is None):
        raise UserError("give both --a and --b, or neither")
    if a is not None and b is not None:
        first = check_vectors("a", a)
        second = check_vectors("b", b, width=first.shape[1])
        pairs = {"given": (check_independent("a", first), check_independent("b", second))}
    else:
        if not 0 < angle <= 90:
            raise UserError(f"angle is above 0 and at most 90 degrees, not {angle:g}")
        if size < 1 or width < 2 * size:
            raise UserError(f"two subspaces of {size} dimensions need a width of at least {2 * max(1, size)}")
        pairs = generate_cases(width, size, angle, seed)
    cases = {name: recover(one, other, seed) for name, (one, other) in pairs.items()}
    numbers = [n for name, case in cases.items() for n in verify(name, case, *pairs[name])]
    columns = ("subspaces", "smallest angle (degrees)", "M exists", "error of M", "noise grows by")
    rows = tuple((name, c.angle, c.matrix is not None, c.error, c.amplification) for name, c in cases.items())
    return Finding(
        topic="subspace",
        claim="from (v_a + v_b) / 2 a matrix recovers v_a exactly if the two subspaces share no direction",
        construction=(
            "(v_a + v_b) / 2 is attention's output for q = 0 (scale = 1); A has a basis of A in its columns",
            "orthonormal basis, A and B orthogonal: M = 2 A A^T",
            "any basis, A and B orthogonal: M = 2 A (A^T A)^-1 A^T",
            "not orthogonal: M = 2 A (A^T P A)^-1 A^T P with P = I - B (B^T B)^-1 B^T, twice the oblique "
            "projection onto A along B; its norm is 2 / sin(smallest angle): that is what noise grows by",
            "a common direction w: v_a = w, v_b = -w and v_a = v_b = 0 have the same average, so no M exists",
        ),
        numbers=tuple(numbers),
        results=SubspaceResults(cases),
        figure=draw(noise, seed),
        tables=(Table(columns, rows, "cases"),),
    )


def check_independent(name: str, spanning: Array) -> Array:
    """Return a basis in columns: the given vectors if they are independent."""
    if np.linalg.matrix_rank(spanning) < len(spanning):
        raise UserError(f"{name}: the {len(spanning)} vectors are not independent; leave some out")
    return spanning.T


def generate_cases(width: int, size: int, angle: float, seed: int) -> dict[str, tuple[Array, Array]]:
    """Return the four cases, with bases in columns."""
    axes = orthonormal(2 * size, width, seed, "axes").T  # [d, 2 s]
    one, other = axes[:, :size], axes[:, size:]
    mix = stream(seed, "lab bases").standard_normal((2, size, size)) + 2 * np.eye(size)
    return {
        "orthogonal, orthonormal bases": (one, other),
        "orthogonal, any bases": (one @ mix[0], other @ mix[1]),
        f"at {angle:g} degrees": (one @ mix[0], tilt(one, other, angle) @ mix[1]),
        "with a common direction": (one, np.c_[one[:, :1], other[:, 1:]]),
    }


def tilt(one: Array, other: Array, angle: float) -> Array:
    """Return a basis whose first direction is at this angle to `one`, the rest at right angles."""
    turn = math.radians(angle)
    basis: Array = np.c_[math.cos(turn) * one[:, :1] + math.sin(turn) * other[:, :1], other[:, 1:]]
    return basis


def away_from(b: Array) -> Array:
    """Return P = I - B (B^T B)^-1 B^T, which takes the columns of b to zero."""
    q = np.linalg.qr(b)[0]
    matrix: Array = np.eye(len(b)) - q @ q.T
    return matrix


def projection(a: Array, b: Array) -> Array:
    """Return the oblique projection onto the columns of a along those of b: A (P A)^+."""
    matrix: Array = a @ np.linalg.pinv(away_from(b) @ a)
    return matrix


def recover(a: Array, b: Array, seed: int) -> Recovery:
    basis = np.linalg.qr(a)[0]
    _, sines, turned = np.linalg.svd(away_from(b) @ basis, full_matrices=False)
    cosine = np.linalg.norm(np.linalg.qr(b)[0].T @ basis, 2)
    angle = math.degrees(math.atan2(sines[-1], cosine))
    if sines[-1] <= PRECISION:
        return Recovery(None, angle, math.inf, math.nan, basis @ turned[-1])
    matrix = 2 * projection(a, b)
    values, averages = average_pairs(a, b, seed)
    error = np.linalg.norm(averages @ matrix.T - values[:, 0], axis=1) / np.linalg.norm(values, axis=2).max(1)
    return Recovery(matrix, angle, float(np.linalg.norm(matrix / 2, 2)), float(error.max()), None)


def average_pairs(a: Array, b: Array, seed: int) -> tuple[Array, Array]:
    """Draw v_a in A and v_b in B [p, 2, d]; return them and attention's output for q = 0 [p, d]."""
    draws = stream(seed, "lab pairs")
    values = np.stack([draws.standard_normal((PAIRS, m.shape[1])) @ m.T for m in (a, b)], axis=1)
    d = values.shape[2]
    keys = draws.standard_normal((PAIRS, 2, d))
    return values, compute_output(np.zeros((PAIRS, 1, d)), keys, values)[:, 0]


def verify(name: str, case: Recovery, a: Array, b: Array) -> list[Number]:
    if (w := case.common) is not None:
        nearest = [basis @ np.linalg.lstsq(basis, w, rcond=None)[0] for basis in (a, b)]
        outside = max(float(np.linalg.norm(w - point)) for point in nearest)
        both = compute_output(np.zeros((2, 1, len(w))), np.zeros((2, 2, len(w))), [[w, -w], [0 * w, 0 * w]])[
            :, 0
        ]
        apart = np.abs(both[0] - both[1]).max()
        return [
            at_most(f"{name}: distance of the common direction w from A and from B, largest", outside, 1e-6),
            at_most(f"{name}: averages of (w, -w) and of (0, 0) differ by", apart, 1e-12),
            at_least(f"{name}: what M would have to tell apart, |w - 0|", np.linalg.norm(w), 0.5),
        ]
    m = case.matrix
    assert m is not None
    tolerance = 1e-9 * case.amplification
    orthogonal = math.cos(math.radians(case.angle)) < PRECISION
    orthonormal_basis = np.abs(a.T @ a - np.eye(a.shape[1])).max() < PRECISION
    shorter, shortest = 2 * a @ np.linalg.solve(a.T @ a, a.T), 2 * a @ a.T
    growth, inverse = case.amplification, 1 / math.sin(math.radians(case.angle))
    numbers = [
        at_most(f"{name}: |M (v_a + v_b)/2 - v_a|, relative, largest of {PAIRS}", case.error, tolerance),
        at_most(f"{name}: |M B|, largest entry", np.abs(m @ b).max(), tolerance * np.abs(b).max()),
        near(f"{name}: norm of M/2, against 1 / sin(smallest angle)", growth, inverse, 1e-6 * growth),
    ]
    for formula, matrix, applies in (
        ("2 A (A^T A)^-1 A^T", shorter, orthogonal),
        ("2 A A^T", shortest, orthogonal and orthonormal_basis),
    ):
        apart = np.abs(m - matrix).max()
        if applies:
            numbers.append(at_most(f"{name}: M less {formula}, largest", apart, 1e-9))
        else:
            numbers.append(fact(f"{name}: M less {formula}, wrong here, largest", apart))
    return numbers


def draw(noise: float, seed: int) -> Chart:
    axes = orthonormal(2, 8, seed, "axes").T
    one, other = axes[:, :1], axes[:, 1:]
    hiss = noise * stream(seed, "lab hiss").standard_normal((PAIRS, len(axes)))
    names = (
        "orthogonal projection, 2 A (A^T A)^-1 A^T",
        "oblique projection",
        f"oblique projection, noise of {noise:g} on the average",
        f"theory for that noise: {2 * noise:g} / sin(angle)",
    )
    series: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for angle in ANGLES:
        b = tilt(one, other, angle)
        values, averages = average_pairs(one, b, seed)
        oblique, straight = 2 * projection(one, b), 2 * one @ one.T
        recovered = (averages @ straight.T, averages @ oblique.T, (averages + hiss) @ oblique.T)
        errors = [float(np.sqrt(np.square(m - values[:, 0]).sum(1).mean())) for m in recovered]
        for name, error in zip(names, (*errors, 2 * noise / math.sin(math.radians(angle))), strict=True):
            series[name].append((angle, error))
    return lines(
        series,
        title="Out of an average: the oblique projection recovers v_a, yet noise grows as A and B close",
        subtitle="two lines in 8 dimensions; error: root mean square of |M (v_a + v_b)/2 - v_a|",
        x_title="angle between A and B (degrees)",
        y_title="error of the recovered v_a",
        y_domain=(0, 1.4),
    )
