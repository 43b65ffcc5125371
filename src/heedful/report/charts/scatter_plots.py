"""Scatter plots: points with intervals and labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from heedful.report.charts import vega
from heedful.report.charts.line_charts import INSET, make_x_axis
from heedful.report.charts.vega import Chart

LABELED_POINTS = 24
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
LETTER_WIDTH, LINE_HEIGHT = 6.2, 14.0
"""About how many pixels a label takes."""
ABOVE, BELOW = ("bottom", -3), ("top", 3)
NUMBERS = ("x", "y", "low", "high", "x_low", "x_high")
Box = tuple[float, float, float, float]
Corner = tuple[str, int, str, int]
"""The position of a label relative to its point: align, dx, baseline, dy."""


def scatter(
    rows: Iterable[Mapping[str, Any]],
    *,
    title: str,
    x_title: str,
    y_title: str,
    subtitle: str = "",
    group_title: str = "",
    log_x: bool = False,
    log_y: bool = False,
    x_domain: Sequence[float] | None = None,
    y_domain: Sequence[float] | None = None,
    levels: Mapping[str, float] | None = None,
) -> Chart:
    """Draw points with intervals; `levels` are labeled horizontal lines, such as baselines.

    A row has `x` and `y`, and may have `low` and `high` (of y), `x_low`, `x_high`, `group` and `label`.
    Rows that cannot be drawn (a missing number, or one below zero on a logarithmic axis) are left out.
    """
    data: list[dict[str, Any]] = []
    for row in rows:
        point = {key: vega.finite_or_none(row.get(key)) for key in NUMBERS}
        x, y = point["x"], point["y"]
        if x is None or y is None or (log_x and x <= 0) or (log_y and y <= 0):
            continue
        group, label = vega.clean_label(row.get("group", "")), vega.clean_label(row.get("label", ""))
        data.append({**point, "series": group, "label": label})
    groups = list(dict.fromkeys(row["series"] for row in data))
    y_values = [row[key] for row in data for key in ("y", "low", "high")]
    y_ends = y_domain or vega.choose_domain([*y_values, *(levels or {}).values()])
    x_scale = vega.make_scale(log=log_x, domain=x_domain, padding=24)
    y_scale = vega.make_scale(log=log_y, domain=y_ends) | INSET
    ticks = make_x_axis(x_title, [row["x"] for row in data], log_x)
    x_axis = {"type": "quantitative", "axis": ticks, "scale": x_scale}
    y_axis = {"type": "quantitative", "axis": vega.make_axis(y_title), "scale": y_scale}
    color = vega.color_by_series(groups, group_title)
    position = {"x": {"field": "x", **x_axis}, "y": {"field": "y", **y_axis}, "color": color}
    has_labels = any(row["label"] for row in data)
    has_intervals = any(row["low"] is not None for row in data)
    tips = vega.make_tooltip(
        *([("label", "point")] if has_labels else []),
        *([("series", group_title or "group")] if len(groups) > 1 else []),
        ("x", x_title),
        ("y", y_title),
        *([("low", "low"), ("high", "high")] if has_intervals else []),
    )
    known = [value for value in [*y_values, *(y_ends or ())] if value is not None]
    layers = vega.draw_horizontal_rules(levels, position["y"], known)
    for low, high, ends in (
        ("low", "high", {"y": {"field": "low", **y_axis}, "y2": {"field": "high"}}),
        ("x_low", "x_high", {"x": {"field": "x_low", **x_axis}, "x2": {"field": "x_high"}}),
    ):
        if spans := [row for row in data if row[low] is not None and row[high] is not None]:
            encoding = {**position, **ends, "opacity": vega.fade_unselected(groups, 0.6)}
            whisker = {"type": "rule", "strokeWidth": 1.5}
            layers.append({"data": {"values": spans}, "mark": whisker, "encoding": encoding})
    opacity, params = vega.fade_unselected(groups, 0.95), [*vega.make_legend_toggle(groups), vega.ZOOM]
    shape = {**color, "scale": {**color["scale"], "range": order_shapes(groups, color["scale"]["domain"])}}
    encoding = {**position, "shape": shape, "opacity": opacity, "tooltip": tips}
    mark = {"type": "point", "filled": True, "size": 90}
    layers.append({"params": params, "mark": mark, "encoding": encoding})
    if has_labels and len(data) <= LABELED_POINTS:
        xs = estimate_pixels([row["x"] for row in data], x_domain, log_x, (24, vega.WIDTH - 24))
        limits, heights = y_ends or [*y_values, *(levels or {}).values()], (vega.HEIGHT - 8, 8)
        ys = estimate_pixels([row["y"] for row in data], limits, log_y, heights)
        lines = estimate_pixels(list((levels or {}).values()), limits, log_y, heights)
        named = [
            (vega.WIDTH - LETTER_WIDTH * len(name), vega.WIDTH, y - LINE_HEIGHT - 4, y + LINE_HEIGHT + 4)
            for name, y in zip(levels or {}, lines, strict=True)
        ]
        opacity = vega.fade_unselected(groups)
        encoding = {"x": position["x"], "y": position["y"], "text": {"field": "label"}, "opacity": opacity}
        corners = place_labels([row["label"] for row in data], xs, ys, named)
        for (align, dx, baseline, dy), indices in corners.items():
            texts = vega.draw_outlined_text(encoding, align=align, baseline=baseline, dx=dx, dy=dy)
            layers += [{"data": {"values": [data[i] for i in indices]}, **text} for text in texts]
    body = {"width": vega.WIDTH, "height": vega.HEIGHT, "data": {"values": data}, "layer": layers}
    return vega.make_chart(title, subtitle, body)


def order_shapes(groups: Sequence[str], domain: Sequence[str]) -> list[str]:
    """Return the shape at each position of a color scale, so that the groups have the shapes in order."""
    shapes = {group: SHAPES[i % len(SHAPES)] for i, group in enumerate(groups)}
    return [shapes.get(name, SHAPES[0]) for name in domain]


def place_labels(
    names: Sequence[str], xs: Sequence[float], ys: Sequence[float], others: Sequence[Box] = ()
) -> dict[Corner, list[int]]:
    """Choose a corner of each point for its label: towards the middle if it is free, else any free corner.

    `others` are the boxes of other labels. Returns the indices of the labels by corner.
    """
    taken = [*others, *((x - 5, x + 5, y - 3, y + 3) for x, y in zip(xs, ys, strict=True))]
    placed: dict[Corner, list[int]] = {}
    for i, (name, x, y) in enumerate(zip(names, xs, ys, strict=True)):
        inward, outward = ("left", 7), ("right", -7)
        if x > (min(xs) + max(xs)) / 2:
            inward, outward = outward, inward
        corners: list[Corner] = [(*side, *level) for side in (inward, outward) for level in (ABOVE, BELOW)]
        boxes = [find_label_box(corner, x, y, LETTER_WIDTH * len(name)) for corner in corners]
        best = next((j for j, box in enumerate(boxes) if is_free(box, taken)), 0)
        taken.append(boxes[best])
        placed.setdefault(corners[best], []).append(i)
    return placed


def find_label_box(corner: Corner, x: float, y: float, width: float) -> Box:
    """Return the pixels that a label covers: left, right, top, bottom."""
    align, dx, baseline, dy = corner
    left = x + dx - (width if align == "right" else 0)
    top = y + dy - (LINE_HEIGHT if baseline == "bottom" else 0)
    return left, left + width, top, top + LINE_HEIGHT


def is_free(a: Box, taken: Sequence[Box]) -> bool:
    overlaps = any(a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3] for b in taken)
    return a[0] >= 0 and a[1] <= vega.WIDTH and not overlaps


def estimate_pixels(
    values: Sequence[float], domain: Sequence[float | None] | None, log: bool, ends: tuple[float, float]
) -> list[float]:
    def transform(value: float) -> float:
        return math.log(value) if log else value

    limits = [transform(v) for v in (domain or values) if v is not None and (v > 0 or not log)]
    low, high = min(limits), max(limits)
    return [ends[0] + (transform(v) - low) / ((high - low) or 1) * (ends[1] - ends[0]) for v in values]
