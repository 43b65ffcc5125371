"""The topic masking, played with: one position becomes another, and earlier outputs move or stay."""

from __future__ import annotations

from typing import Any

from heedful.attention import Mask
from heedful.lab.arrays import compute_weights
from heedful.lab.random_texts import HONEST
from heedful.lab.topics.masking import MASKS, choose_inputs
from heedful.studio.work.lab.play import find
from heedful.studio.work.lab.settings import Settings
from heedful.studio.work.try_it import report_progress

WIDTH = 8


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    size, seed = settings.whole("size", 6, 2, 12), settings.whole("seed", 0, 0, 10**6)
    scale, steps = settings.number("scale", 1.0, 0.05, 20), settings.whole("steps", 0, 0, 250)
    with report_progress(report, "training"):
        finding, said = find("masking", size=size, width=WIDTH, scale=scale, seed=seed, steps=steps)
    results = finding.results
    q, k, _ = choose_inputs(None, None, None, size, WIDTH, seed)
    return {
        "finding": said,
        "masks": [
            {
                "name": name,
                "weights": compute_weights(q, k, mechanism, scale=scale, mask=Mask(causal=True), **options),
                "sums": results.row_sums[name],
                "changes": results.changes[name],
                "leak": results.leak[name],
                "guess": results.guesses.get(name),
            }
            for name, (mechanism, options) in MASKS.items()
        ],
        "honest": HONEST,
    }
