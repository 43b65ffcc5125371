"""Mistakes in the options of a batch job, which are found before anything is written."""

from __future__ import annotations

import re
import subprocess

from heedful.errors import UserError, shorten
from heedful.options.launch import LaunchOptions
from heedful.options.values import check_bounds, flag

RESERVED = ("array", "chdir", "error", "open-mode", "output", "parsable", "test-only", "wait", "wrap")
"""Options of sbatch that the batch script depends on."""
KEY = re.compile(r"[a-z][a-z0-9-]*")
GPUS = re.compile(r"(?:[A-Za-z0-9_.-]+:)?[1-9][0-9]*")


def refuse_impossible(options: LaunchOptions) -> None:
    """Refuse options that a batch script cannot have, before anything is written."""
    check_bounds(options)
    if options.gpus is not None and not GPUS.fullmatch(options.gpus):
        raise UserError(
            f'--gpus "{shorten(options.gpus)}": must be a number, or a type and a number such as a100:2'
        )
    for name in ("partition", "account", "qos", "constraint"):
        value = getattr(options, name)
        if value is not None and (not value or not value.isprintable()):
            raise UserError(f'{flag(name)} "{shorten(value)}": cannot be in a batch script')
    for given in options.slurm:
        key, _, value = given.partition("=")
        if not KEY.fullmatch(key.removeprefix("--")):
            raise UserError(f'--slurm "{shorten(given)}": must be key=value, such as nodelist=n1')
        if key.removeprefix("--") in RESERVED:
            raise UserError(f"--slurm {key}: the batch script depends on it; it cannot be set")
        if not value.isprintable():
            raise UserError(f'--slurm "{shorten(given)}": cannot be in a batch script')
    for line in options.setup:
        if "\0" in line:
            raise UserError(f'--setup "{shorten(line)}": cannot be in a batch script')
        read = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, check=False)
        if read.returncode:
            said = read.stderr.strip().splitlines()[:1]
            reason = said[0].removeprefix("bash: -c: ") if said else "bash cannot read it"
            raise UserError(f'--setup "{shorten(line)}": {reason}')
