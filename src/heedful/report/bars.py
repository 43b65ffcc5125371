"""Bars from zero, with intervals and with the reason of what failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from heedful.report.parts import (
    HEIGHT,
    WIDTH,
    Chart,
    axis,
    chart,
    colour,
    faded,
    haloed,
    level_rules,
    number,
    scale,
    toggle,
    tooltip,
    words,
    written,
)

LABELLED_BARS = 24
REASON = 40
"""Letters of a reason that a bar's height has room for."""


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

    A row has `label` and `value`, perhaps `low`, `high`, `group` and `note`.
    A row without a value has failed: it stands at height 0 with its `note`, the reason, written there, once
    for a label all of whose bars failed of the same.
    `rules` are labelled horizontal lines, such as a baseline; their labels stand right of the bars.
    `form` is that of the numbers above the bars; by default shares have three digits.
    """
    data = [bar_row(row) for row in rows]
    if form is None:
        form = ".3f" if all(0 <= row["value"] <= 1 for row in data) else ",.3~r"
    labels = list(dict.fromkeys(row["label"] for row in data))
    groups = list(dict.fromkeys(row["series"] for row in data))
    beside = 12 + int(6.2 * max((len(words(name)) for name in rules), default=0)) if rules else 0
    width = max(WIDTH, 34 * len(labels) * len(groups) + beside)
    room = int((width - beside) / max(1, len(labels)) / 6.5)
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
        "scale": {"paddingInner": 0.25, "range": [0, {"expr": f"width - {beside}"}]},
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
    ]
    if spans := [row for row in drawn if row["low"] is not None]:
        span = {**place, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "tooltip": tips}
        whisker = {"type": "rule", "strokeWidth": 1.5}
        layers.append({"data": {"values": spans}, "mark": whisker, "encoding": span})
    if len(data) <= LABELLED_BARS:
        for row in drawn:
            row["written"] = written(row["value"], form)
        exact = all(row["written"] is not None for row in drawn)
        text = {"field": "written", "type": "nominal"} if exact else {"field": "value", "format": form}
        above = {**place, "y": {**y, "field": "top"}, "text": text}
        layers += [{"data": {"values": drawn}, **text} for text in haloed(above, baseline="bottom", dy=-4)]
    if failed:
        reason = {
            "type": "text",
            "style": "reason",
            "angle": 270,
            "align": "left",
            "baseline": "middle",
            "dx": 5,
            "lineBreak": "\n",
        }
        whole, single = once_a_label(failed, len(groups))
        for some, where in ((whole, {"x": x}), (single, place)):
            if some:
                stands = {**where, "y": y, "text": {"field": "reason"}, "tooltip": tips}
                layers.append({"data": {"values": some}, "mark": reason, "encoding": stands})
    shown = [0.0, *(y_domain or (row["top"] for row in data))]
    layers += level_rules(rules, y, shown, stacked=True)
    body = {"width": width, "height": HEIGHT, "layer": layers}
    return chart(
        title, subtitle, {**body, "usermeta": {"least": beside + least_width(folded.values(), len(groups))}}
    )


def once_a_label(
    failed: Sequence[dict[str, Any]], groups: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Of labels that failed whole and of one reason a single row, which has room for it; the other rows."""
    whole: list[dict[str, Any]] = []
    single: list[dict[str, Any]] = []
    for label in dict.fromkeys(row["label"] for row in failed):
        own = [row for row in failed if row["label"] == label]
        if groups > 1 and len(own) == groups and len({row["note"] for row in own}) == 1:
            lines = wrap(own[0]["note"], REASON, max_lines=3, placeholder=" …")
            whole.append({**own[0], "series": "", "reason": "\n".join(lines) or "failed"})
        else:
            single += own
    return whole, single


def least_width(folded: Iterable[str], groups: int) -> int:
    """Give the width below which labels and numbers would lie on each other."""
    rows = [max(len(line) for line in label.split("\n")) for label in folded]
    return 90 + len(rows) * int(max(7 * min(max(rows, default=0), 16) + 8, 36 * groups))


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
        "reason": (note if len(note) <= REASON else note[: REASON - 1] + "…") or "failed",
        "failed": value is None,
    }


def fold(labels: Sequence[str], width: int) -> dict[str, str]:
    """Fold labels over up to three lines to stand under their bars; one that cannot stays whole."""
    wrapped = {label: wrap(label, max(6, width), break_long_words=False) or [""] for label in labels}
    if any(len(rows) > 3 or max(map(len, rows)) > max(6, width) for rows in wrapped.values()):
        return {label: label for label in labels}
    return {label: "\n".join(rows) for label, rows in wrapped.items()}
