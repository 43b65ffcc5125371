"""How text and tables look in a notebook: plain HTML without scripts, in which everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from numbers import Real
from typing import Any

from heedful.errors import one_line

CELL = "text-align: {align}; padding: 0.1em 0.7em;"
MOST_ROWS = 60
"""Rows of a table that are shown; the table itself has all of them."""
COLORS = {"good": "#1a7f37", "warning": "#9a6700", "bad": "#cf222e"}


def render_title(text: str) -> str:
    return f"<div><strong>{escape_text(text)}</strong></div>"


def render_lines(lines: Iterable[str], kind: str = "plain") -> str:
    """Return one paragraph per line; `kind` is plain, good, warning or bad."""
    color = f' style="color: {COLORS[kind]}"' if kind in COLORS else ""
    return "".join(f"<div{color}>{escape_text(line)}</div>" for line in lines)


def render_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], title: str = "") -> str:
    """Return a table whose columns of numbers are right-aligned."""
    shown = rows[:MOST_ROWS]
    numeric = [
        all(cell is None or is_number(cell) for cell in cells) and any(cell is not None for cell in cells)
        for cells in (zip(*shown, strict=True) if shown else [() for _ in columns])
    ]
    styles = [CELL.format(align="right" if number else "left") for number in numeric]
    lines = [render_row("th", columns, styles)]
    lines += [render_row("td", [format_cell(cell) for cell in row], styles) for row in shown]
    more = f"<div>and {len(rows) - MOST_ROWS:,} more rows</div>" if len(rows) > MOST_ROWS else ""
    caption = render_title(title) if title else ""
    return f"{caption}<table><thead>{lines[0]}</thead><tbody>{''.join(lines[1:])}</tbody></table>{more}"


def render_row(tag: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    pairs = zip(cells, styles, strict=True)
    return "<tr>" + "".join(f'<{tag} style="{s}">{escape_text(cell)}</{tag}>' for cell, s in pairs) + "</tr>"


def format_cell(cell: Any) -> str:
    """Return a cell as text: a count with its thousands, any other number with four digits."""
    if cell is None:
        return ""
    if not is_number(cell):
        return str(cell)
    whole = float(cell).is_integer() and abs(cell) < 1e15
    return f"{int(cell):,}" if isinstance(cell, int) and whole else f"{cell:.4g}"


def is_number(cell: Any) -> bool:
    return isinstance(cell, Real) and not isinstance(cell, bool)


def escape_text(text: object) -> str:
    """Return text for HTML, with control characters made visible."""
    return "<br>".join(escape(one_line(line)) for line in str(text).split("\n"))
