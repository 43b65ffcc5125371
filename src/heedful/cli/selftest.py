"""`heedful selftest`: whether everything works on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from heedful.cli.check import STATUS_FAILED, STYLES
from heedful.cli.output import Json, console, print_json, print_table
from heedful.errors import one_line

if TYPE_CHECKING:
    from heedful.contracts.selftest import SelfCheck

DEFAULT_OUT = Path("heedful-selftest.json")


def command(*, out: Path = DEFAULT_OUT, json: Json = False) -> int:
    """Check that everything works on this machine, and write a file about it to send.

    On the CPU and on every GPU it checks the contracts of all attention
    mechanisms, training steps of every method on every model family, a run that
    is stopped and resumed, and the speed of bfloat16; then training in several
    processes, and Slurm if there is one (nothing is submitted). It takes about a
    minute. The file has versions, hardware and results, and no names of people,
    machines or folders. The exit status is 1 if something failed.

    Examples:
      heedful selftest
      heedful selftest --out my-machine.json --json

    Parameters
    ----------
    out
        File to write.
    json
        Print one JSON object.
    """
    from heedful.contracts.selftest import run_selftest
    from heedful.runs.files import write_json

    facts = run_selftest(print_progress)
    write_json(out, facts)
    if json:
        print_json(facts)
    else:
        rows = [
            (
                check["subject"],
                check["device"],
                Text(check["status"], style=STYLES[check["status"]]),
                f"{check['seconds']:.1f}",
                one_line(check["message"]),
            )
            for check in facts["checks"]
        ]
        print_table("", ("subject", "device", "status", "seconds", "result"), rows, right=("seconds",))
        failed = [check["subject"] for check in facts["checks"] if check["status"] == "failed"]
        verdict = f"failed: {', '.join(failed)}" if failed else "everything works on this machine"
        console().print(f"{verdict}; {out} is a file to send", markup=False)
    return STATUS_FAILED if facts["status"] == "failed" else 0


def print_progress(check: SelfCheck, number: int, total: int) -> None:
    where = f" on {check.device}" if check.device else ""
    print(f"{number} of {total}: {check.subject}{where}: {check.status}", file=sys.stderr, flush=True)
