"""Run every benchmark, one after the other (`python -m benchmarks`). This needs time and an idle machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

QUICK = {"tokenize_memory": ["--mb", "200"]}
"""Arguments that shorten a benchmark from hours to minutes; run it by name to get all of it."""

PARTS = ("machine", "studio_attention")
"""Files that others run."""


def main() -> int:
    """Run each benchmark in its own process, so that none disturbs another."""
    here = Path(__file__).parent
    status = 0
    for path in sorted(here.glob("*.py")):
        if path.stem.startswith("__") or path.stem in PARTS:
            continue
        print(f"== {path.stem}", flush=True)
        command = [sys.executable, "-m", f"benchmarks.{path.stem}", *QUICK.get(path.stem, [])]
        status |= subprocess.run(command, check=False).returncode
    return status


sys.exit(main())
