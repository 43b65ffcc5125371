"""The topic copy, played with: keys, a query and values that are dragged."""

from __future__ import annotations

import math
from typing import Any

from heedful.lab.arrays import compute_output, compute_weights
from heedful.lab.directions import leak, smallest
from heedful.lab.vectors import check_vector, find_index
from heedful.studio.work.lab.play import find, read_curves
from heedful.studio.work.lab.settings import Settings


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    keys = settings.vectors("keys")
    values = settings.vectors("values", count=len(keys))
    query = check_vector("query", settings.vectors("query", count=1)[0], keys.shape[1])
    eps, scale = settings.number("eps", 0.01, 1e-6, 0.4), settings.number("scale", 1.0, 0.05, 20)
    key = settings.whole("key", 1, 1, len(keys))
    finding, said = find("copy", keys=keys, values=values, query=query, key=key, eps=eps, scale=scale)
    copying, j = finding.results.sets["keys"], find_index("key", key, len(keys))
    left = leak(query, keys, [j], scale)
    needed = smallest(query, keys, [j], eps, scale)[0]
    return {
        "finding": said,
        "weights": compute_weights(query[None], keys, scale=scale)[0],
        "output": compute_output(query[None], keys, values, scale=scale)[0],
        "left": left,
        "copied": left <= eps,
        "factor": needed,
        "exists": math.isfinite(copying.scale[j]),
        "direction": copying.directions[j],
        "length": copying.scale[j],
        "margin": copying.margin[j],
        "own_margin": copying.own_margin[j],
        "inside": [i + 1 for i in range(len(keys)) if not math.isfinite(copying.scale[i])],
        "curves": read_curves(finding.figure),
    }
