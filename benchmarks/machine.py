"""Functions that all benchmarks share: check that the machine is idle, time child processes, take medians."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}
BUSY = 0.35
"""Share of the processors in use above which a measurement is refused."""


def refuse_busy(force: bool) -> None:
    """Exit if the machine is busy; with `--force`, only print a warning."""
    share = busy_share()
    if share <= BUSY:
        return
    if not force:
        sys.exit(f"the machine is busy ({share:.0%} of its processors in use): try later, or add --force")
    print(f"measuring on a busy machine ({share:.0%} of its processors in use)", file=sys.stderr)


def busy_share(seconds: float = 2.0) -> float:
    """Return the share of processor time that is in use now."""

    def idle_total() -> tuple[int, int]:
        with open("/proc/stat") as file:  # noqa: PTH123
            numbers = [int(x) for x in file.readline().split()[1:]]
        return numbers[3] + numbers[4], sum(numbers)

    idle, total = idle_total()
    time.sleep(seconds)
    later_idle, later_total = idle_total()
    return 1 - (later_idle - idle) / max(1, later_total - total)


def run_child(module: str, *arguments: str) -> dict[str, Any]:
    """Run `python -m module arguments` and return the JSON in its last line of output."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | OFFLINE,
    )
    if done.returncode:
        sys.exit(f"{module} {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    measurement: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return measurement


def cpu_seconds() -> float:
    """Return the processor time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def measure_in_turns(
    sides: dict[str, tuple[str, ...]], module: str, repeats: int
) -> dict[str, dict[str, float]]:
    """Measure the sides in turns, `repeats` times each, and return the median of every number."""
    measurements: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for turn in range(repeats):
        for name, arguments in sides.items():
            last = run_child(module, *arguments)
            measurements[name].append(last)
            print(
                f"  {turn + 1}/{repeats} {name}: {last['seconds']:.1f} s, CPU {last['cpu']:.1f} s",
                file=sys.stderr,
            )
    return {
        name: {key: median(run[key] for run in runs) for key in runs[0]}
        for name, runs in measurements.items()
    }


def compare_sides(
    case: str, against: str, ours: dict[str, float], theirs: dict[str, float], goal: float, roof: float | None
) -> dict[str, Any]:
    """Print one comparison and return it as a row of the results."""
    row = {
        "case": case,
        "against": against,
        "times": theirs["seconds"] / ours["seconds"],
        "goal": goal,
        "cpu_times": theirs["cpu"] / ours["cpu"],
        "seconds": ours["seconds"],
        "their_seconds": theirs["seconds"],
        "roof": roof,
    }
    share = "" if roof is None else f"; {roof:.0%} of the roof"
    print(
        f"{case:12} {against:12} {row['times']:6.2f} times (goal {goal:g}); "
        f"CPU time {row['cpu_times']:.2f} times; "
        f"{ours['seconds']:.2f} s, theirs {theirs['seconds']:.2f} s{share}",
        flush=True,
    )
    return row


def write_rows(path: Path, command: str, turns: int, rows: list[dict[str, Any]]) -> None:
    """Write rows to a file, replacing earlier rows of the same cases and keeping the others."""
    earlier = json.loads(path.read_text("utf-8"))["rows"] if path.is_file() else []
    new = {row["case"] for row in rows}
    rows = [row for row in earlier if row["case"] not in new] + rows
    path.write_text(json.dumps({"command": command, "turns": turns, "rows": rows}, indent=2) + "\n", "utf-8")
