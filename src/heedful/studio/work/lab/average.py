"""The topic average, played with: which keys are chosen, which query averages them, and how long it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.lab.arrays import compute_output, compute_weights
from heedful.lab.topics.average import distance
from heedful.studio.work.lab.play import find, read_curves
from heedful.studio.work.lab.settings import Settings


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    keys = settings.vectors("keys")
    values = settings.vectors("values", count=len(keys))
    chosen = settings.numbers("chosen")
    eps, scale = settings.number("eps", 0.01, 1e-6, 0.4), settings.number("scale", 1.0, 0.05, 20)
    length = settings.number("length", 1.0, 0.0, 1e4)
    finding, said = find("average", keys=keys, values=values, chosen=chosen, eps=eps, scale=scale)
    results = finding.results
    mean = keys[[number - 1 for number in chosen]].mean(0)
    target = np.isin(np.arange(len(keys)) + 1, chosen) / len(chosen)
    directions = {"mean": mean}
    if results.query is not None:
        directions["exact"] = results.query * np.linalg.norm(mean)
    queries = {}
    for name, direction in directions.items():
        query = length * direction
        weights = compute_weights(query[None], keys, scale=scale)[0]
        output = compute_output(query[None], keys, values, scale=scale)[0]
        queries[name] = {
            "query": query,
            "weights": weights,
            "output": output,
            "wrong": distance(weights, target),
        }
    obstacle = results.obstacle
    others = [i for i in range(len(keys)) if i + 1 not in chosen]
    return {
        "finding": said,
        "queries": queries,
        "target": values[[number - 1 for number in chosen]].mean(0),
        "direction": results.query,
        "margin": results.margin,
        "needed": results.scale,
        "gap": results.gap,
        "best": results.best_scale,
        "obstacle": None if obstacle is None else {
            "point": obstacle.others @ keys[others],
            "chosen": obstacle.chosen,
            "others": obstacle.others,
        },
        "curves": read_curves(finding.figure),
    }  # fmt: skip
