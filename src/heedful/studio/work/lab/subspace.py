"""The topic subspace, played with: two lines, or a plane and a line, and the average of two values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from heedful.data.random import stream
from heedful.lab.arrays import compute_output
from heedful.lab.vectors import check_vector
from heedful.studio.work.lab.play import find, read_curves
from heedful.studio.work.lab.settings import Settings

SAMPLES = 150


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    a = settings.vectors("a")
    b = settings.vectors("b", width=a.shape[1])
    one = check_vector("the part in A", settings.vectors("one", count=1)[0], len(a))
    other = check_vector("the part in B", settings.vectors("other", count=1)[0], len(b))
    noise = settings.number("noise", 0.05, 1e-4, 1.0)
    finding, said = find("subspace", a=a, b=b, noise=noise)
    case = finding.results.cases["given"]
    v_a, v_b = one @ a, other @ b
    nothing = np.zeros((2, a.shape[1]))
    average = compute_output(nothing[:1], nothing, np.stack([v_a, v_b]))[0]
    shown = {
        "finding": said,
        "v_a": v_a,
        "v_b": v_b,
        "average": average,
        "angle": case.angle,
        "amplification": case.amplification,
        "exists": case.matrix is not None,
        "common": case.common,
        "matrix": case.matrix,
        "straight": 2 * a.T @ np.linalg.solve(a @ a.T, a @ average),
        "curves": read_curves(finding.figure),
    }
    if case.matrix is not None:
        cloud = average + noise * stream(0, "studio noise").standard_normal((SAMPLES, a.shape[1]))
        recovered = cloud @ case.matrix.T
        shown |= {
            "recovered": case.matrix @ average,
            "cloud": cloud,
            "recovered_cloud": recovered,
            "error": math.sqrt(np.square(recovered - v_a).sum(1).mean()),
        }
    return shown
