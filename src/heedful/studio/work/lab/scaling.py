"""The topic scaling, played with: what a length costs, counted, and measured on this machine."""

from __future__ import annotations

from typing import Any

from heedful.lab.cost import HEADS, OPTIONS, WIDTH
from heedful.studio.work.lab.play import find
from heedful.studio.work.lab.settings import Settings
from heedful.studio.work.try_it import report_progress

MEASURED = ("softmax", "linformer", "bigbird", "performer")
LENGTHS = tuple(2**i for i in range(6, 18))
LONGEST, SECONDS = (1024, 2048, 4096), 30.0


def count_kept(name: str, n: int) -> int:
    """Return how many weights or features per head a mechanism works with for n tokens."""
    if name == "linformer":
        return n * min(n, int(OPTIONS[name]["rank"]))
    if name == "performer":
        return 2 * n * int(OPTIONS[name]["features"])  # of queries and of keys
    if name == "bigbird":
        blocks = sum(int(OPTIONS[name][part]) for part in ("window", "n_global", "n_random"))
        return n * min(n, blocks * int(OPTIONS[name]["block"]))
    return n * n


def play(settings: Settings, models: Any, report: Any) -> dict[str, Any]:
    longest = settings.whole("longest", 0, 0, LONGEST[-1])
    shown: dict[str, Any] = {
        "counts": {name: [(n, count_kept(name, n)) for n in LENGTHS] for name in MEASURED},
        "heads": HEADS,
        "width": WIDTH,
    }
    if not longest:
        return shown
    with report_progress(report, "measuring"):
        finding, said = find("scaling", max_length=longest, mechanisms=MEASURED, seconds=SECONDS)
    results = finding.results
    shown["finding"] = said
    shown["measured"] = {
        name: {
            "points": [
                {"length": m.length, "ms": m.forward_ms + m.backward_ms, "mb": m.mb} for m in curve.measured
            ],
            "limit": curve.limit,
        }
        for name, curve in results.not_causal.items()
    }
    return shown
