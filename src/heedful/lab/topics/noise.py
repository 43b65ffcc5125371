"""Averaging when keys are noisy: when one head does it, and why two heads are safer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import expit, ndtr, ndtri

from heedful.data.random import stream
from heedful.errors import UserError
from heedful.lab.arrays import Array, compute_weights
from heedful.lab.base import Finding, Number, Table, Vectors, at_least, at_most, near
from heedful.lab.vectors import check_positive, check_vectors, orthonormal
from heedful.report.charts import Chart, lines

NEAR = 0.05
"""An output is near the average if at most this much weight is in the wrong place."""
GRID = expit(np.linspace(-14, 14, 2001))
"""Weights at which distributions are compared; nearer to 0 and 1 the simulated ones are rounded."""
BINS = np.linspace(0, 1, 22)
ONE, TWO, GIVEN = "one head", "two heads", "two heads given q.k_a > 0"
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class NoiseResults:
    """Simulated weights, and what quadrature says of them."""

    beta: float
    window: tuple[float, float]
    """ln n and 1 / (2 sqrt(alpha)), divided by the scale."""
    window_errors: dict[str, tuple[float, float]]
    """By beta: the mean weight in the wrong place under alpha I, simulated and by quadrature."""
    weight: dict[str, Array] = field(repr=False)
    """[samples] the weight on v_a when k_a varies in length: one head, two heads, two given q.k_a > 0."""
    missed: float
    """The share of samples with q.k_a <= 0 in the head that looks for k_a."""
    near_average: dict[str, tuple[float, float]]
    """The share of samples whose output is near the average, simulated and by quadrature."""


def noise(
    keys: Vectors | None = None,
    *,
    alpha: float = 1e-6,
    beta: float | None = None,
    scale: float = 1.0,
    samples: int = 20000,
    size: int = 10,
    seed: int = 0,
) -> Finding[NoiseResults]:
    """Averaging with noisy keys: the window of beta for one head, and why two heads are safer.

    Keys are drawn around orthonormal means: first with covariance alpha I, then
    with alpha I + 1/2 mu_a mu_a^T for k_a, whose length then varies. One head
    swings between v_a and v_b; two heads, each with a query of its own, stay
    near the average as long as q.k_a > 0.

    Examples:
      heedful lab noise
      heedful lab noise --alpha 1e-4 --size 4
      heedful lab noise --beta 8 --figure noise.png

    Parameters
    ----------
    keys
        The means, orthonormal, one per row: a .npy file, or numbers. By default generated.
    alpha
        Variance of every component.
    beta
        Length of each part of the query. By default the geometric middle of the window.
    samples
        Number of sets of keys to draw.
    size
        Number of means to generate.
    """
    check_positive(alpha=alpha, scale=scale, samples=samples)
    if keys is None:
        if size < 3:
            raise UserError(f"size is at least 3, two keys to average and one more, not {size}")
        means = orthonormal(size, size, seed, "means")
    else:
        means = check_vectors("keys", keys)
        if len(means) < 3 or np.abs(means @ means.T - np.eye(len(means))).max() > 1e-6:
            raise UserError("keys: these are the means, at least 3, which must be orthonormal")
    n = len(means)
    window = (math.log(n) / scale, 1 / (2 * math.sqrt(alpha)) / scale)
    wide = window[1] >= 50 * window[0]
    middle = math.sqrt(window[0] * window[1])
    b = middle if beta is None else beta
    check_positive(beta=b)

    grid = {
        "1": 1 / scale,
        "ln n": window[0],
        "the middle": middle,
        "1 / (2 sqrt(alpha))": window[1],
        "10 / (2 sqrt(alpha))": 10 * window[1],
    }
    errors = {
        name: (spread_error(means, alpha, x, scale, samples, seed), predicted_error(n, alpha, x * scale))
        for name, x in grid.items()
    }
    simulated = cases(*sample(means, alpha, b, scale, samples, seed))
    expected = cases(*quadrature(n, alpha, b * scale))
    missed = 1 - len(simulated[GIVEN]) / samples
    shares = {name: (near_share(simulated[name]), near_share(expected[name])) for name in simulated}
    numbers = [
        *window_numbers(errors, samples, wide=wide),
        *swing_numbers(simulated, expected, shares, missed, alpha, wide=wide and beta is None),
    ]
    return Finding(
        topic="noise",
        claim="one head averages noisy keys within a window of beta; if a key's length varies, it takes two",
        construction=(
            f"k_i = mu_i + noise, mu orthonormal, n = {n}; q = beta (mu_a + mu_b); scale = {scale:g}",
            f"covariance alpha I, alpha = {alpha:g}: the others are silent if scale beta >> ln n = "
            f"{math.log(n):.4g}; "
            "q.k_a - q.k_b has the deviation 2 beta sqrt(alpha): the two are balanced if "
            f"scale beta << 1 / (2 sqrt(alpha)) = {window[1] * scale:.4g}",
            "covariance alpha I + 1/2 mu_a mu_a^T for k_a: q.k_a ~ N(beta, beta^2 (2 alpha + 1/2)); "
            f"beta = {b:.4g}",
            "two heads: q_1 = beta mu_a, q_2 = beta mu_b, output their mean; q_1.k_a < 0 has the probability "
            "Phi(-1 / sqrt(alpha + 1/2)), which is Phi(-sqrt 2) = 7.9 % for small alpha",
            "quadrature: over the distributions of q.k_a and q.k_b; the other keys enter by their mean",
        ),
        numbers=tuple(numbers),
        results=NoiseResults(
            b, window, errors, {name: w[:, 0] for name, w in simulated.items()}, missed, shares
        ),
        figure=draw(simulated, expected, n, alpha, b * scale),
        tables=(
            Table(("beta", "", "simulated", "by quadrature"),
                  tuple((grid[name], name, *errors[name]) for name in grid),
                  f"alpha = {alpha:g}: weight in the wrong place"),
        ),
    )  # fmt: skip


def draw_keys(means: Array, alpha: float, samples: int, seed: int, *, lengths: bool) -> Array:
    """Return sets of keys [samples, n, d]; with `lengths`, the first varies along its own mean too."""
    random = stream(seed, "lab noisy keys", int(lengths))
    keys = means + math.sqrt(alpha) * random.standard_normal((samples, *means.shape))
    if lengths:
        keys[:, 0] += math.sqrt(0.5) * random.standard_normal((samples, 1)) * means[0]
    return keys


def pair_query(means: Array, beta: float) -> Array:
    """Return one head's query for the first two keys."""
    query: Array = beta * (means[0] + means[1])
    return query


