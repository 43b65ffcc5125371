"""Histograms: one sample as bars, several as outlines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from heedful.report.charts import vega
from heedful.report.charts.vega import Chart


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
    """Count values in bins; several named samples share the bins and are drawn as outlines.

    `bins` is the number of bins (rounded so that whole numbers get bins of whole width) or their edges, all
    of which are then on the axis. `share` shows fractions of each sample instead of counts, to compare
    samples of different sizes. `rules` are labeled vertical lines, such as a maximum length.
    """
    samples = values if isinstance(values, Mapping) else {"": values}
    clean = {
        vega.clean_label(name): np.asarray([n for v in sample if (n := vega.finite_or_none(v)) is not None])
        for name, sample in samples.items()
    }
    names = list(clean)
    edges = choose_bin_edges(np.concatenate(list(clean.values())), bins)
    rows: list[dict[str, Any]] = []
    for name, sample in clean.items():
        counts = np.histogram(sample, edges)[0]
        heights = counts / max(1, len(sample)) if share else counts
        for low, high, count, height in zip(edges[:-1], edges[1:], counts, heights, strict=True):
            if count:
                bar = {"x": float(low), "end": float(high), "y": float(height), "count": int(count)}
                rows.append({"series": name, **bar})
    whole = {"nice": True} if isinstance(bins, int) else {"domain": [float(edges[0]), float(edges[-1])]}
    axis = vega.make_axis(x_title, tickCount=12)
    x = {"type": "quantitative", "axis": axis, "scale": {"zero": False, **whole}}
    y_title = y_title or ("share" if share else "count")
    floor = 0.5 * min((row["y"] for row in rows), default=1.0) if log_y else 0.0
    axis = vega.make_axis(y_title, format="%") if share else vega.make_axis(y_title, [0.0])
    scale = {"type": "log", "domainMin": floor} if log_y else {"zero": True}
    height = {"field": "y", "type": "quantitative", "axis": axis, "scale": scale, "stack": None}
    tips = [("x", "from"), ("end", "to"), ("count", "count"), *([("y", "share")] if share else [])]
    tips = [*([("series", "sample")] if len(names) > 1 else []), *tips]
    color = vega.color_by_series(names)
    bars = {
        "x": {**x, "field": "x"},
        "x2": {"field": "end"},
        "y": height,
        "y2": {"datum": floor},
        "color": color,
        "opacity": vega.fade_unselected(names, 0.9 if len(names) == 1 else 0.06, 0.02),
        "tooltip": vega.make_tooltip(*tips),
    }
    mark: dict[str, Any] = {"type": "bar", "binSpacing": 1 if len(names) == 1 else 0}
    data, params = {"values": rows}, vega.make_legend_toggle(names)
    layers: list[vega.Layer] = [{"data": data, "params": params, "mark": mark, "encoding": bars}]
    if len(names) > 1:
        outlines = {
            "x": {**x, "field": "at"},
            "y": {**height, "field": "height"},
            "order": {"field": "index", "type": "quantitative"},
            "color": color,
            "opacity": vega.fade_unselected(names),
        }
        mark = {"type": "line", "interpolate": "step-after", "strokeWidth": 1.5}
        data = {"values": trace_outlines(rows, floor)}
        layers.append({"data": data, "mark": mark, "encoding": outlines})
    layers += vega.draw_vertical_rules(rules, x)
    return vega.make_chart(title, subtitle, {"width": vega.WIDTH, "height": vega.HEIGHT, "layer": layers})


def trace_outlines(rows: Sequence[Mapping[str, Any]], floor: float) -> list[dict[str, Any]]:
    """Return the corners along the top of each sample's bars, from the floor and back to it, also in gaps."""
    points: list[dict[str, Any]] = []
    for name in dict.fromkeys(row["series"] for row in rows):
        path: list[tuple[float, float]] = []
        for row in (row for row in rows if row["series"] == name):
            if not path or path[-1][0] < row["x"]:
                path.append((row["x"], floor))
            else:
                path.pop()
            path += [(row["x"], row["y"]), (row["end"], floor)]
        points += [{"series": name, "at": x, "height": y, "index": i} for i, (x, y) in enumerate(path)]
    return points


def choose_bin_edges(values: np.ndarray, bins: int | Sequence[float]) -> np.ndarray:
    """Choose the edges of bins; whole numbers get a whole width, and if it is 1, bins centered on them."""
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
