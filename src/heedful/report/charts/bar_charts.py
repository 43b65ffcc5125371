"""Bar charts, with intervals and with the reason for missing values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from heedful.report.charts import vega
from heedful.report.charts.vega import Chart

LABELED_BARS = 24
REASON_LETTERS = 40
"""The letters of a reason that fit into the height of a chart."""


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
) -> Chart:
    """Draw bars from zero, with intervals.

    A row has `label` and `value`, and may have `low`, `high`, `group` and `note`. A row without a value has
    failed: it has height 0 and its `note`, the reason, is written there; if all bars of a label failed for
    the same reason, only once. `rules` are labeled horizontal lines, such as a baseline; their labels are to
    the right of the bars. `form` is the format of the numbers above the bars; by default, proportions have
    three digits.
    """
    data = [make_row(row) for row in rows]
    if form is None:
        form = ".3f" if all(0 <= row["value"] <= 1 for row in data) else ",.3~r"
    labels = list(dict.fromkeys(row["label"] for row in data))
    groups = list(dict.fromkeys(row["series"] for row in data))
    margin = 12 + int(6.2 * max((len(vega.clean_label(name)) for name in rules), default=0)) if rules else 0
    width = max(vega.WIDTH, 34 * len(labels) * len(groups) + margin)
    letters = int((width - margin) / max(1, len(labels)) / 6.5)
    wrapped = wrap_labels(labels, letters)
    rotated = any(len(line) > letters for label in wrapped.values() for line in label.split("\n"))
    for row in data:
        row["wrapped"] = wrapped[row["label"]]
    angle, split_lines = -35 if rotated else 0, "split(datum.label, '\\n')"
    axis = vega.make_axis(x_title, labelAngle=angle, labelExpr=split_lines, labelOverlap=False)
    scale: dict[str, Any] = {"paddingInner": 0.25, "range": [0, {"expr": f"width - {margin}"}]}
    order = list(wrapped.values())
    x = {"field": "wrapped", "type": "nominal", "sort": order, "axis": axis, "scale": scale}
    offset = {"field": "series", "type": "nominal", "sort": groups, "scale": {"domain": groups}}
    position = {"x": x} | ({"xOffset": offset} if len(groups) > 1 else {})
    axis, scale = vega.make_axis(y_title or "value"), vega.make_scale(domain=y_domain, zero=True)
    y = {"field": "value", "type": "quantitative", "axis": axis, "scale": scale}
    which = [("label", x_title or "bar"), *([("series", group_title or "group")] if len(groups) > 1 else [])]
    numbers = [("value", y_title), ("low", "low"), ("high", "high")]
    tips = vega.make_tooltip(*which, *numbers, ("note", "note"))
    drawn, failed = [row for row in data if not row["failed"]], [row for row in data if row["failed"]]
    color = vega.color_by_series(groups, group_title)
    opacity = vega.fade_unselected(groups, 0.92, 0.15)
    encoding = {**position, "y": y, "color": color, "opacity": opacity, "tooltip": tips}
    params, mark = vega.make_legend_toggle(groups), {"type": "bar", "clip": True}
    layers: list[vega.Layer] = [
        {"data": {"values": data}, "params": params, "mark": mark, "encoding": encoding}
    ]
    if spans := [row for row in drawn if row["low"] is not None]:
        span = {**position, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "tooltip": tips}
        whisker = {"type": "rule", "strokeWidth": 1.5}
        layers.append({"data": {"values": spans}, "mark": whisker, "encoding": span})
    if len(data) <= LABELED_BARS:
        for row in drawn:
            row["written"] = vega.format_value(row["value"], form)
        exact = all(row["written"] is not None for row in drawn)
        number = {"field": "written", "type": "nominal"} if exact else {"field": "value", "format": form}
        above = {**position, "y": {**y, "field": "top"}, "text": number}
        texts = vega.draw_outlined_text(above, baseline="bottom", dy=-4)
        layers += [{"data": {"values": drawn}, **text} for text in texts]
    if failed:
        layout = {"angle": 270, "align": "left", "baseline": "middle", "dx": 5, "lineBreak": "\n"}
        reason = {"type": "text", "style": "reason", **layout}
        shared, single = merge_failures(failed, len(groups))
        for failures, where in ((shared, {"x": x}), (single, position)):
            if failures:
                encoding = {**where, "y": y, "text": {"field": "reason"}, "tooltip": tips}
                layers.append({"data": {"values": failures}, "mark": reason, "encoding": encoding})
    axis_values = [0.0, *(y_domain or (row["top"] for row in data))]
    layers += vega.draw_horizontal_rules(rules, y, axis_values, stacked=True)
    # Below this width labels and numbers would overlap.
    letters = max((len(line) for label in wrapped.values() for line in label.split("\n")), default=0)
    min_width = margin + 90 + len(wrapped) * max(7 * min(letters, 16) + 8, 36 * len(groups))
    body = {"width": width, "height": vega.HEIGHT, "layer": layers, "usermeta": {"min_width": min_width}}
    return vega.make_chart(title, subtitle, body)


def merge_failures(
    failed: Sequence[dict[str, Any]], groups: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Merge the rows of each label whose bars all failed for one reason; return these and the other rows."""
    shared: list[dict[str, Any]] = []
    single: list[dict[str, Any]] = []
    for label in dict.fromkeys(row["label"] for row in failed):
        rows = [row for row in failed if row["label"] == label]
        if groups > 1 and len(rows) == groups and len({row["note"] for row in rows}) == 1:
            lines = wrap(rows[0]["note"], REASON_LETTERS, max_lines=3, placeholder=" …")
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
    }


def wrap_labels(labels: Sequence[str], width: int) -> dict[str, str]:
    """Wrap labels over up to three lines below their bars; if one does not fit, all stay whole."""
    wrapped = {label: wrap(label, max(6, width), break_long_words=False) or [""] for label in labels}
    if any(len(lines) > 3 or max(map(len, lines)) > max(6, width) for lines in wrapped.values()):
        return {label: label for label in labels}
    return {label: "\n".join(lines) for label, lines in wrapped.items()}