def wrong_place(w: Array) -> Array:
    """Return the weight [...] that is missing from the first two keys, each of which should have a half."""
    missing: Array = np.maximum(0.5 - w[..., :2], 0).sum(-1)
    return missing


def near_share(w: Array) -> float:
    """Return the share of the samples [samples, n] that are near the average."""
    return float((wrong_place(w) <= NEAR).mean()) if len(w) else math.nan


def spread_error(means: Array, alpha: float, beta: float, scale: float, samples: int, seed: int) -> float:
    """Return the mean weight in the wrong place under covariance alpha I."""
    keys = draw_keys(means, alpha, samples, seed, lengths=False)
    queries = np.broadcast_to(pair_query(means, beta), (samples, 1, means.shape[1]))
    return float(wrong_place(compute_weights(queries, keys, scale=scale)[:, 0]).mean())


def predicted_error(n: int, alpha: float, b: float) -> float:
    """Return the same by quadrature; b is scale beta."""
    deviation = math.sqrt(2 * alpha) * b
    s_a, s_b = pairs(normal(b, deviation, 200), normal(b, deviation, 200))
    return float(wrong_place(weights_of_scores(s_a, s_b, rest(n, deviation))).mean())


def sample(
    means: Array, alpha: float, beta: float, scale: float, samples: int, seed: int, *, lengths: bool = True
) -> tuple[Array, Array, Bools]:
    """Return the weights [samples, n] of one head and of the mean of two, and whether q_1.k_a > 0."""
    keys = draw_keys(means, alpha, samples, seed, lengths=lengths)
    queries = np.stack([pair_query(means, beta), beta * means[0], beta * means[1]])
    head_weights = compute_weights(np.broadcast_to(queries, (samples, *queries.shape)), keys, scale=scale)
    return head_weights[:, 0], (head_weights[:, 1] + head_weights[:, 2]) / 2, keys[:, 0] @ queries[1] > 0


def quadrature(n: int, alpha: float, b: float) -> tuple[Array, Array, Bools]:
    """Return what `sample` does, at points that are all equally probable; b is scale beta."""
    deviation = math.sqrt(2 * alpha) * b
    s_a, s_b = pairs(normal(b, math.sqrt(2 * alpha + 0.5) * b, 2000), normal(b, deviation, 40))
    one = weights_of_scores(s_a, s_b, rest(n, deviation))
    narrow = math.sqrt(alpha) * b
    s_a, s_b = pairs(normal(b, math.sqrt(alpha + 0.5) * b, 2000), normal(b, narrow, 40))
    silent = np.full_like(s_a, narrow**2 / 2)  # the score of k_b in head 1 and of k_a in head 2
    first = weights_of_scores(s_a, silent, rest(n, narrow))
    second = weights_of_scores(silent, s_b, rest(n, narrow))
    return one, (first + second) / 2, s_a > 0


def normal(mean: float, deviation: float, points: int) -> Array:
    """Return a normal distribution as equally probable points: the middles of equal shares of it."""
    values: Array = mean + deviation * ndtri((np.arange(points) + 0.5) / points)
    return values


