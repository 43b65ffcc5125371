"""Heat maps: one, or many with a shared colour scale. Numbers stand in the cells when they can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import UserError
from heedful.report.parts import Chart, axis, chart, number, tooltip, widened, words, written
from heedful.report.theme import CELL_DARK_INK, CELL_EMPTY, CELL_LIGHT_INK

Matrix = Sequence[Sequence[float | None]]
NUMBERS_UP_TO = 14


def heat_map(
    values: Matrix,
    *,
    x_labels: Sequence[object],
    y_labels: Sequence[object],
    title: str,
    x_title: str = "",
    y_title: str = "",
    value_title: str = "value",
    subtitle: str = "",
    domain: Sequence[float] | None = None,
    least: float | None = None,
    form: str | None = None,
    numbers: bool | None = None,
    diverging: bool = False,
    notes: Mapping[tuple[int, int], str] | None = None,
    hover: Mapping[tuple[int, int], str] | None = None,
) -> Chart:
    """Draw a matrix, rows from above. A cell without a value is grey; its note, by (row, column), says why.
    A value with a note gets a star, which is explained below the title; `hover` adds to what a hover tells.

    Labels may repeat, as the tokens of a sentence do. `domain` fixes the ends of the colour scale (otherwise
    those of the data, of shares at least `least` apart; with `diverging` they lie symmetric around zero).
    `numbers` are written into the cells unless there are too many of them.
    """
    rows = cells(values, x_labels, y_labels, notes or {})
    for row in rows:
        if (told := (hover or {}).get((row["i"], row["j"]))) is not None:
            row["told"] = words(told)
    ends = value_domain([row["value"] for row in rows], domain, diverging, least)
    if numbers is None:
        numbers = max(len(x_labels), len(y_labels)) <= NUMBERS_UP_TO
    step = cell_step(len(x_labels), len(y_labels), written=numbers)
    layers = cell_layers(
        rows,
        ends,
        x=(x_labels, x_title),
        y=(y_labels, y_title),
        value_title=value_title,
        form=form,
        height=step[1] * len(y_labels),
        numbers=numbers,
        diverging=diverging,
    )
    subtitle = starred(subtitle, rows) if numbers else subtitle
    body = {
        "width": {"step": step[0]},
        "height": {"step": step[1]},
        "data": {"values": rows},
        "layer": layers,
    }
    return chart(title, subtitle, body)


def small_multiples(
    panels: Mapping[str, Matrix],
    *,
    x_labels: Sequence[object],
    y_labels: Sequence[object],
    title: str,
    x_title: str = "",
    y_title: str = "",
    value_title: str = "value",
    subtitle: str = "",
    domain: Sequence[float] | None = None,
    least: float | None = None,
    form: str | None = None,
    numbers: bool = False,
    diverging: bool = False,
    columns: int = 4,
    notes: Mapping[str, Mapping[tuple[int, int], str]] | None = None,
) -> Chart:
    """Draw many matrices with the same labels side by side, one colour scale for all of them.

    `notes` are those of a heat map, by panel.
    """
    rows: list[dict[str, Any]] = []
    for name, values in panels.items():
        own = (notes or {}).get(name, {})
        rows += [{"panel": words(name), **row} for row in cells(values, x_labels, y_labels, own)]
    ends = value_domain([row["value"] for row in rows], domain, diverging, least)
    width = max(90, min(220, 22 * len(x_labels)))
    height = max(60.0, width * len(y_labels) / max(1, len(x_labels)))
    layers = cell_layers(
        rows,
        ends,
        x=(x_labels, x_title),
        y=(y_labels, y_title),
        value_title=value_title,
        form=form,
        height=height,
        numbers=numbers,
        diverging=diverging,
        panel=True,
    )
    subtitle = starred(subtitle, rows) if numbers else subtitle
    names = [words(name) for name in panels]
    body = {
        "data": {"values": rows},
        "facet": {"field": "panel", "type": "nominal", "sort": names, "header": {"title": None}},
        "columns": columns,
        "spacing": {"row": 18, "column": 18},
        "spec": {
            "width": width,
            "height": height,
            "layer": layers,
        },
    }
    return chart(title, subtitle, body)


def cells(
    values: Matrix,
    x_labels: Sequence[object],
    y_labels: Sequence[object],
    notes: Mapping[tuple[int, int], str],
) -> list[dict[str, Any]]:
    """List a matrix cell by cell, by position, because labels may repeat."""
    if len(values) != len(y_labels) or any(len(row) != len(x_labels) for row in values):
        raise UserError(f"a heat map with {len(y_labels)} x {len(x_labels)} labels needs as many values")
    return [
        {
            "i": i,
            "j": j,
            "column": words(x_labels[j]),
            "line": words(y_labels[i]),
            "value": number(value),
            **({"note": words(notes[i, j])} if (i, j) in notes else {}),
        }
        for i, row in enumerate(values)
        for j, value in enumerate(row)
    ]


def starred(subtitle: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Say what the stars at numbers mean."""
    told = dict.fromkeys(row["note"] for row in rows if "note" in row and row["value"] is not None)
    return "; ".join([*([subtitle] if subtitle else []), *([f"* {' or '.join(told)}"] if told else [])])


