"""The topic argmax, played with: what jumps and what slides as a query moves, and three models that learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.lab.arrays import compute_output, compute_weights
from heedful.lab.lookup import BLIND
from heedful.lab.vectors import check_vector
from heedful.studio.work.lab.play import find, read_curves
from heedful.studio.work.lab.settings import Settings
from heedful.studio.work.try_it import report_progress

REACH, POINTS = 4.0, 161


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    keys = settings.vectors("keys")
    values = settings.vectors("values", count=len(keys))
    query = check_vector("query", settings.vectors("query", count=1)[0], keys.shape[1])
    scale = settings.number("scale", 1.0, 0.05, 50)
    steps = settings.whole("steps", 0, 0, 400)
    with report_progress(report, "training"):
        finding, said = find("argmax", keys=keys, values=values, query=query, scale=scale, steps=steps)
    results = finding.results
    soft = compute_weights(query[None], keys, scale=scale)[0]
    line = np.repeat(query[None], POINTS, axis=0)
    line[:, 0] = np.linspace(-REACH, REACH, POINTS)
    turns = {
        name: compute_output(line, keys, values, name, scale=scale)[:, 0] for name in ("softmax", "argmax")
    }
    shown = {
        "finding": said,
        "scores": results.scores,
        "selected": results.selected,
        "weights": {"softmax": soft, "argmax": compute_weights(query[None], keys, "argmax", scale=scale)[0]},
        "output": {"softmax": soft @ values, "argmax": results.output},
        "gradients": {
            "argmax": results.gradient,
            "softmax": results.softmax_gradient,
            "straight-through": results.straight_through_gradient,
        },
        "path": {name: list(zip(line[:, 0], outputs, strict=True)) for name, outputs in turns.items()},
    }
    if steps:
        learned = {
            name: {"loss": one.loss, "accuracy": one.accuracy, "changed": one.changed, "entries": one.entries}
            for name, one in results.lookups.items()
        }
        shown |= {"losses": read_curves(finding.figure), "learned": learned, "blind": BLIND}
    return shown
