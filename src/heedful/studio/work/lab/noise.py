"""The topic noise, played with: the window of beta, and one head beside two."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.lab.topics.noise import (
    NEAR,
    cases,
    draw_keys,
    near_share,
    pair_query,
    predicted_error,
    sample,
    spread_error,
)
from heedful.lab.vectors import orthonormal
from heedful.studio.work.lab.play import find
from heedful.studio.work.lab.settings import Settings

SHOWN, BINS, CURVE = 120, 25, 41


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    alpha = 10 ** settings.number("alpha", -6, -7, -0.5)
    size, seed = settings.whole("size", 10, 3, 24), settings.whole("seed", 0, 0, 10**6)
    samples = settings.whole("samples", 4000, 500, 20000)
    wanted = settings.number("beta", 0, -1, 4)
    beta = None if settings.params.get("beta") in (None, "") else 10**wanted
    lengths = settings.flag("lengths", True)
    finding, said = find("noise", alpha=alpha, beta=beta, size=size, samples=samples, seed=seed)
    results = finding.results
    means = orthonormal(size, size, seed, "means")
    keys = draw_keys(means, alpha, SHOWN, seed, lengths=lengths)
    if lengths:
        weights = results.weight
        shares = {name: pair[0] for name, pair in results.near_average.items()}
    else:
        still = cases(*sample(means, alpha, results.beta, 1.0, samples, seed, lengths=False))
        weights = {name: w[:, 0] for name, w in still.items()}
        shares = {name: near_share(w) for name, w in still.items()}
    edges = np.linspace(0, 1, BINS + 1)
    betas = np.geomspace(0.1, 10 * results.window[1], CURVE)  # quadrature is not meant for more
    return {
        "finding": said,
        "beta": results.beta,
        "window": results.window,
        "error": spread_error(means, alpha, results.beta, 1.0, samples, seed),
        "predicted": predicted_error(size, alpha, results.beta),
        "near": NEAR,
        "missed": results.missed,
        "shares": shares,
        "histograms": {
            name: [
                ((low + high) / 2, count / max(1, len(w)))
                for low, high, count in zip(edges[:-1], edges[1:], np.histogram(w, edges)[0], strict=True)
            ]
            for name, w in weights.items()
        },
        "cloud": {
            "k_a": keys[:, 0] @ means[:2].T,
            "k_b": keys[:, 1] @ means[:2].T,
            "others": keys[:, 2] @ means[:2].T,
        },
        "query": pair_query(means, 1.0) @ means[:2].T,
        "curve": [(x, predicted_error(size, alpha, x)) for x in betas],
    }
