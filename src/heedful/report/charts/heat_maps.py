"""Heat maps: one, or many with a shared color scale, with numbers in the cells if they can be read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import UserError
from heedful.report.charts import vega
from heedful.report.charts.vega import Chart

Matrix = Sequence[Sequence[float | None]]
NUMBERS_MOST = 14
NUMBER_LETTERS = 6
COLUMNS_MOST = 6


def heat_map(
    values: Matrix | Mapping[str, Matrix],
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
    columns: int | None = None,
    notes: Mapping[Any, Any] | None = None,
    hover: Mapping[tuple[int, int], str] | None = None,
    written: Mapping[tuple[int, int], str] | None = None,
) -> Chart:
    """Draw a matrix, the first row on top; or several, by name, side by side with one color scale.

    A cell without a value is gray; its note, by (row, column), gives the reason. A value with a note gets a
    star, which is explained below the title. `hover` adds to the tooltip of cells. Labels may repeat, as the
    tokens of a sentence do. `domain` fixes the ends of the color scale; by default they are those of the data
    (for proportions at least `least` apart), and symmetric around zero if the scale is `diverging`. `numbers`
    are written into the cells, by default into those of one matrix that is not too large; `written` is the
    text to write there instead, by (row, column).

    Several matrices have the same labels, are in rows of `columns` (12 are by default in 3 rows of 4), and
    have their notes by name.
    """
    rows: list[dict[str, Any]] = []
    if isinstance(values, Mapping):
        for name, matrix in values.items():
            panel_rows = make_rows(matrix, x_labels, y_labels, note=(notes or {}).get(name, {}))
            rows += [{"panel": vega.clean_label(name), **row} for row in panel_rows]
    else:
        texts = {"note": notes or {}, "detail": hover or {}, "exact": written or {}}
        rows = make_rows(values, x_labels, y_labels, **texts)
        numbers = max(len(x_labels), len(y_labels)) <= NUMBERS_MOST if numbers is None else numbers
    ends = choose_color_domain([row["value"] for row in rows], domain, diverging, least)
    position = make_positions(x_labels, y_labels, x_title, y_title, rotated_from=7 if numbers else 3)
    tips = vega.make_tooltip(
        *([("panel", "panel")] if any("panel" in row for row in rows) else []),
        ("line", y_title or "row"),
        ("column", x_title or "column"),
        ("value", value_title),
        *([("detail", "that is")] if any("detail" in row for row in rows) else []),
        *([("note", "note")] if any("note" in row for row in rows) else []),
    )
    letters = max(map(len, (written or {}).values()), default=NUMBER_LETTERS) if numbers else 0
    width, height = choose_cell_size(len(x_labels), len(y_labels), letters)
    size: dict[str, Any] = {"width": {"step": width}, "height": {"step": height}}
    whole_height = height * len(y_labels)
    if isinstance(values, Mapping):
        width = max(90, min(220, 22 * len(x_labels)))
        whole_height = max(60.0, width * len(y_labels) / max(1, len(x_labels)))
        size = {"width": width, "height": whole_height}
    colors = {"range": "diverging" if diverging else "heatmap", "interpolate": "rgb"}
    legend = {"title": vega.clean_label(value_title), "format": ",.3~r" if ends[1] >= 1000 else ".3~g"}
    shade = {
        "field": "value",
        "type": "quantitative",
        "scale": {"domain": list(ends), "clamp": True, **colors},
        "legend": {**legend, "gradientLength": min(140.0, whole_height)},
    }
    cells = {**position, "color": shade, "tooltip": tips}
    layers: list[vega.Layer] = [{"mark": {"type": "rect"}, "encoding": cells}]
    if any(row["value"] is None for row in rows):
        empty = {"type": "rect", "style": "empty-cell"}
        missing = [{"filter": "!isValid(datum.value)"}]
        layers.append({"transform": missing, "mark": empty, "encoding": {**position, "tooltip": tips}})
    if numbers:
        layers += write_numbers(rows, position, ends, form, diverging)
        subtitle = explain_stars(subtitle, rows)
    body: vega.Layer = {"data": {"values": rows}}
    if isinstance(values, Mapping):
        names = [vega.clean_label(name) for name in values]
        facet = {"field": "panel", "type": "nominal", "sort": names, "header": {"title": None}}
        spacing = {"row": 18, "column": 18}
        across = columns or choose_columns(len(names))
        body |= {"facet": facet, "columns": across, "spacing": spacing, "spec": {**size, "layer": layers}}
    else:
        body |= {**size, "layer": layers}
    return vega.make_chart(title, subtitle, body)


small_multiples = heat_map


def choose_columns(n: int) -> int:
    """Choose the number of columns for `n` panels: nearly a square, with full rows if possible."""
    near = max(1, math.ceil(math.sqrt(n)))
    return next((columns for columns in range(near, COLUMNS_MOST + 1) if n % columns == 0), min(near, 4))


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


def choose_cell_size(n_columns: int, n_rows: int, letters: int) -> tuple[float, float]:
    """Choose the width and height of a cell: wide enough for its letters, small if there are many."""
    if letters:
        least = max(30.0, 7.0 * letters + 12)
        return max(least, min(88.0, 320.0 / max(1, n_columns))), 44.0 if n_rows < 6 else 30.0
    size = max(6.0, min(26.0, 520.0 / max(n_columns, n_rows)))
    return size, size


def make_positions(
    x_labels: Sequence[object], y_labels: Sequence[object], x_title: str, y_title: str, *, rotated_from: int
) -> dict[str, Any]:
    """Make axes that label the positions 0, 1, 2, ...; long labels of the x axis are rotated."""
    longest = max((len(vega.clean_label(label)) for label in x_labels), default=0)
    layout = {"domain": False, "ticks": False, "labelOverlap": False}
    channels: dict[str, Any] = {}
    for channel, field, labels, title in (("x", "j", x_labels, x_title), ("y", "i", y_labels, y_title)):
        texts = json.dumps([vega.clean_label(label) for label in labels])
        axis = {"title": vega.clean_label(title) or None, "labelExpr": f"{texts}[datum.value]", **layout}
        channels[channel] = {"field": field, "type": "ordinal", "axis": axis, "scale": {"padding": 0}}
    channels["x"]["axis"]["labelAngle"] = -45 if longest >= rotated_from else 0
    return channels


def write_numbers(
    rows: Sequence[dict[str, Any]],
    position: Mapping[str, Any],
    ends: tuple[float, float],
    form: str | None,
    diverging: bool,
) -> list[vega.Layer]:
    """Write each value into its cell, in an ink that can be read on the cell's color."""
    form = form or choose_number_format([row["value"] for row in rows])
    high = f"datum.value > {ends[0] + 0.55 * (ends[1] - ends[0])}"
    if diverging:
        high = f"abs(datum.value) > {0.62 * max(abs(ends[0]), abs(ends[1]))}"
    for row in rows:
        if (exact := vega.format_value(row["value"], form)) is not None:
            row.setdefault("exact", exact)
    plain = f"isValid(datum.exact) ? datum.exact : format(datum.value, {json.dumps(form)})"
    written = {"calculate": f"({plain}) + (isValid(datum.note) ? '*' : '')", "as": "written"}
    text = {**position, "text": {"field": "written", "type": "nominal"}}
    layers = []
    for style, test in (("low-cell", f"!({high})"), ("high-cell", high)):
        select = {"filter": f"isValid(datum.value) && {test}"}
        mark = {"type": "text", "style": style, "fontSize": 11.5}
        layers.append({"transform": [select, written], "mark": mark, "encoding": text})
    return layers
