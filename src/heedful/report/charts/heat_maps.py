"""Heat maps: one, or many with a shared color scale, with numbers in the cells if they can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from heedful.errors import UserError
from heedful.report.charts import vega
from heedful.report.charts.vega import Chart

Matrix = Sequence[Sequence[float | None]]
NUMBERS_MOST = 14


@dataclass(frozen=True)
class Grid:
    x_labels: Sequence[object]
    y_labels: Sequence[object]
    x_title: str
    y_title: str
    value_title: str
    form: str | None
    numbers: bool
    diverging: bool


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
    """Draw a matrix, the first row on top.

    A cell without a value is gray; its note, by (row, column), gives the reason. A value with a note gets a
    star, which is explained below the title. `hover` adds to the tooltip of cells. Labels may repeat, as the
    tokens of a sentence do. `domain` fixes the ends of the color scale; by default they are those of the data
    (for proportions at least `least` apart), and symmetric around zero if the scale is `diverging`. `numbers`
    are written into the cells, by default unless there are too many of them.
    """
    rows = make_rows(values, x_labels, y_labels, note=notes or {}, detail=hover or {})
    ends = choose_color_domain([row["value"] for row in rows], domain, diverging, least)
    if numbers is None:
        numbers = max(len(x_labels), len(y_labels)) <= NUMBERS_MOST
    step = choose_cell_size(len(x_labels), len(y_labels), numbers=numbers)
    grid = Grid(x_labels, y_labels, x_title, y_title, value_title, form, numbers, diverging)
    layers = make_layers(rows, grid, ends, step[1] * len(y_labels))
    subtitle = explain_stars(subtitle, rows) if numbers else subtitle
    size = {"width": {"step": step[0]}, "height": {"step": step[1]}}
    return vega.make_chart(title, subtitle, {**size, "data": {"values": rows}, "layer": layers})


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
    """Draw many matrices with the same labels side by side, with one color scale.

    `notes` are those of a heat map, by panel.
    """
    rows: list[dict[str, Any]] = []
    for name, values in panels.items():
        panel_rows = make_rows(values, x_labels, y_labels, note=(notes or {}).get(name, {}))
        rows += [{"panel": vega.clean_label(name), **row} for row in panel_rows]
    ends = choose_color_domain([row["value"] for row in rows], domain, diverging, least)
    width = max(90, min(220, 22 * len(x_labels)))
    height = max(60.0, width * len(y_labels) / max(1, len(x_labels)))
    grid = Grid(x_labels, y_labels, x_title, y_title, value_title, form, numbers, diverging)
    layers = make_layers(rows, grid, ends, height)
    subtitle = explain_stars(subtitle, rows) if numbers else subtitle
    names = [vega.clean_label(name) for name in panels]
    body = {
        "data": {"values": rows},
        "facet": {"field": "panel", "type": "nominal", "sort": names, "header": {"title": None}},
        "columns": columns,
        "spacing": {"row": 18, "column": 18},
        "spec": {"width": width, "height": height, "layer": layers},
    }
    return vega.make_chart(title, subtitle, body)


def make_rows(
    values: Matrix,
    x_labels: Sequence[object],
    y_labels: Sequence[object],
    **texts: Mapping[tuple[int, int], str],
) -> list[dict[str, Any]]:
    """Turn a matrix into one row of data per cell, by position because labels may repeat.

    `texts` are fields that some of the cells have.
    """
    if len(values) != len(y_labels) or any(len(row) != len(x_labels) for row in values):
        raise UserError(f"a heat map with {len(y_labels)} x {len(x_labels)} labels needs as many values")
    return [
        {
            "i": i,
            "j": j,
            "column": vega.clean_label(x_labels[j]),
            "line": vega.clean_label(y_labels[i]),
            "value": vega.finite_or_none(value),
            **{field: vega.clean_label(text[i, j]) for field, text in texts.items() if (i, j) in text},
        }
        for i, row in enumerate(values)
        for j, value in enumerate(row)
    ]


def explain_stars(subtitle: str, rows: Sequence[Mapping[str, Any]]) -> str:
    notes = dict.fromkeys(row["note"] for row in rows if "note" in row and row["value"] is not None)
    return "; ".join([*([subtitle] if subtitle else []), *([f"* {' or '.join(notes)}"] if notes else [])])


def choose_color_domain(
    values: Sequence[float | None], domain: Sequence[float] | None, diverging: bool, least: float | None
) -> tuple[float, float]:
    if domain is not None:
        return float(domain[0]), float(domain[1])
    numbers = [v for v in values if v is not None] or [0.0, 1.0]
    if diverging:
        furthest = max(abs(v) for v in numbers) or 1.0
        return -furthest, furthest
    low, high = min(numbers), max(numbers)
    if (wider := vega.widen_domain(low, high, least)) is not None:
        return wider
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def choose_number_format(values: Sequence[float | None]) -> str:
    """Choose one format for all cells, with the same number of decimals."""
    sizes = [abs(v) for v in values if v is not None]
    largest = max(sizes, default=0.0)
    if all(v == int(v) for v in sizes):
        return ",d"
    if largest < 0.01 or largest >= 1000:
        return ",.3~r" if largest >= 1000 else ".2e"
    return ".3f" if largest < 10 else ".1f"


def choose_cell_size(n_columns: int, n_rows: int, *, numbers: bool) -> tuple[float, float]:
    """Choose the width and height of a cell: wide enough for its number, small if there are many."""
    if numbers:
        return max(54.0, min(88.0, 320.0 / max(1, n_columns))), 44.0 if n_rows < 6 else 34.0
    size = max(6.0, min(26.0, 520.0 / max(n_columns, n_rows)))
    return size, size


def make_position_axis(labels: Sequence[object], title: str, **more: Any) -> dict[str, Any]:
    """Make an axis that labels the positions 0, 1, 2, ..., through an expression of Vega."""
    texts = json.dumps([vega.clean_label(label) for label in labels])
    layout = {"domain": False, "ticks": False, "labelOverlap": False, **more}
    return {"title": vega.clean_label(title) or None, "labelExpr": f"{texts}[datum.value]", **layout}


def make_layers(
    rows: Sequence[dict[str, Any]], grid: Grid, ends: tuple[float, float], height: float
) -> list[Chart]:
    longest = max((len(vega.clean_label(label)) for label in grid.x_labels), default=0)
    angle = -45 if longest > (6 if grid.numbers else 2) else 0
    x_axis = make_position_axis(grid.x_labels, grid.x_title, labelAngle=angle)
    y_axis = make_position_axis(grid.y_labels, grid.y_title)
    position = {
        channel: {"field": field, "type": "ordinal", "axis": axis, "scale": {"padding": 0}}
        for channel, field, axis in (("x", "j", x_axis), ("y", "i", y_axis))
    }
    form = grid.form or choose_number_format([row["value"] for row in rows])
    colors = {"range": "diverging" if grid.diverging else "heatmap", "interpolate": "rgb"}
    number_format = ",.3~r" if ends[1] >= 1000 else ".3~g"
    legend = {"title": vega.clean_label(grid.value_title), "format": number_format}
    shade = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": list(ends), "clamp": True, **colors},
        "legend": {**legend, "gradientLength": min(140.0, height)},
    }
    tips = vega.make_tooltip(
        *([("panel", "panel")] if any("panel" in row for row in rows) else []),
        ("line", grid.y_title or "row"),
        ("column", grid.x_title or "column"),
        ("value", grid.value_title),
        *([("detail", "that is")] if any("detail" in row for row in rows) else []),
        *([("note", "note")] if any("note" in row for row in rows) else []),
    )
    cells = {**position, "color": shade, "tooltip": tips}
    layers: list[Chart] = [{"mark": {"type": "rect"}, "encoding": cells}]
    if any(row["value"] is None for row in rows):
        empty = {"type": "rect", "style": "empty-cell"}
        missing = [{"filter": "!isValid(datum.value)"}]
        layers.append({"transform": missing, "mark": empty, "encoding": {**position, "tooltip": tips}})
    if grid.numbers:
        high = f"datum.value > {ends[0] + 0.55 * (ends[1] - ends[0])}"
        if grid.diverging:
            high = f"abs(datum.value) > {0.62 * max(abs(ends[0]), abs(ends[1]))}"
        for row in rows:
            if (exact := vega.format_value(row["value"], form)) is not None:
                row["exact"] = exact
        plain = f"isValid(datum.exact) ? datum.exact : format(datum.value, {json.dumps(form)})"
        written = {"calculate": f"({plain}) + (isValid(datum.note) ? '*' : '')", "as": "written"}
        text = {**position, "text": {"field": "written", "type": "nominal"}}
        for style, test in (("low-cell", f"!({high})"), ("high-cell", high)):
            select = {"filter": f"isValid(datum.value) && {test}"}
            mark = {"type": "text", "style": style, "fontSize": 11.5}
            layers.append({"transform": [select, written], "mark": mark, "encoding": text})
    return layers
