"""The topic kqv, played with: which features are wired to queries, keys and values, and what comes out."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.lab.arrays import Array, compute_output, compute_weights
from heedful.lab.topics.kqv import ANSWER, Wiring, coordinates, inputs, layer, residuals, wire
from heedful.lab.vectors import orthonormal
from heedful.studio.work.lab.play import find
from heedful.studio.work.lab.settings import Settings

WIDTH = 8
SOLVED = 0.01
"""The outputs are as wanted if each is off by at most this share of its length."""


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    beta, scale = settings.number("beta", 4.0, 0.25, 8.0), settings.number("scale", 1.0, 0.05, 4.0)
    added, amount = settings.choice("added", ("u_d", "u_c")), settings.number("amount", 0.0, -3, 3)
    plain = settings.flag("plain")
    said = find("kqv", beta=beta, scale=scale)[1]
    u = beta * orthonormal(4, WIDTH, 0, "u")
    x = inputs(u)
    x[1] = x[1] + amount * u[{"u_d": 3, "u_c": 2}[added]]
    if plain:
        q = k = x
        outputs = compute_output(x, x, x, scale=scale)
        addresses: dict[str, Array] = {}
    else:
        wiring = Wiring(*(settings.vectors(name, rows, 4) for name, rows in (("q", 2), ("k", 2), ("v", 4))))
        matrices = wire(u, beta, wiring)
        outputs = layer(x, matrices, scale)
        q, k = x @ matrices.q.T, x @ matrices.k.T
        plane = np.stack([u[3], u[2]]) / np.linalg.norm(u[2:4][::-1], axis=1, keepdims=True)
        addresses = {"queries": q @ plane.T, "keys": k @ plane.T}
    first, second = residuals(outputs, u)
    return {
        "finding": said,
        "inputs": coordinates_of(x, u),
        "weights": compute_weights(q, k, scale=scale),
        "scores": scale * q @ k.T,
        "outputs": coordinates_of(outputs, u),
        "residuals": [first, second],
        "solved": max(first, second) <= SOLVED,
        "addresses": addresses,
        "answer": {"q": ANSWER.q, "k": ANSWER.k, "v": ANSWER.v},
    }


def coordinates_of(vectors: Array, u: Array) -> list[Array]:
    return [coordinates(vector, u) for vector in vectors]
