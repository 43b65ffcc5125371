"""Bar charts, with intervals and with the reason for missing values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from heedful.report.charts import vega
from heedful.report.charts.vega import Chart

LABELED_BARS = 60
LABEL_LETTERS, LABEL_LINES = 22, 3
"""The size of the labels of bars: a phone still has room for the bars beside them."""
REASON_LETTERS, REASON_LINES = 40, 3
LETTER_WIDTH, LINE_HEIGHT = 6.8, 15
WEAK = 0.4
"""The opacity of bars that others are compared with."""


def bars(
    rows: Iterable[Mapping[str, Any]],
    *,
    title: str,
    y_title: str,
    x_title: str = "",
    subtitle: str = "",
    group_title: str = "",
    y_domain: Sequence[float] | None = None,
    form: str | None = None,
    rules: Mapping[str, float] | None = None,
    band: Mapping[str, Any] | None = None,
) -> Chart:
    """Draw bars from zero to the right, with intervals; the first is on top.

    A row has `label` and `value`, and may have `low`, `high`, `group`, `note` and `weak` (whether it is only
    there to be compared with). A row without a value has failed: it has length 0 and its `note`, the reason,
    is written there; if all bars of a label failed for the same reason, only once. `rules` are labeled lines
    across the bars, such as a baseline. `band` is a shaded interval across them: `low`, `high` and `group`.
    `y_title` and `y_domain` are those of the values, `x_title` is that of the labels. `form` is the format of
    the numbers beside the bars; by default, proportions have three digits.
    """
    data = [make_row(row) for row in rows]
    if form is None:
        form = ".3f" if all(0 <= row["value"] <= 1 for row in data) else ",.3~r"
    labels = list(dict.fromkeys(row["label"] for row in data))
    groups = list(dict.fromkeys(row["series"] for row in data))
    wrapped = wrap_labels(labels)
    for row in data:
        row["wrapped"] = wrapped[row["label"]]
        row["written"] = vega.format_value(row["value"], form)
    drawn, failed = [row for row in data if not row["failed"]], [row for row in data if row["failed"]]
    # The labels of rules are above the bars, the numbers to the right of them.
    strip = LINE_HEIGHT * min(len(rules or ()), vega.RULE_LINES) + (6 if rules else 0)
    margin = 12 + LETTER_WIDTH * max((len(row["written"] or "0.000") for row in drawn), default=0)
    lines = max((label.count("\n") + 1 for label in wrapped.values()), default=1)
    band_height = max(LINE_HEIGHT * lines + 8, len(groups) * choose_thickness(len(data)) + 14)
    axis = vega.make_axis(x_title, labelExpr="split(datum.label, '\\n')", labelOverlap=False, labelLimit=0)
    scale: dict[str, Any] = {"paddingInner": 0.3, "paddingOuter": 0.15, "range": [strip, {"expr": "height"}]}
    order = list(wrapped.values())
    y = {
        "field": "wrapped",
        "type": "nominal",
        "sort": order,
        "axis": {**axis, "domain": True},
        "scale": scale,
    }
    offset = {"field": "series", "type": "nominal", "sort": groups, "scale": {"domain": groups}}
    position = {"y": y} | ({"yOffset": offset} if len(groups) > 1 else {})
    axis = vega.make_axis(
        y_title or "value", grid=True, domain=False, ticks=False, labelFlush=False, tickCount=6
    )
    ends = {"range": [0, {"expr": f"width - {margin:.0f}"}]}
    x_scale = vega.make_scale(domain=y_domain, zero=True) | ends
    x = {"field": "value", "type": "quantitative", "axis": axis, "scale": x_scale}
    which = [("label", x_title or "bar"), *([("series", group_title or "group")] if len(groups) > 1 else [])]
    numbers = [("value", y_title), ("low", "low"), ("high", "high")]
    tips = vega.make_tooltip(*which, *numbers, ("note", "note"))
    color = vega.color_by_series(groups, group_title)
    opacity = vega.fade_unselected(groups, 0.92, 0.15)
    strength = {"field": "strength", "type": "quantitative", "scale": None}
    encoding = {**position, "x": x, "color": color, "opacity": opacity, "tooltip": tips}
    params, mark = vega.make_legend_toggle(groups), {"type": "bar", "clip": True}
    layers: list[vega.Layer] = []
    encoding["fillOpacity"] = strength
    layers.append({"data": {"values": data}, "params": params, "mark": mark, "encoding": encoding})
    if band:
        shaded = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "opacity": {"value": 0.16}}
        split = {"datum": vega.clean_label(band["group"]), "type": "nominal"}
        shade = {**shaded, "color": split, "y": {"value": strip}, "y2": {"value": "height"}}
        layers.append({"data": {"values": [dict(band)]}, "mark": {"type": "rect"}, "encoding": shade})
    if spans := [row for row in drawn if row["low"] is not None]:
        span = {**position, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "tooltip": tips}
        whisker = {"type": "rule", "strokeWidth": 1.5}
        layers.append({"data": {"values": spans}, "mark": whisker, "encoding": span})
    texts: list[vega.Layer] = []
    if len(data) <= LABELED_BARS:
        exact = all(row["written"] is not None for row in drawn)
        number = {"field": "written", "type": "nominal"} if exact else {"field": "value", "format": form}
        beside = {**position, "x": {**x, "field": "top"}, "text": number}
        outlined = vega.draw_outlined_text(beside, align="left", baseline="middle", dx=6)
        texts = [{"data": {"values": drawn}, **text} for text in outlined]
    if failed:
        layout = {"align": "left", "baseline": "middle", "dx": 5, "lineBreak": "\n"}
        mark = {"type": "text", "style": "reason", **layout}
        shared, single = merge_failures(failed, len(groups))
        for failures, where in ((shared, {"y": y}), (single, position)):
            if failures:
                encoding = {**where, "x": x, "text": {"field": "reason"}, "tooltip": tips}
                texts.append({"data": {"values": failures}, "mark": mark, "encoding": encoding})
    layers += [*vega.draw_vertical_rules(rules, x, y_domain or [0.0, *(row["top"] for row in data)]), *texts]
    letters = max((len(line) for label in order for line in label.split("\n")), default=0)
    longest = max((len(row["reason"]) for row in failed), default=0)
    min_width = int(LETTER_WIDTH * (letters + min(longest, REASON_LETTERS)) + margin + 100)
    body = {"width": vega.WIDTH, "height": strip + band_height * max(1, len(labels)), "layer": layers}
    body["usermeta"] = {"min_width": min_width}
    return vega.make_chart(title, subtitle, body)


def choose_thickness(n_bars: int) -> int:
    """Choose the height of a bar in pixels: the more there are, the thinner."""
    return 22 if n_bars <= 10 else 16 if n_bars <= 30 else 13


def merge_failures(
    failed: Sequence[dict[str, Any]], groups: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Merge the rows of each label whose bars all failed for one reason; return these and the other rows."""
    shared: list[dict[str, Any]] = []
    single: list[dict[str, Any]] = []
    for label in dict.fromkeys(row["label"] for row in failed):
        rows = [row for row in failed if row["label"] == label]
        if groups > 1 and len(rows) == groups and len({row["note"] for row in rows}) == 1:
            lines = wrap(rows[0]["note"], REASON_LETTERS, max_lines=REASON_LINES, placeholder=" …")
            shared.append({**rows[0], "series": "", "reason": "\n".join(lines) or "failed"})
        else:
            single += rows
    return shared, single


def make_row(row: Mapping[str, Any]) -> dict[str, Any]:
    value, low, high = (vega.finite_or_none(row.get(key)) for key in ("value", "low", "high"))
    note = vega.clean_label(row.get("note") or "")
    return {
        "label": vega.clean_label(row["label"]),
        "series": vega.clean_label(row.get("group", "")),
        "value": 0.0 if value is None else value,
        "low": low,
        "high": high,
        "top": max(v for v in (0.0, value, high) if v is not None),
        "note": note,
        "reason": (note if len(note) <= REASON_LETTERS else note[: REASON_LETTERS - 1] + "…") or "failed",
        "failed": value is None,
        "strength": WEAK if row.get("weak") else 1,
    }


def wrap_labels(labels: Sequence[str]) -> dict[str, str]:
    """Wrap labels over a few lines beside their bars; labels that would look alike stay whole."""
    wrapped = {
        label: "\n".join(wrap(label, LABEL_LETTERS, max_lines=LABEL_LINES, placeholder=" …"))
        for label in labels
    }
    return wrapped if len(set(wrapped.values())) == len(labels) else {label: label for label in labels}
