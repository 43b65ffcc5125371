"""Charts from plain numbers, as Vega-Lite specifications: `histogram`, `lines`, `bars`, `scatter`, heat maps.

Each function gives a plain dictionary. `save` writes it as PNG, SVG, PDF or HTML; `heedful.report.page` puts
many into one file. Specifications are written directly rather than through altair: importing altair costs
0.6 seconds on every command that draws, and the forms here are few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Literal, cast

import numpy as np

from heedful.report.heat import heat_map, small_multiples
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
    number,
    scale,
    toggle,
    tooltip,
    vertical_rules,
    words,
    zoom,
)
from heedful.report.save import save

__all__ = ["Chart", "bars", "heat_map", "histogram", "lines", "save", "scatter", "small_multiples"]

POINTS_SHOWN = 40
LABELLED_BARS = 24


def histogram(
    values: Sequence[float] | Mapping[str, Sequence[float]],
    *,
    title: str,
    x_title: str,
    y_title: str = "",
    subtitle: str = "",
    bins: int | Sequence[float] = 30,
    share: bool = False,
    rules: Mapping[str, float] | None = None,
    log_y: bool = False,
) -> Chart:
    """Count values in bins; several named samples share the bins and are drawn over each other.

    `bins` is a number of bins (rounded so that whole numbers get bins of whole width) or the edges.
    `share` shows each sample as shares of itself, which compares samples of different size.
    `rules` are labelled vertical lines, such as a maximum length.
    """
    samples = values if isinstance(values, Mapping) else {"": values}
    clean = {words(k): np.asarray([n for v in s if (n := number(v)) is not None]) for k, s in samples.items()}
    names = list(clean)
    edges = bin_edges(np.concatenate(list(clean.values())), bins)
    rows: list[dict[str, Any]] = []
    for name, sample in clean.items():
        counts = np.histogram(sample, edges)[0]
        heights = counts / max(1, len(sample)) if share else counts
        for low, high, count, height in zip(edges[:-1], edges[1:], counts, heights, strict=True):
            if count:
                rows.append(
                    {
                        "series": name,
                        "x": float(low),
                        "end": float(high),
                        "y": float(height),
                        "count": int(count),
                    }
                )
    x = {"type": "quantitative", "title": words(x_title), "scale": {"zero": False, "nice": True}}
    y_title = y_title or ("share" if share else "count")
    floor = 0.5 * min((row["y"] for row in rows), default=1.0) if log_y else 0.0
    height = {
        "field": "y",
        "type": "quantitative",
        "axis": axis(y_title, format="%") if share else axis(y_title, [0.0]),
        "scale": {"type": "log", "domainMin": floor} if log_y else {"zero": True},
        "stack": None,
    }
    body = {
        "data": {"values": rows},
        "params": toggle(names),
        "mark": {"type": "bar", "binSpacing": 1 if len(names) == 1 else 0},
        "encoding": {
            "x": {**x, "field": "x"},
            "x2": {"field": "end"},
            "y": height,
            "y2": {"datum": floor},
            "color": colour(names),
            "opacity": faded(names, 0.9 if len(names) == 1 else 0.55),
            "tooltip": tooltip(
                *([("series", "sample")] if len(names) > 1 else []),
                ("x", "from"),
                ("end", "to"),
                ("count", "count"),
                *([("y", "share")] if share else []),
            ),
        },
    }
    return chart(
        title, subtitle, {"width": WIDTH, "height": HEIGHT, "layer": [body, *vertical_rules(rules, x)]}
    )


def bin_edges(values: np.ndarray, bins: int | Sequence[float]) -> np.ndarray:
    """Choose the edges of bins; whole numbers get a whole width, centred on the numbers when it is one."""
    if not isinstance(bins, int):
        return np.asarray(bins, dtype=float)
    if not len(values):
        return np.asarray([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    if np.all(values == np.round(values)):
        width = max(1.0, np.ceil((high - low + 1) / bins))
        start = low - 0.5 if width == 1 else np.floor(low / width) * width
        return cast(np.ndarray, start + width * np.arange(np.floor((high - start) / width) + 2))
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


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
    mark_best: Literal["max", "min"] | None = None,
    rules: Mapping[str, float] | None = None,
) -> Chart:
    """Draw curves of points `(x, y)` or `(x, y, low, high)`; low and high become a band.

    `mark_best` puts a dot on each curve's largest or smallest value. What cannot be drawn (a loss that became
    infinite, a value below zero on a logarithmic axis) leaves a gap.
    """
    rows: list[dict[str, Any]] = []
    for name, points in series.items():
        curve = [line_row(words(name), point, log_x, log_y) for point in points]
        finite = [row for row in curve if row["y"] is not None]
        if mark_best and finite:
            (max if mark_best == "max" else min)(finite, key=lambda row: cast(float, row["y"]))["best"] = True
        rows += curve
    names = [words(name) for name in series]
    most = max((sum(row["series"] == name for row in rows) for name in names), default=0)
    x = {
        "field": "x",
        "type": "quantitative",
        "axis": axis(x_title, [row["x"] for row in rows]),
        "scale": scale(log=log_x, domain=x_domain, padding=10),
    }
    y = {
        "field": "y",
        "type": "quantitative",
        "axis": axis(y_title),
        "scale": scale(log=log_y, domain=y_domain, padding=10 if log_y else None),
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
            "encoding": {**shared, "y": y, **dash(names), "opacity": faded(names)},
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
    body = {"data": {"values": rows}, "layer": [*layers, *vertical_rules(rules, x)]}
    return chart(title, subtitle, {"width": WIDTH, "height": HEIGHT, **body})


def line_row(name: str, point: Sequence[float | None], log_x: bool, log_y: bool) -> dict[str, Any]:
    """Turn one point of a curve into a row of data, with gaps where nothing can be drawn."""
    x, y, low, high = [*(number(p) for p in point), None, None][:4]
    if log_x and x is not None and x <= 0:
        x = None
    if log_y:
        y, low, high = (v if v is not None and v > 0 else None for v in (y, low, high))
    return {"series": name, "x": x, "y": y, "low": low, "high": high}


def bars(
    rows: Iterable[Mapping[str, Any]],
    *,
    title: str,
    y_title: str,
    x_title: str = "",
    subtitle: str = "",
    group_title: str = "",
    y_domain: Sequence[float] | None = None,
    form: str = ",.3~r",
    rules: Mapping[str, float] | None = None,
) -> Chart:
    """Draw bars from zero, with intervals.

    A row has `label` and `value`, perhaps `low`, `high`, `group` and `note`.
    A row without a value has failed: it stands at height 0 with its `note`, the reason, written there.
    `rules` are labelled horizontal lines, such as a baseline.
    """
    data = [bar_row(row) for row in rows]
    labels = list(dict.fromkeys(row["label"] for row in data))
    groups = list(dict.fromkeys(row["series"] for row in data))
    width = max(WIDTH, 34 * len(labels) * len(groups))
    room = int(width / max(1, len(labels)) / 6.5)
    folded = fold(labels, room)
    turned = any(len(line) > room for label in folded.values() for line in label.split("\n"))
    for row in data:
        row["folded"] = folded[row["label"]]
    x: dict[str, Any] = {
        "field": "folded",
        "type": "nominal",
        "sort": list(folded.values()),
        "axis": axis(
            x_title,
            labelAngle=-35 if turned else 0,
            labelExpr="split(datum.label, '\\n')",
            labelOverlap=False,
        ),
        "scale": {"paddingInner": 0.25},
    }
    within = {"field": "series", "type": "nominal", "sort": groups, "scale": {"domain": groups}}
    place = {"x": x} | ({"xOffset": within} if len(groups) > 1 else {})
    y = {
        "field": "value",
        "type": "quantitative",
        "axis": axis(y_title or "value"),
        "scale": scale(domain=y_domain, zero=True),
    }
    tips = tooltip(
        ("label", x_title or "bar"),
        *([("series", group_title or "group")] if len(groups) > 1 else []),
        ("value", y_title),
        ("low", "low"),
        ("high", "high"),
        ("note", "note"),
    )
    drawn, failed = [row for row in data if not row["failed"]], [row for row in data if row["failed"]]
    layers: list[Chart] = [
        {
            "data": {"values": data},
            "params": toggle(groups),
            "mark": {"type": "bar", "clip": True},
            "encoding": {
                **place,
                "y": y,
                "color": colour(groups, group_title),
                "opacity": faded(groups, 0.92, 0.15),
                "tooltip": tips,
            },
        },
        {
            "data": {"values": [row for row in drawn if row["low"] is not None]},
            "mark": {"type": "rule", "strokeWidth": 1.5},
            "encoding": {**place, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "tooltip": tips},
        },
    ]
    if len(data) <= LABELLED_BARS:
        above = {**place, "y": {**y, "field": "top"}, "text": {"field": "value", "format": form}}
        layers += [{"data": {"values": drawn}, **text} for text in haloed(above, baseline="bottom", dy=-4)]
    if failed:
        text = {
            "type": "text",
            "style": "reason",
            "angle": 270,
            "align": "left",
            "baseline": "middle",
            "dx": 5,
        }
        stands = {**place, "y": y, "text": {"field": "reason"}, "tooltip": tips}
        layers.append({"data": {"values": failed}, "mark": text, "encoding": stands})
    if rules:
        marks = [{"value": number(at), "label": words(label)} for label, at in rules.items()]
        level = {"y": {**y, "field": "value"}}
        named = {**level, "x": {"value": "width"}, "text": {"field": "label"}}
        lettering = haloed(named, align="right", baseline="bottom", dy=-3, dx=-3)
        layers.append(
            {"data": {"values": marks}, "mark": {"type": "rule", "style": "threshold"}, "encoding": level}
        )
        layers += [{"data": {"values": marks}, **text} for text in lettering]
    return chart(title, subtitle, {"width": width, "height": HEIGHT, "layer": layers})


def bar_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a caller's row into a row of data; one without a value failed, and says why."""
    value, low, high = (number(row.get(key)) for key in ("value", "low", "high"))
    note = words(row.get("note") or "")
    return {
        "label": words(row["label"]),
        "series": words(row.get("group", "")),
        "value": 0.0 if value is None else value,
        "low": low,
        "high": high,
        "top": max(v for v in (0.0, value, high) if v is not None),
        "note": note,
        "reason": (note if len(note) <= 40 else note[:39] + "…") or "failed",
        "failed": value is None,
    }