def value_domain(
    values: Sequence[float | None],
    domain: Sequence[float] | None,
    diverging: bool,
    least: float | None = None,
) -> tuple[float, float]:
    """Choose the two ends of the colour scale."""
    if domain is not None:
        return float(domain[0]), float(domain[1])
    known = [v for v in values if v is not None] or [0.0, 1.0]
    if diverging:
        far = max(abs(v) for v in known) or 1.0
        return -far, far
    low, high = min(known), max(known)
    if (wider := widened(low, high, least)) is not None:
        return wider
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def number_form(values: Sequence[float | None]) -> str:
    """Choose one format for all cells, so that their decimals stand alike."""
    known = [abs(v) for v in values if v is not None]
    largest = max(known, default=0.0)
    if all(v == int(v) for v in known):
        return ",d"
    if largest < 0.01 or largest >= 1000:
        return ",.3~r" if largest >= 1000 else ".2e"
    return ".3f" if largest < 10 else ".1f"


def cell_step(n_columns: int, n_rows: int, *, written: bool) -> tuple[float, float]:
    """Choose the size of a cell: wide enough for its number, small when there are many."""
    if written:
        return max(54.0, min(88.0, 320.0 / max(1, n_columns))), 44.0 if n_rows < 6 else 34.0
    size = max(6.0, min(26.0, 520.0 / max(n_columns, n_rows)))
    return size, size


def position_axis(labels: Sequence[object], title: str, **more: Any) -> dict[str, Any]:
    """Label positions 0, 1, 2, ... with words, as string literals of Vega's expression language."""
    literal = json.dumps([words(label) for label in labels])
    return axis(title, labelExpr=f"{literal}[datum.value]", domain=False, ticks=False, **more) | {
        "title": words(title) or None
    }


def cell_layers(
    rows: Sequence[dict[str, Any]],
    ends: tuple[float, float],
    *,
    x: tuple[Sequence[object], str],
    y: tuple[Sequence[object], str],
    value_title: str,
    form: str | None,
    height: float,
    numbers: bool,
    diverging: bool,
    panel: bool = False,
) -> list[Chart]:
    """Build the cells and the numbers in them."""
    (x_labels, x_title), (y_labels, y_title) = x, y
    turned = max((len(words(label)) for label in x_labels), default=0) > (6 if numbers else 2)
    place = {
        "x": {
            "field": "j",
            "type": "ordinal",
            "axis": position_axis(x_labels, x_title, labelAngle=-45 if turned else 0, labelOverlap=False),
            "scale": {"padding": 0},
        },
        "y": {
            "field": "i",
            "type": "ordinal",
            "axis": position_axis(y_labels, y_title, labelOverlap=False),
            "scale": {"padding": 0},
        },
    }
    form = form or number_form([row["value"] for row in rows])
    shade = {
        "field": "value",
        "type": "quantitative",
        "scale": {
            "domain": list(ends),
            "clamp": True,
            "range": "diverging" if diverging else "heatmap",
            "interpolate": "rgb",
        },
        "legend": {
            "title": words(value_title),
            "format": ",.3~r" if ends[1] >= 1000 else ".3~g",
            "gradientLength": min(140.0, height),
        },
    }
    tips = tooltip(
        *([("panel", "panel")] if panel else []),
        ("line", y_title or "row"),
        ("column", x_title or "column"),
        ("value", value_title),
        *([("told", "that is")] if any("told" in row for row in rows) else []),
        *([("note", "note")] if any("note" in row for row in rows) else []),
    )
    layers: list[Chart] = [
        {"mark": {"type": "rect"}, "encoding": {**place, "color": shade, "tooltip": tips}},
    ]
    if any(row["value"] is None for row in rows):
        empty = {"type": "rect", "color": CELL_EMPTY}
        missing = [{"filter": "!isValid(datum.value)"}]
        layers.append({"transform": missing, "mark": empty, "encoding": {**place, "tooltip": tips}})
    if numbers:
        test = f"datum.value > {ends[0] + 0.55 * (ends[1] - ends[0])}"
        if diverging:
            test = f"abs(datum.value) > {0.62 * max(abs(ends[0]), abs(ends[1]))}"
        ink = {"condition": {"test": test, "value": CELL_LIGHT_INK}, "value": CELL_DARK_INK}
        text = {"field": "written", "type": "nominal"}
        for row in rows:
            if (exact := written(row["value"], form)) is not None:
                row["exact"] = exact
        plain = f"isValid(datum.exact) ? datum.exact : format(datum.value, {json.dumps(form)})"
        starred_number = f"({plain}) + (isValid(datum.note) ? '*' : '')"
        layers.append(
            {
                "transform": [
                    {"filter": "isValid(datum.value)"},
                    {"calculate": starred_number, "as": "written"},
                ],
                "mark": {"type": "text", "fontSize": 11.5},
                "encoding": {**place, "text": text, "color": ink},
            }
        )
    return layers
