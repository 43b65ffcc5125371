"""What every benchmark needs: a quiet machine, children that are measured, and medians."""

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

QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}
BUSY = 0.35
"""Share of the processors that others may use before a measurement is refused."""


def refuse_busy(force: bool) -> None:
    """Refuse to measure while others compute; `--force` measures all the same and says so."""
    share = busy_share()
    if share <= BUSY:
        return
    if not force:
        sys.exit(f"the machine is busy ({share:.0%} of its processors): measure later, or add --force")
    print(f"measured on a busy machine ({share:.0%} of its processors are in use)", file=sys.stderr)


def busy_share(seconds: float = 2.0) -> float:
    """The share of processor time that is used right now."""

    def idle_total() -> tuple[int, int]:
        with open("/proc/stat") as file:  # noqa: PTH123
            numbers = [int(x) for x in file.readline().split()[1:]]
        return numbers[3] + numbers[4], sum(numbers)

    idle, total = idle_total()
    time.sleep(seconds)
    later_idle, later_total = idle_total()
    return 1 - (later_idle - idle) / max(1, later_total - total)


def child(module: str, *arguments: str) -> dict[str, Any]:
    """Run `python -m module arguments`; its last line of output is JSON."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"},
    )
    if done.returncode:
        sys.exit(f"{module} {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def cpu_seconds() -> float:
    """Processor time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def interleaved(sides: dict[str, tuple[str, ...]], module: str, repeats: int) -> dict[str, dict[str, float]]:
    """Measure each side `repeats` times, taking turns; medians of every number a child gives."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for turn in range(repeats):
        for name, arguments in sides.items():
            found[name].append(child(module, *arguments))
            last = found[name][-1]
            print(
                f"  {turn + 1}/{repeats} {name}: {last['seconds']:.1f} s, CPU {last['cpu']:.1f} s",
                file=sys.stderr,
            )
    return {name: {key: median(run[key] for run in runs) for key in runs[0]} for name, runs in found.items()}


def compared(
    case: str, against: str, ours: dict[str, float], theirs: dict[str, float], goal: float, roof: float | None
) -> dict[str, Any]:
    """One comparison as a row for the results, printed."""
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
        f"{ours['seconds']:.2f} s against {theirs['seconds']:.2f} s{share}",
        flush=True,
    )
    return row


def write_rows(path: Path, command: str, turns: int, rows: list[dict[str, Any]]) -> None:
    """Write or renew comparisons; those of other cases that the file has stay."""
    kept = json.loads(path.read_text("utf-8"))["rows"] if path.is_file() else []
    new = {row["case"] for row in rows}
    rows = [row for row in kept if row["case"] not in new] + rows
    path.write_text(json.dumps({"command": command, "turns": turns, "rows": rows}, indent=2) + "\n", "utf-8")
