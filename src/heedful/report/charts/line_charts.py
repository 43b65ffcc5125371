"""Line charts: curves with bands, rules and marked best values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from heedful.report.charts import vega
from heedful.report.charts.vega import Chart

DOTS_MOST = 40
POINTS_MOST = 1000
SQUARE = 320
TINY = 1e-3
"""Numbers below this are written as powers of ten, as learning rates usually are."""
TICKS = 10
INSET = {"range": [{"expr": "height - 8"}, 8]}
"""A range of the y axis with a margin, so that dots at its ends are whole."""


def lines(
    series: Mapping[str, Iterable[Sequence[float | None]]],
    *,
    title: str,
    x_title: str,
    y_title: str,
    subtitle: str = "",
    log_x: bool = False,
    log_y: bool = False,
    x_domain: Sequence[float] | None = None,
    y_domain: Sequence[float] | None = None,
    y_least: float | None = None,
    mark_best: Literal["max", "min"] | None = None,
    marks: Mapping[str, float] | None = None,
    rules: Mapping[str, float] | None = None,
    levels: Mapping[str, float] | None = None,
    guide: Sequence[Sequence[float]] = (),
    square: bool = False,
) -> Chart:
    """Draw curves of points `(x, y)` or `(x, y, low, high)`; low and high become a band.

    `mark_best` puts a dot on each curve's largest or smallest value; a curve that is named in `marks` has
    it at that x instead. `rules` are labeled vertical lines, `levels` labeled horizontal ones, such as
    baselines; `guide` is a dashed line through points, such as a diagonal. A `square` chart has axes of the
    same length. An axis of proportions is at least `y_least` long. A value that cannot be drawn (an infinite
    loss, a value below zero on a logarithmic axis) leaves a gap. A very long curve is thinned to as many
    points as can be seen, with its peaks and gaps.
    """
    rows: list[dict[str, Any]] = []
    for name, points in series.items():
        curve = [make_row(vega.clean_label(name), point, log_x, log_y) for point in points]
        finite = [row for row in curve if row["y"] is not None]
        if marks and name in marks:
            for row in finite:
                row["best"] = row["x"] == marks[name]
        elif mark_best and finite:
            (max if mark_best == "max" else min)(finite, key=lambda row: cast(float, row["y"]))["best"] = True
        rows += thin(curve)
    names = [vega.clean_label(name) for name in series]
    most = max((sum(row["series"] == name for row in rows) for name in names), default=0)
    axis = make_x_axis(x_title, [row["x"] for row in rows], log_x)
    scale = vega.make_scale(log=log_x, domain=x_domain, padding=10)
    x = {"field": "x", "type": "quantitative", "axis": axis, "scale": scale}
    y_values = [v for row in rows for v in (row["y"], row["low"], row["high"]) if v is not None]
    y_ends = y_domain or vega.choose_domain([*y_values, *(levels or {}).values()], y_least)
    scale = vega.make_scale(log=log_y, domain=y_ends, padding=10 if log_y else None) | INSET
    y = {"field": "y", "type": "quantitative", "axis": vega.make_axis(y_title), "scale": scale}
    color = vega.color_by_series(names, symbolType="stroke", symbolStrokeWidth=3, symbolSize=220)
    shared = {"x": x, "color": color}
    layers: list[vega.Layer] = []
    if any(row["low"] is not None for row in rows):
        opacity = vega.fade_unselected(names, 0.18, 0.02)
        band = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "opacity": opacity}
        layers.append({"mark": {"type": "area", "clip": True}, "encoding": {**shared, **band}})
    hover = [("x", x_title), ("y", y_title), ("low", "low"), ("high", "high")]
    which = [("series", "curve")] if len(names) > 1 else []
    tips = vega.make_tooltip(*which, *(hover if layers else hover[:2]))
    params = [*vega.make_legend_toggle(names), vega.ZOOM]
    line = {"type": "line", "strokeWidth": 2.25, "clip": True}
    dashes = vega.dash_by_series(names, color["legend"])
    curves = {**shared, "y": y, **dashes, "opacity": vega.fade_unselected(names)}
    layers.append({"params": params, "mark": line, "encoding": curves})
    dots = {**shared, "y": y, "opacity": vega.fade_unselected(names), "tooltip": tips}
    # Too many points are not drawn, but each still answers a hover.
    circles = dots if most <= DOTS_MOST else {**dots, "opacity": {"value": 0}}
    layers.append({"mark": {"type": "circle", "size": 28, "clip": True}, "encoding": circles})
    if mark_best:
        best = {"type": "point", "shape": "circle", "filled": True, "size": 130, "style": "best"}
        layers.append({"transform": [{"filter": "datum.best"}], "mark": best, "encoding": dots})
    rules_across = vega.draw_horizontal_rules(levels, y, [*y_values, *(y_ends or ())])
    background, names_above = rules_across[:1], rules_across[1:]  # the curves must not cover the names
    if guide:
        guide_points = [dict(zip("xy", map(vega.finite_or_none, point), strict=True)) for point in guide]
        dashed = {"type": "line", "style": "threshold", "clip": True}
        background.append({"data": {"values": guide_points}, "mark": dashed, "encoding": {"x": x, "y": y}})
    body = {
        "data": {"values": rows},
        "layer": [*background, *layers[:-1], *names_above, *layers[-1:], *vega.draw_vertical_rules(rules, x)],
    }
    size = {"width": SQUARE, "height": SQUARE} if square else {"width": vega.WIDTH, "height": vega.HEIGHT}
    return vega.make_chart(title, subtitle, {**size, **body})


def make_x_axis(title: str, values: Sequence[float | None], log: bool) -> dict[str, Any]:
    """Make the x axis, with no ticks between whole numbers.

    A logarithmic axis over several powers of ten has ticks only at these.
    """
    numbers = [v for v in values if v is not None]
    if log and (powers := list_powers_of_ten([v for v in numbers if v > 0])):
        return vega.make_axis(title) | {"values": powers, "format": "~g" if min(powers) < 1 else ",d"}
    if log or not numbers or any(v != int(v) for v in numbers):
        if log and len(set(numbers)) == 1:  # the only tick
            return vega.make_axis(title, tickCount=TICKS) | {"format": ".2~g"}
        is_tiny = log and min((v for v in numbers if v > 0), default=1) < TINY
        return vega.make_axis(title, tickCount=TICKS) | ({"format": "~e"} if is_tiny else {})
    first, last = int(min(numbers)), int(max(numbers))
    if last - first >= TICKS:
        return vega.make_axis(title, numbers, tickCount=TICKS)
    return vega.make_axis(title, numbers) | {"values": list(range(first, last + 1)), "format": ",d"}


def list_powers_of_ten(values: Sequence[float]) -> list[float]:
    """Return the powers of ten in a range that has at least three of them, no more than there is room for."""
    if not values:
        return []
    first, last = math.ceil(math.log10(min(values))), math.floor(math.log10(max(values)))
    every = 1 + (last - first) // TICKS
    return [10.0**k for k in range(first, last + 1, every)] if last - first >= 2 else []


def thin(curve: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep a long curve's ends and best, and the lowest, the highest and one gap of each short stretch."""
    if len(curve) <= POINTS_MOST:
        return curve
    stride = 2 * len(curve) // POINTS_MOST
    indices = {0, len(curve) - 1} | {i for i, row in enumerate(curve) if row.get("best")}
    for start in range(0, len(curve), stride):
        stretch = range(start, min(start + stride, len(curve)))
        drawn = [i for i in stretch if curve[i]["y"] is not None]
        by_value = sorted(drawn, key=lambda i: cast(float, curve[i]["y"]))
        gaps = [i for i in stretch if curve[i]["y"] is None]
        indices |= {*by_value[:1], *by_value[-1:], *gaps[:1]}
    return [curve[i] for i in sorted(indices)]


def make_row(name: str, point: Sequence[float | None], log_x: bool, log_y: bool) -> dict[str, Any]:
    """Turn one point of a curve into a row of data, with None for what cannot be drawn."""
    x, y, low, high = [*(vega.finite_or_none(p) for p in point), None, None][:4]
    if log_x and x is not None and x <= 0:
        x = None
    if log_y:
        y, low, high = (v if v is not None and v > 0 else None for v in (y, low, high))
    return {"series": name, "x": x, "y": y, "low": low, "high": high}
