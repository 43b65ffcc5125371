"""`heedful selftest`: whether everything works on this machine."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

from heedful.cli.check import STATUS_FAILED, STYLES
from heedful.cli.output import Json, console, print_json, print_table

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
    from heedful.contracts.selftest import selftest

    result = selftest(out)
    if json:
        print_json(result.facts)
    else:
        table = result.table()
        status = table.columns.index("status")
        rows = [
            (*row[:status], Text(row[status], style=STYLES[row[status]]), f"{row[status + 1]:.1f}", row[-1])
            for row in table.rows
        ]
        print_table("", table.columns, rows, right=("seconds",))
        console().print(result.verdict, markup=False)
    return 0 if result.passed else STATUS_FAILED