def pairs(first: Array, second: Array) -> tuple[Array, Array]:
    one, other = np.meshgrid(first, second)
    return one.ravel(), other.ravel()


def rest(n: int, deviation: float) -> float:
    """Return the score of one key in place of the n - 2 others, of which each has N(0, deviation^2)."""
    return deviation**2 / 2 + math.log(n - 2)


def weights_of_scores(s_a: Array, s_b: Array, others: float) -> Array:
    """Return the weights [points, 2] of k_a and k_b: a sigmoid of their scores less those of all others."""
    return np.stack([expit(s_a - np.logaddexp(s_b, others)), expit(s_b - np.logaddexp(s_a, others))], axis=1)


def cases(one: Array, two: Array, positives: Bools) -> dict[str, Array]:
    return {ONE: one, TWO: two, GIVEN: two[positives]}


def distance(simulated: Array, expected: Array) -> float:
    """Return the largest distance of two distributions (Kolmogorov-Smirnov)."""
    shares = [np.searchsorted(np.sort(w), GRID, side="right") / len(w) for w in (simulated, expected)]
    return float(np.abs(shares[0] - shares[1]).max())


def window_numbers(errors: dict[str, tuple[float, float]], samples: int, *, wide: bool) -> list[Number]:
    """Compare simulation with quadrature under covariance alpha I, and verify the window."""
    what = "weight in the wrong place"
    numbers = [
        near(f"alpha I, beta = {name}: {what}, against quadrature", *pair, 1 / math.sqrt(samples))
        for name, pair in errors.items()
    ]
    if wide:
        ends = errors["1"][0], errors["10 / (2 sqrt(alpha))"][0]
        numbers += [
            at_most(f"alpha I, in the middle of the window: {what}", errors["the middle"][0], 0.05),
            at_least(f"alpha I, outside of it, below and above: {what}, the smaller", min(ends), 0.1),
        ]
    return numbers


def swing_numbers(
    simulated: dict[str, Array], expected: dict[str, Array], shares: dict[str, tuple[float, float]],
    missed: float, alpha: float, *, wide: bool,
) -> list[Number]:  # fmt: skip
    """Compare simulation with quadrature for a key whose length varies."""
    samples = len(simulated[ONE])
    error = 2.5 / math.sqrt(samples)  # passed by chance but once in 100,000 times
    probability = miss(alpha)
    tolerance = 4 * math.sqrt(probability * (1 - probability) / samples)
    numbers = [near("samples with q.k_a <= 0 in the head for k_a, share", missed, probability, tolerance)]
    for name, w in simulated.items():
        apart = distance(w[:, 0], expected[name][:, 0])
        numbers += [
            at_most(f"{name}: distribution of the weight on v_a, distance from quadrature", apart, error),
            near(f"{name}: share of samples near the average", *shares[name], error),
        ]
    if wide:
        numbers += [
            at_most(f"{ONE}: share near the average, few", shares[ONE][0], 0.05),
            at_least(f"{GIVEN}: share near the average, nearly all", shares[GIVEN][0], 0.9),
        ]
    return numbers


def miss(alpha: float) -> float:
    """Return P(q.k_a < 0) in the head that looks for k_a."""
    return float(ndtr(-1 / math.sqrt(alpha + 0.5)))


def draw(simulated: dict[str, Array], expected: dict[str, Array], n: int, alpha: float, b: float) -> Chart:
    """Draw the distribution of the weight on v_a: lines for the simulation, rings for quadrature."""
    middles = (BINS[:-1] + BINS[1:]) / 2

    def shares(w: Array) -> Array:
        return np.histogram(w[:, 0], BINS)[0] / max(1, len(w))

    chart = lines(
        {name: list(zip(middles, shares(w), strict=True)) for name, w in simulated.items()},
        title="A key of varying length: one head returns v_a or v_b, two heads return their average",
        subtitle=f"{n} keys, alpha = {alpha:g}, scale times beta = {b:.3g}; lines: simulated, rings: "
        f"quadrature; q.k_a < 0 in {miss(alpha):.1%} of the samples",
        x_title="weight on v_a (the average has 0.5)",
        y_title="share of the samples",
        y_domain=(0, 1),
    )
    rings = [
        {"series": name, "x": float(x), "y": float(y)}
        for name, w in expected.items()
        for x, y in zip(middles, shares(w), strict=True)
    ]
    encoding = {axis: chart["layer"][-1]["encoding"][axis] for axis in ("x", "y", "color")}
    ring = {"type": "point", "filled": False, "size": 110, "strokeWidth": 1.5, "clip": True}
    chart["layer"].append({"data": {"values": rings}, "mark": ring, "encoding": encoding})
    return chart
