"""What the projections K, Q and V are good for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from heedful.attention import Mask
from heedful.errors import UserError
from heedful.lab.arrays import Array, array, compute_output, compute_weights
from heedful.lab.base import Finding, Number, Table, Vectors, at_least, fact, near
from heedful.lab.vectors import check_positive, check_vectors, orthonormal
from heedful.models import TransformerConfig
from heedful.models.blocks import Attention
from heedful.report.charts import Chart, lines

BETAS = tuple(np.round(np.linspace(0.5, 6, 23), 2))


@dataclass(frozen=True)
class Projections:
    """Matrices that act on column vectors."""

    q: Array
    k: Array
    v: Array


@dataclass(frozen=True)
class Wiring:
    """Which outer products make up the matrices, and how strong each is.

    Columns are u_a, u_b, u_c and u_d.
    """

    q: Array
    """[2, 4] what each u makes a token look for: p_1 or p_2."""
    k: Array
    """[2, 4] by what each u lets a token be found."""
    v: Array
    """[4, 4] what each u passes on: u_a, u_b, u_c or u_d."""


ANSWER = Wiring(
    q=np.array([[1.0, 0, 0, 0], [0, 0, 0, 1]]),
    k=np.array([[0.0, 0, 0, 1], [0, 0, 1, 0]]),
    v=np.diag([0.0, 1, -1, 0]),
)
"""q_2 looks for what x_1 has, q_1 for what x_3 has; u_b is passed on, and u_c with the other sign."""


@dataclass(frozen=True)
class KqvResults:
    """The matrices, and how far the outputs are from what is wanted."""

    beta: float
    projections: Projections
    without: Array
    """[3, d] the outputs c_1, c_2, c_3 for q = k = v = x."""
    outputs: Array
    """[3, d] the outputs with K, Q and V."""
    residual_1: float
    """|c_1 - (u_b - u_c)| / |u_b - u_c|"""
    residual_2: float
    """|c_2 - u_b| / |u_b|"""


def kqv(
    vectors: Vectors | None = None, *, beta: float = 4.0, scale: float = 1.0, width: int = 8, seed: int = 0
) -> Finding[KqvResults]:
    """What K, Q and V are good for: outputs that x alone can never give, from outer products.

    The inputs are x_1 = u_d + u_b, x_2 = u_a and x_3 = u_c + u_b, the outputs
    c_1, c_2 and c_3. With q = k = v = x, c_2 is x_2 itself, and adding u_d or
    u_c to x_2 does not turn it into u_b. Matrices made of outer products give
    c_2 = u_b and c_1 = u_b - u_c.

    Examples:
      heedful lab kqv
      heedful lab kqv --beta 2 --figure kqv.svg
      heedful lab kqv --vectors u.npy

    Parameters
    ----------
    vectors
        u_a, u_b, u_c and u_d, one per row: a .npy file, or numbers. By default generated, orthogonal.
    beta
        Length of the generated vectors, and of the queries and keys that are made.
    """
    check_positive(beta=beta, scale=scale)
    if vectors is None:
        if width < 4:
            raise UserError(f"four orthogonal vectors need a width of at least 4, not {width}")
        u = beta * orthonormal(4, width, seed, "u")
    else:
        u = check_vectors("vectors", vectors, count=4)
        if np.linalg.matrix_rank(u) < 4:
            raise UserError("vectors: u_a, u_b, u_c and u_d are not independent")
    x = inputs(u)
    matrices = projections(u, beta)
    plain = compute_output(x, x, x, scale=scale)
    outputs = layer(x, matrices, scale)
    first, second = residuals(outputs, u)
    eps = 1 / (math.exp(scale * beta**2) + 2)  # weight on each of the two keys that are not meant
    ratio = [float(np.linalg.norm(u[1] + u[2])) / float(np.linalg.norm(u[1])),
             float(np.linalg.norm(2 * u[2] - u[1])) / float(np.linalg.norm(u[1] - u[2]))]  # fmt: skip
    numbers = [
        *verify_impossible(u, scale, generated=vectors is None),
        near("|c_2 - u_b| / |u_b|, against eps |u_b + u_c| / |u_b|", second, eps * ratio[0], 1e-9),
        near("|c_1 - (u_b - u_c)| / |u_b - u_c|, against eps |2 u_c - u_b| / |u_b - u_c|", first,
             eps * ratio[1], 1e-9),
    ]  # fmt: skip
    return Finding(
        topic="kqv",
        claim="K, Q and V let attention look for one thing, by another, and return a third",
        construction=(
            f"x_1 = u_d + u_b, x_2 = u_a, x_3 = u_c + u_b; beta = {beta:g}, scale = {scale:g}",
            "w_i is the vector with w_i.u_i = 1 and w_i.u_j = 0: u_i / beta^2 for orthogonal u of norm beta",
            "p_1 and p_2 are orthonormal: u_d / beta and u_c / beta for those",
            "V = u_b w_b^T - u_c w_c^T: v_1 = u_b, v_2 = 0, v_3 = u_b - u_c",
            "K = beta (p_1 w_d^T + p_2 w_c^T): k_1 = beta p_1, k_2 = 0, k_3 = beta p_2",
            "Q = beta (p_1 w_a^T + p_2 w_d^T): q_2 = beta p_1 looks for k_1, q_1 = beta p_2 looks for k_3",
            "eps = 1 / (e^(scale beta^2) + 2) stays on each other key: the residuals are eps times a length",
        ),
        numbers=tuple(numbers),
        results=KqvResults(beta, matrices, plain, outputs, first, second),
        figure=draw(width if vectors is None else 8, scale, seed),
        tables=(
            Table(("", "q = k = v = x", "with K, Q, V"), tuple(
                    (f"c_{i + 1}", coordinates(plain[i], u), coordinates(outputs[i], u)) for i in range(3)
                ), title="outputs in terms of u_a, u_b, u_c, u_d"),
        ),
    )  # fmt: skip


def inputs(u: Array) -> Array:
    """Return x_1, x_2 and x_3, one per row."""
    a, b, c, d = u
    return np.stack([d + b, a, c + b])


def projections(u: Array, beta: float) -> Projections:
    """Return the K, Q and V that give c_1 = u_b - u_c and c_2 = u_b."""
    return wire(u, beta, ANSWER)


def wire(u: Array, beta: float, wiring: Wiring) -> Projections:
    """Return K, Q and V, sums of outer products: one per entry of the wiring that is not 0."""
    duals = np.linalg.pinv(u).T  # w_i.u_j is 1 if i = j, else 0
    p, r = np.linalg.qr(np.stack([u[3], u[2]]).T)
    addresses = p * np.sign(np.diag(r))  # p_1 and p_2 in columns
    return Projections(
        q=beta * addresses @ wiring.q @ duals,
        k=beta * addresses @ wiring.k @ duals,
        v=u.T @ wiring.v @ duals,
    )


def layer(x: Array, matrices: Projections, scale: float) -> Array:
    """Run x through the attention layer of the project's models, with these projections."""
    d = x.shape[1]
    config = TransformerConfig(
        kind="encoder", vocab_size=1, d_model=d, n_layers=1, n_heads=1, d_ff=1, max_len=len(x), scale=scale,
        bias=False, attention_dropout=0.0,
    )  # fmt: skip
    attention = Attention(config, causal=False, cross=False).double().eval()
    with torch.inference_mode():
        parts = (attention.q_proj, attention.k_proj, attention.v_proj, attention.o_proj)
        for part, matrix in zip(parts, (matrices.q, matrices.k, matrices.v, np.eye(d)), strict=True):
            part.weight.copy_(torch.as_tensor(matrix))
        return array(attention(torch.as_tensor(x)[None], Mask())[:, None])


