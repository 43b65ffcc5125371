"""Draws small matrices side by side as an SVG, to show where two results differ. No torch, no browser."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

CELL, GAP, TOP, SIDE = 34, 30, 40, 26
LARGEST = 12
"""Rows and columns that are drawn; a larger matrix is cut."""


def draw_heat_maps(
    matrices: Mapping[str, Sequence[Sequence[float]] | Any], rows: str = "query", columns: str = "key"
) -> str:
    """Return an SVG with one heat map per matrix; the values are in the cells.

    Blue is positive and red is negative, on one scale for all; NaN and infinite cells are gray.
    """
    cut = {
        title: [[float(x) for x in row[:LARGEST]] for row in as_lists(m)[:LARGEST]]
        for title, m in matrices.items()
    }
    finite = [abs(x) for m in cut.values() for row in m for x in row if math.isfinite(x)]
    most = max(finite, default=0.0) or 1.0
    left, height, parts = 0, 0, []
    for title, matrix in cut.items():
        width = SIDE + CELL * max((len(row) for row in matrix), default=1)
        parts.append(draw_one(title, matrix, left, most, rows, columns))
        left += max(width, 8 * len(title)) + GAP
        height = max(height, TOP + CELL * len(matrix) + 8)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left}" height="{height}" role="img" '
        f'font-family="sans-serif" font-size="10">{"".join(parts)}</svg>'
    )


def as_lists(matrix: Any) -> list[list[float]]:
    lists: list[list[float]] = matrix.tolist() if hasattr(matrix, "tolist") else [list(r) for r in matrix]
    return lists


def draw_one(title: str, matrix: list[list[float]], left: int, most: float, rows: str, columns: str) -> str:
    """Draw one matrix with its title, from `left` on."""
    parts = [f'<text x="{left}" y="12" font-size="12">{escape(title)}</text>']
    parts.append(f'<text x="{left + SIDE}" y="26" fill="#777">{escape(columns)} &#8594;</text>')
    parts.append(f'<text x="{left}" y="{TOP - 4}" fill="#777">{escape(rows)}</text>')
    for i, row in enumerate(matrix):
        y = TOP + i * CELL
        parts.append(f'<text x="{left + 4}" y="{y + CELL // 2 + 4}" fill="#777">{i}</text>')
        for j, value in enumerate(row):
            x = left + SIDE + j * CELL
            text = f"{value:.2g}" if math.isfinite(value) else str(value)
            dark = math.isfinite(value) and abs(value) > 0.6 * most
            ink = "#fff" if dark else "#111"
            at = f'x="{x + CELL // 2}" y="{y + CELL // 2 + 4}"'
            parts.append(
                f'<rect x="{x}" y="{y}" width="{CELL - 1}" height="{CELL - 1}" fill="{color(value, most)}"/>'
                f'<text {at} text-anchor="middle" fill="{ink}">{text}</text>'
            )
    return "".join(parts)


def color(value: float, most: float) -> str:
    """Return the color of a value: white at 0, blue or red at the largest."""
    if not math.isfinite(value):
        return "#bbb"
    share = min(1.0, abs(value) / most)
    red, green, blue = (33, 102, 172) if value >= 0 else (178, 24, 43)
    return "#" + "".join(f"{round(255 + (channel - 255) * share):02x}" for channel in (red, green, blue))
