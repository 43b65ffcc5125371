"""Curves with bands, and points with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from heedful.report.parts import (
    HEIGHT,
    WIDTH,
    Chart,
    axis,
    chart,
    colour,
    dash,
    faded,
    haloed,
    level_rules,
    number,
    room,
    scale,
    toggle,
    tooltip,
    vertical_rules,
    words,
    zoom,
)

POINTS_SHOWN = 40
POINTS_KEPT = 1000
POINTS_NAMED = 24
TICKS = 10
INSET = {"range": [{"expr": "height - 8"}, 8]}
"""Values at the ends of the y axis lie a little inside, so that their dots are whole."""


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
    rules: Mapping[str, float] | None = None,
    levels: Mapping[str, float] | None = None,
    guide: Sequence[Sequence[float]] = (),
) -> Chart:
    """Draw curves of points `(x, y)` or `(x, y, low, high)`; low and high become a band.

    `mark_best` puts a dot on each curve's largest or smallest value. `rules` are labelled vertical lines,
    `levels` horizontal ones, such as baselines; `guide` is a line through points that is no curve, such as a
    diagonal. Of shares the y axis is at least `y_least` long. What cannot be drawn (a loss that became
    infinite, a value below zero on a logarithmic axis) leaves a gap. Of a very long curve as many points are
    kept as can be seen, peaks and gaps among them.
    """
    rows: list[dict[str, Any]] = []
    for name, points in series.items():
        curve = [line_row(words(name), point, log_x, log_y) for point in points]
        finite = [row for row in curve if row["y"] is not None]
        if mark_best and finite:
            (max if mark_best == "max" else min)(finite, key=lambda row: cast(float, row["y"]))["best"] = True
        rows += thinned(curve)
    names = [words(name) for name in series]
    most = max((sum(row["series"] == name for row in rows) for name in names), default=0)
    x = {
        "field": "x",
        "type": "quantitative",
        "axis": x_axis(x_title, [row["x"] for row in rows], log_x),
        "scale": scale(log=log_x, domain=x_domain, padding=10),
    }
    known_y = [v for row in rows for v in (row["y"], row["low"], row["high"]) if v is not None]
    y = {
        "field": "y",
        "type": "quantitative",
        "axis": axis(y_title),
        "scale": scale(
            log=log_y,
            domain=y_domain or room([*known_y, *(levels or {}).values()], y_least),
            padding=10 if log_y else None,
        )
        | INSET,
    }
    shared = {"x": x, "color": colour(names, symbolType="stroke", symbolStrokeWidth=3, symbolSize=220)}
    layers: list[Chart] = []
    if any(row["low"] is not None for row in rows):
        band = {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "opacity": faded(names, 0.18, 0.02)}
        layers.append({"mark": {"type": "area", "clip": True}, "encoding": {**shared, **band}})
    hover = [("x", x_title), ("y", y_title), ("low", "low"), ("high", "high")]
    known = [("series", "curve")] if len(names) > 1 else []
    tips = tooltip(*known, *(hover if layers else hover[:2]))
    line = {"type": "line", "strokeWidth": 2.25, "clip": True}
    layers.append(
        {
            "params": [*toggle(names), zoom("x", "y")],
            "mark": line,
            "encoding": {**shared, "y": y, **dash(names, shared["color"]["legend"]), "opacity": faded(names)},
        }
    )
    dots = {**shared, "y": y, "opacity": faded(names), "tooltip": tips}
    size = 28 if most <= POINTS_SHOWN else 0
    layers.append({"mark": {"type": "circle", "size": max(size, 28), "clip": True}, "encoding": dots})
    if not size:  # too many points to draw, yet each one still answers a hover
        layers[-1]["encoding"] = {**dots, "opacity": {"value": 0}}
    if mark_best:
        best = {"type": "point", "shape": "circle", "filled": True, "size": 130, "style": "best"}
        layers.append({"transform": [{"filter": "datum.best"}], "mark": best, "encoding": dots})
    behind = level_rules(levels, y, known_y)
    if guide:
        along = [{"x": number(point[0]), "y": number(point[1])} for point in guide]
        dashed = {"type": "line", "style": "threshold", "clip": True}
        behind.append({"data": {"values": along}, "mark": dashed, "encoding": {"x": x, "y": y}})
    body = {"data": {"values": rows}, "layer": [*behind, *layers, *vertical_rules(rules, x)]}
    return chart(title, subtitle, {"width": WIDTH, "height": HEIGHT, **body})


def x_axis(title: str, values: Sequence[float | None], log: bool) -> dict[str, Any]:
    """Label the x axis; between whole numbers there are no ticks, and never too many.

    A logarithmic axis over several powers of ten has ticks at these alone.
    """
    known = [v for v in values if v is not None]
    if log and (powers := powers_between([v for v in known if v > 0])):
        return axis(title) | {"values": powers, "format": "~g" if min(powers) < 1 else ",d"}
    if log or not known or any(v != int(v) for v in known):
        return axis(title, tickCount=TICKS)
    first, last = int(min(known)), int(max(known))
    each = list(range(first, last + 1)) if last - first < TICKS else None
    return axis(title, known) | ({"tickCount": TICKS} if each is None else {"values": each, "format": ",d"})


def powers_between(values: Sequence[float]) -> list[float]:
    """The powers of ten in a range that has at least three of them; not more than there is room for."""
    if not values:
        return []
    first, last = math.ceil(math.log10(min(values))), math.floor(math.log10(max(values)))
    every = 1 + (last - first) // TICKS
    return [10.0**k for k in range(first, last + 1, every)] if last - first >= 2 else []


def thinned(curve: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Keep a long curve's ends, its best, and of each short stretch the lowest, the highest and a gap."""
    if len(curve) <= POINTS_KEPT:
        return curve
    stride = 2 * len(curve) // POINTS_KEPT
    kept = {0, len(curve) - 1} | {i for i, row in enumerate(curve) if row.get("best")}
    for start in range(0, len(curve), stride):
        stretch = range(start, min(start + stride, len(curve)))
        known = sorted(
            (i for i in stretch if curve[i]["y"] is not None), key=lambda i: cast(float, curve[i]["y"])
        )
        gaps = [i for i in stretch if curve[i]["y"] is None]
        kept |= {*known[:1], *known[-1:], *gaps[:1]}
    return [curve[i] for i in sorted(kept)]