def residuals(outputs: Array, u: Array) -> tuple[float, float]:
    """Return how far c_1 is from u_b - u_c and c_2 from u_b, relative to their lengths."""
    _, b, c, _ = u
    pairs = ((outputs[0], b - c), (outputs[1], b))
    first, second = (float(np.linalg.norm(out - wanted) / np.linalg.norm(wanted)) for out, wanted in pairs)
    return first, second


def verify_impossible(u: Array, scale: float, *, generated: bool) -> list[Number]:
    """Verify that with q = k = v = x the second output stays at x_2, whatever is added to it."""
    numbers = []
    b2 = scale * float(u[0] @ u[0])
    if generated:
        x = inputs(u)
        w = compute_weights(x[1:2], x, scale=scale)[0]
        numbers.append(near("q = k = v = x: weight of c_2 on x_2", w[1], 1 / (1 + 2 * math.exp(-b2)), 1e-12))
    for added, other in (("u_d", u[3]), ("u_c", u[2])):
        on_itself, nearest = 1.0, math.inf
        for t in np.linspace(-3, 3, 61):
            x = inputs(u)
            x[1] = x[1] + t * other
            w = compute_weights(x[1:2], x, scale=scale)[0]
            on_itself = min(on_itself, float(w[1]))
            nearest = min(nearest, float(np.linalg.norm(w @ x - u[1]) / np.linalg.norm(u[1])))
        weight_name = f"x_2 + t {added}: weight of c_2 on x_2 itself, smallest over t from -3 to 3"
        distance_name = f"x_2 + t {added}: distance of c_2 from u_b, relative, smallest"
        if generated:
            # x_2.x_2 - x_2.x_1 = beta^2 (1 + t^2 - t), at least 3/4 beta^2
            least = 1 / (1 + 2 * math.exp(-0.75 * b2)) - 1e-12
            numbers += [at_least(weight_name, on_itself, least), at_least(distance_name, nearest, 0.5)]
        else:
            numbers += [fact(weight_name, on_itself), fact(distance_name, nearest)]
    return numbers


def coordinates(vector: Array, u: Array) -> Array:
    """Return the factors of u_a, u_b, u_c and u_d."""
    return np.asarray(np.round(np.linalg.lstsq(u.T, vector, rcond=None)[0], 12) + 0.0, dtype=np.float64)


def draw(width: int, scale: float, seed: int) -> Chart:
    directions = orthonormal(4, max(width, 4), seed, "u")
    series: dict[str, list[tuple[float, float]]] = {
        "c_2, wanted u_b; q = k = v = x": [],
        "c_1, wanted u_b - u_c; with K, Q, V": [],
        "c_2, wanted u_b; with K, Q, V": [],
    }
    for beta in BETAS:
        u = beta * directions
        x = inputs(u)
        first, second = residuals(layer(x, projections(u, beta), scale), u)
        plain = residuals(compute_output(x, x, x, scale=scale), u)[1]
        for name, value in zip(series, (plain, first, second), strict=True):
            series[name].append((beta, max(value, 1e-17)))
    return lines(
        series,
        title="x alone never gives c_2 = u_b; with K, Q and V it does, the better the longer u is",
        subtitle=f"distance from the wanted vector, relative to its length; scale of the scores {scale:g}",
        x_title="beta, the norm of u",
        y_title="relative distance",
        log_y=True,
    )
