"""`python -m benchmarks`: every benchmark, one after the other. Takes a while, wants a quiet machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

QUICK = {"tokenize_memory": ["--mb", "200"]}
"""Arguments that keep a benchmark of hours to minutes; run it by name for the whole."""


def main() -> int:
    """Run each in a process of its own, so that none disturbs another."""
    here = Path(__file__).parent
    status = 0
    for path in sorted(here.glob("*.py")):
        if path.stem.startswith("__") or path.stem == "machine":
            continue
        print(f"== {path.stem}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{path.stem}", *QUICK.get(path.stem, [])]
        status |= subprocess.run(command, check=False).returncode
    return status


sys.exit(main())
