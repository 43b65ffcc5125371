"""Output of commands: tables and text for people, one JSON object for programs (`--json`)."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, TypeVar

from cyclopts import Parameter
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from heedful.logs import progress_line
from heedful.options.types import MODEL_HELP, TASK_HELP
from heedful.options.types import Flag as Flag

JSON_HELP = "Print one JSON object."
Json = Annotated[bool, Parameter(negative=(), help=JSON_HELP)]
JsonArray = Annotated[bool, Parameter(negative=(), help="Print one JSON array.")]
JsonResults = Annotated[bool, Parameter(negative=(), help="Print results.json.")]
ModelName = Annotated[str, Parameter(help=MODEL_HELP)]
TaskName = Annotated[str, Parameter(help=TASK_HELP)]
Device = Annotated[str, Parameter(help="auto, cpu, cuda, cuda:1 or mps.")]

F = TypeVar("F", bound=Callable[..., Any])
SHORT = 20
"""Cells of up to this many characters stay on one line."""


def print_json(facts: Any) -> None:
    """Write facts as JSON to stdout, which then contains nothing else."""
    json.dump(facts, sys.stdout, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")


def announce(text: str) -> None:
    """Say what begins before anything is imported for it, which takes a second or more."""
    progress_line(text)


@contextmanager
def show_loading(text: str) -> Iterator[None]:
    """Show on a terminal what is being loaded while the body of the `with` loads it; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    print(f"{text} ...", end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        print("\x1b[2K", end="\r", file=sys.stderr, flush=True)


def console() -> Console:
    """Return the console of stdout; for a pipe or a file it is wide enough not to fold tables."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    width = int(os.environ.get("COLUMNS", "0")) or max(160, shutil.get_terminal_size().columns)
    return Console(highlight=False, width=width)


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[str] = ()
) -> None:
    """Print a table; `right` names the columns of numbers. Cells are data, never markup."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", box=None)
    for i, column in enumerate(columns):
        longest = max((len(str(row[i])) for row in rows), default=0)
        table.add_column(
            column,
            justify="right" if column in right else "left",
            no_wrap=column in right or longest <= SHORT,
            min_width=max(len(column), min(longest, SHORT)),
            overflow="fold",
        )
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    out = console()
    least = Measurement.get(out, out.options.update_width(1000), table).minimum
    if least > out.width:
        out.width = least  # a narrow terminal breaks the lines; no cell is ever cut
    out.print(table)


def print_facts(title: str, facts: Mapping[str, object]) -> None:
    width = max((len(name) for name in facts), default=0)
    out = console()
    out.print(Text(title, style="bold"))
    for name, value in facts.items():
        out.print(Text(f"  {name:<{width}}  {value}"))


def describe_from(function: Callable[..., Any]) -> Callable[[F], F]:
    """Return a decorator that describes a command's parameters as the function does that it calls.

    Only what the command's docstring does not describe itself is added at its end.
    """

    def complete(command: F) -> F:
        own = inspect.cleandoc(command.__doc__ or "")
        section = inspect.cleandoc(function.__doc__ or "").partition("\n----------\n")[2].partition("\n\n")[0]
        for entry in re.split(r"\n(?=\w)", section):
            name = entry.partition("\n")[0]
            if name in inspect.signature(command).parameters and f"\n{name}\n" not in own:
                own += f"\n{entry}"
        command.__doc__ = own
        return command

    return complete