def line_row(name: str, point: Sequence[float | None], log_x: bool, log_y: bool) -> dict[str, Any]:
    """Turn one point of a curve into a row of data, with gaps where nothing can be drawn."""
    x, y, low, high = [*(number(p) for p in point), None, None][:4]
    if log_x and x is not None and x <= 0:
        x = None
    if log_y:
        y, low, high = (v if v is not None and v > 0 else None for v in (y, low, high))
    return {"series": name, "x": x, "y": y, "low": low, "high": high}


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
) -> Chart:
    """Draw points with intervals.

    A row has `x` and `y`, perhaps `low` and `high` (of y), `x_low`, `x_high`, `group` and `label`.
    Rows that have no place (a missing number, or none above zero on a logarithmic axis) are left out.
    """
    data: list[dict[str, Any]] = []
    for row in rows:
        point = {key: number(row.get(key)) for key in ("x", "y", "low", "high", "x_low", "x_high")}
        x, y = point["x"], point["y"]
        if x is None or y is None or (log_x and x <= 0) or (log_y and y <= 0):
            continue
        data.append({**point, "series": words(row.get("group", "")), "label": words(row.get("label", ""))})
    groups = list(dict.fromkeys(row["series"] for row in data))
    known_y = [row[key] for row in data for key in ("y", "low", "high")]
    x_place = {
        "type": "quantitative",
        "axis": x_axis(x_title, [row["x"] for row in data], log_x),
        "scale": scale(log=log_x, domain=x_domain, padding=24),
    }
    y_place = {
        "type": "quantitative",
        "axis": axis(y_title),
        "scale": scale(log=log_y, domain=y_domain or room(known_y)) | INSET,
    }
    place = {
        "x": {"field": "x", **x_place},
        "y": {"field": "y", **y_place},
        "color": colour(groups, group_title),
    }
    tips = tooltip(
        *([("label", "point")] if any(row["label"] for row in data) else []),
        *([("series", group_title or "group")] if len(groups) > 1 else []),
        ("x", x_title),
        ("y", y_title),
        *([("low", "low"), ("high", "high")] if any(row["low"] is not None for row in data) else []),
    )
    layers: list[Chart] = []
    if any(row["low"] is not None for row in data):
        spans = {
            **place,
            "y": {"field": "low", **y_place},
            "y2": {"field": "high"},
            "opacity": faded(groups, 0.6),
        }
        layers.append(
            {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": spans, "transform": has("low")}
        )
    if any(row["x_low"] is not None for row in data):
        spans = {
            **place,
            "x": {"field": "x_low", **x_place},
            "x2": {"field": "x_high"},
            "opacity": faded(groups, 0.6),
        }
        layers.append(
            {"mark": {"type": "rule", "strokeWidth": 1.5}, "encoding": spans, "transform": has("x_low")}
        )
    shape = {
        "field": "series",
        "type": "nominal",
        "sort": groups,
        "legend": place["color"]["legend"],
        "scale": {"domain": groups},
    }
    layers.append(
        {
            "params": [*toggle(groups), zoom("x", "y")],
            "mark": {"type": "point", "filled": True, "size": 90},
            "encoding": {**place, "shape": shape, "opacity": faded(groups, 0.95), "tooltip": tips},
        }
    )
    if any(row["label"] for row in data) and len(data) <= POINTS_NAMED:
        named = {"x": place["x"], "y": place["y"], "text": {"field": "label"}, "opacity": faded(groups)}
        xs = pixels([row["x"] for row in data], x_domain, log_x, (24, WIDTH - 24))
        ys = pixels([row["y"] for row in data], y_domain or room(known_y) or known_y, log_y, (HEIGHT - 8, 8))
        for (align, dx, baseline, dy), spots in beside([row["label"] for row in data], xs, ys).items():
            texts = haloed(named, align=align, baseline=baseline, dx=dx, dy=dy)
            layers += [{"data": {"values": [data[i] for i in spots]}, **text} for text in texts]
    return chart(
        title, subtitle, {"width": WIDTH, "height": HEIGHT, "data": {"values": data}, "layer": layers}
    )


Corner = tuple[str, int, str, int]
"""Where a label stands beside its point: align, dx, baseline, dy."""
ABOVE, BELOW = ("bottom", -3), ("top", 3)
LETTER, LINE = 6.2, 14.0
"""About what a letter of a label takes, in pixels."""


def beside(names: Sequence[str], xs: Sequence[float], ys: Sequence[float]) -> dict[Corner, list[int]]:
    """Put labels beside points at pixels: towards the middle, where room is, unless another lies there."""
    taken = [(x - 5, x + 5, y - 3, y + 3) for x, y in zip(xs, ys, strict=True)]
    found: dict[Corner, list[int]] = {}
    for i, (name, x, y) in enumerate(zip(names, xs, ys, strict=True)):
        towards, away = ("left", 7), ("right", -7)
        if x > (min(xs) + max(xs)) / 2:
            towards, away = away, towards
        corners: list[Corner] = [(*side, *level) for side in (towards, away) for level in (ABOVE, BELOW)]
        boxes = [label_box(corner, x, y, LETTER * len(name)) for corner in corners]
        free = [
            box[0] >= 0 and box[1] <= WIDTH and not any(overlap(box, other) for other in taken)
            for box in boxes
        ]
        best = free.index(True) if any(free) else 0
        taken.append(boxes[best])
        found.setdefault(corners[best], []).append(i)
    return found


Box = tuple[float, float, float, float]


def label_box(corner: Corner, x: float, y: float, width: float) -> Box:
    """The pixels that a label takes: left, right, upper, lower."""
    align, dx, baseline, dy = corner
    left = x + dx - (width if align == "right" else 0)
    upper = y + dy - (LINE if baseline == "bottom" else 0)
    return left, left + width, upper, upper + LINE


def overlap(a: Box, b: Box) -> bool:
    """Whether two rectangles share a pixel."""
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def pixels(
    values: Sequence[float], domain: Sequence[float | None] | None, log: bool, ends: tuple[float, float]
) -> list[float]:
    """About where values lie on an axis that goes from the one end to the other."""
    turned = [math.log(v) if log else v for v in values]
    known = [math.log(v) if log else v for v in (domain or values) if v is not None and (v > 0 or not log)]
    low, high = min(known), max(known)
    return [ends[0] + (v - low) / ((high - low) or 1) * (ends[1] - ends[0]) for v in turned]


def has(field: str) -> list[dict[str, Any]]:
    """Keep the rows of a layer that have a number in this field."""
    return [{"filter": {"field": field, "valid": True}}]