def fold(labels: Sequence[str], width: int) -> dict[str, str]:
    """Fold labels over up to three lines to stand under their bars; one that cannot stays whole."""
    wrapped = {label: wrap(label, max(6, width), break_long_words=False) or [""] for label in labels}
    if any(len(rows) > 3 or max(map(len, rows)) > max(6, width) for rows in wrapped.values()):
        return {label: label for label in labels}
    return {label: "\n".join(rows) for label, rows in wrapped.items()}


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
    x_place = {
        "type": "quantitative",
        "axis": axis(x_title),
        "scale": scale(log=log_x, domain=x_domain, padding=24),
    }
    y_place = {"type": "quantitative", "axis": axis(y_title), "scale": scale(log=log_y, domain=y_domain)}
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
    if any(row["label"] for row in data) and len(data) <= LABELLED_BARS:
        named = {"x": place["x"], "y": place["y"], "text": {"field": "label"}, "opacity": faded(groups)}
        places = [math.log(row["x"]) if log_x else row["x"] for row in data]
        middle = (min(places) + max(places)) / 2
        for align, dx, right in (
            ("left", 7, False),
            ("right", -7, True),
        ):  # towards the middle, where room is
            side = [row for row, at in zip(data, places, strict=True) if (at > middle) is right]
            texts = haloed(named, align=align, baseline="bottom", dx=dx, dy=-3)
            layers += [{"data": {"values": side}, **text} for text in texts if side]
    return chart(
        title, subtitle, {"width": WIDTH, "height": HEIGHT, "data": {"values": data}, "layer": layers}
    )


def has(field: str) -> list[dict[str, Any]]:
    """Keep the rows of a layer that have a number in this field."""
    return [{"filter": {"field": field, "valid": True}}]
