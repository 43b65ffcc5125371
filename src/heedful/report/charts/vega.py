"""Building blocks of Vega-Lite specifications: axes, scales, legends, rules, tooltips, interaction."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from textwrap import wrap
from typing import Any

from heedful.errors import one_line
from heedful.report.theme import OTHER_SERIES, SERIES_COLORS, SPLITS

Layer = dict[str, Any]
"""A part of a Vega-Lite specification."""


class Chart(dict[str, Any]):
    """A Vega-Lite specification: plain data, without the colors of text, axes and series (see `theme`).

    A notebook shows it as a picture, which needs no network and is also on a printed page.
    """

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        from heedful.report.charts.images import render_chart

        return {
            "image/svg+xml": render_chart(self, ".svg").decode(),
            "image/png": b64encode(render_chart(self, ".png")).decode(),
            "text/plain": " ".join(self["title"]["text"]),
        }


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT = 480, 280
LEGEND_LETTERS = 64
LEGEND_MOST = 40
"""With more series than this nobody reads a legend; a hover still names each."""
WHILE_TRAINING = ", while training"
"""Ends the name of a curve that was measured during training; it has its split's color and is dashed."""
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
RULE_LINES = 3
"""The labels of vertical rules are on this many lines."""
NEAR = 0.07
"""Rules closer than this fraction of the axis share a label."""
ZOOM = {
    "name": "zoom",
    "select": {"type": "interval", "encodings": ["x", "y"], "zoom": "wheel![event.shiftKey]"},
    "bind": "scales",
}
"""Lets the reader drag, and zoom with shift and the wheel, so that the page itself still scrolls."""
TEXT_FIELDS = frozenset(("series", "label", "note", "column", "line", "panel", "detail", "from", "to"))


def finite_or_none(value: Any) -> float | None:
    """Return a finite float, or None for what cannot be drawn: missing, not a number, infinite."""
    if value is None:
        return None
    number = float(value)
    return number if math.isfinite(number) else None


def format_value(value: float | None, form: str) -> str | None:
    """Format a number as Python does, or return None if Vega's own format must be used.

    0.3125 is 0.312 in Python and 0.313 in a browser; figures agree with the tables beside them.
    """
    if value is None or not form.endswith(("f", "%")):
        return None
    return format(value, form).replace("-", "\N{MINUS SIGN}")


def clean_label(text: object) -> str:
    """Make control characters visible, so that SVG stays valid."""
    return one_line(str(text))


def make_title(title: str, subtitle: str = "") -> dict[str, Any]:
    lines: dict[str, Any] = {"text": wrap(clean_label(title), 64, break_on_hyphens=False) or [""]}
    if subtitle:
        lines["subtitle"] = wrap(clean_label(subtitle), 84)
    return {"title": lines}


def add_title_note(chart: Chart, note: str) -> Chart:
    if not note:
        return chart
    whole = make_title(f"{' '.join(chart['title']['text'])} ({note})")["title"]
    return Chart({**chart, "title": {**chart["title"], **whole}})


def make_chart(title: str, subtitle: str, body: Mapping[str, Any]) -> Chart:
    return Chart({"$schema": SCHEMA, **make_title(title, subtitle), **body})


def make_axis(title: str, values: Iterable[float | None] = (), **more: Any) -> dict[str, Any]:
    """Make an axis; if all values are whole numbers there are no ticks between them."""
    numbers = [v for v in values if v is not None]
    whole: dict[str, Any] = {"tickMinStep": 1} if numbers and all(v == int(v) for v in numbers) else {}
    return {"title": clean_label(title), **whole, **more}


def make_scale(
    *,
    log: bool = False,
    domain: Sequence[float] | None = None,
    zero: bool = False,
    padding: float | None = None,
) -> dict[str, Any]:
    """Make a scale; without a domain it ends at a round number, or `padding` pixels beyond the data."""
    kind: dict[str, Any] = {"type": "log"} if log else {"zero": zero}
    if domain is not None:
        return kind | {"domain": list(domain), "nice": False}
    return kind | ({"nice": True} if padding is None else {"nice": False, "padding": padding})


def widen_domain(low: float, high: float, least: float | None) -> tuple[float, float] | None:
    """Return rounded ends for an axis of proportions that would be shorter than `least`, else None.

    A shorter axis would make differences within chance look large.
    """
    if least is None or high - low >= least:
        return None
    margin = (least - (high - low)) / 2
    first, last = max(0.0, low - margin), min(1.0, high + margin)
    return math.floor(100 * first) / 100, math.ceil(100 * last) / 100


def choose_domain(values: Iterable[float | None], least: float | None = None) -> tuple[float, float] | None:
    """Return the ends of an axis if its values are all equal or are proportions closer than `least`."""
    distinct = {v for v in values if v is not None}
    if distinct and (ends := widen_domain(min(distinct), max(distinct), least)) is not None:
        return ends
    if len(distinct) != 1:
        return None
    (value,) = distinct
    return value - (abs(value) / 10 or 1), value + (abs(value) / 10 or 1)


def choose_colors(names: Sequence[str]) -> dict[str, int]:
    """Choose a position among the theme's colors for each series: a split has its own, others avoid these.

    Positions continue beyond the last color: the colors start again, with the next kind of dashes.
    """
    splits = {
        name: SPLITS[split] + (0 if name == split else SERIES_COLORS)
        for name in names
        if (split := name.removesuffix(WHILE_TRAINING)) in SPLITS
    }
    every = (cycle * SERIES_COLORS + place for cycle in count() for place in OTHER_SERIES)
    free = (position for position in every if position not in splits.values())
    return {name: splits[name] if name in splits else next(free) for name in names}


def color_by_series(names: Sequence[str], title: str = "", **legend: Any) -> dict[str, Any]:
    """Color by series, named in the given order; a single series needs no legend."""
    longest = max((len(name) for name in names), default=1)
    columns = max(1, min(len(names), LEGEND_LETTERS // (longest + 5)))
    layout = {"title": clean_label(title) or None, "orient": "top", "columns": columns, "symbolOpacity": 1}
    order = list(names)
    shown = {**layout, **legend, "values": order} if has_legend(names) or title else None
    scale = {"domain": make_color_domain(names)}
    return {"field": "series", "type": "nominal", "sort": order, "scale": scale, "legend": shown}


def make_color_domain(names: Sequence[str]) -> list[str]:
    """Return the domain of a color scale, which assigns the theme's colors in its order.

    Names that no series has stand for the colors that are left out.
    """
    positions = choose_colors(names)
    domain = [f"\N{WORD JOINER}{i}" for i in range(max(positions.values(), default=-1) + 1)]
    for name, position in positions.items():
        domain[position] = name
    return domain


def has_legend(names: Sequence[str]) -> bool:
    """Whether a legend names the series: one series needs none, and very many cannot have one."""
    return 1 < len(names) <= LEGEND_MOST


def dash_by_series(names: Sequence[str], legend: Mapping[str, Any] | None) -> dict[str, Any]:
    """Distinguish curves of the same color by dashes; the legend of the color then shows both."""
    domain = make_color_domain(names)
    if len(domain) <= SERIES_COLORS:
        return {}
    dashes = [DASHES[(i // SERIES_COLORS) % len(DASHES)] for i in range(len(domain))]
    field = {"field": "series", "type": "nominal", "sort": list(names)}
    return {"strokeDash": {**field, "scale": {"domain": domain, "range": dashes}, "legend": legend}}


def make_legend_toggle(names: Sequence[str]) -> list[dict[str, Any]]:
    """Let the reader select series by clicking their names in the legend."""
    if not has_legend(names):
        return []
    select = {"type": "point", "fields": ["series"], "toggle": "true"}
    return [{"name": "shown", "select": select, "bind": "legend"}]


def fade_unselected(names: Sequence[str], value: float = 1.0, unselected: float = 0.06) -> dict[str, Any]:
    if not has_legend(names):
        return {"value": value}
    return {"condition": {"param": "shown", "value": value}, "value": unselected}


def draw_vertical_rules(
    rules: Mapping[str, float] | None, x: Mapping[str, Any], ends: Sequence[float] = ()
) -> list[Layer]:
    """Draw labeled vertical lines; the labels of neighbors are at different heights.

    `ends` are values on the axis, among them its ends: a label in the right half is to the left of its line.
    """
    lines: list[Layer] = []
    labels: list[Layer] = []
    values = [*ends, *(rules or {}).values()]
    middle = (min(values) + max(values)) / 2 if len(ends) else math.inf
    for i, (label, at) in enumerate(sorted((rules or {}).items(), key=lambda item: item[1])):
        data = {"values": [{"x": finite_or_none(at), "label": clean_label(label)}]}
        position = {"x": {**x, "field": "x"}}
        lines.append({"data": data, "mark": {"type": "rule", "style": "threshold"}, "encoding": position})
        encoding = {**position, "y": {"value": 2 + 15 * (i % RULE_LINES)}, "text": {"field": "label"}}
        side = {"align": "right", "dx": -5} if at > middle else {"align": "left", "dx": 5}
        texts = draw_outlined_text(encoding, baseline="top", **side)
        labels += [{"data": data, **text} for text in texts]
    return lines + labels


def draw_horizontal_rules(
    levels: Mapping[str, float] | None,
    y: Mapping[str, Any],
    others: Sequence[float] = (),
) -> list[Layer]:
    """Draw labeled horizontal lines; those that are close together share a label.

    `others` are the other values on the axis, which decide what is close. A label is above its line, or
    below it at the top of the axis, where it would be cut off.
    """
    rules = sorted(
        (at, clean_label(label))
        for label, value in (levels or {}).items()
        if (at := finite_or_none(value)) is not None
    )
    span = [*others, *(at for at, _ in rules)]
    near = NEAR * (max(span) - min(span)) if span else 0.0
    groups: list[tuple[float, list[str]]] = []
    for at, label in rules:
        if groups and at - groups[-1][0] <= near:
            groups[-1] = (at, [*groups[-1][1], label])
        else:
            groups.append((at, [label]))
    level = {"y": {**y, "field": "value"}}
    layers: list[Layer] = []
    if rules:
        values = [{"value": at} for at, _ in rules]
        mark = {"type": "rule", "style": "threshold"}
        layers.append({"data": {"values": values}, "mark": mark, "encoding": level})
    encoding = {**level, "x": {"value": "width"}, "text": {"field": "label"}}
    for at, labels in groups:
        is_top = at >= max(span) - near
        lowest = min(value for value, label in rules if label in labels)
        rows = [{"value": lowest if is_top else at, "label": ", ".join(labels)}]
        side = {"baseline": "top", "dy": 4} if is_top else {"baseline": "bottom", "dy": -4}
        texts = draw_outlined_text(encoding, align="right", dx=-3, **side)
        layers += [{"data": {"values": rows}, **text} for text in texts]
    return layers


def draw_outlined_text(encoding: Mapping[str, Any], **mark: Any) -> list[Layer]:
    """Write text that stays readable over lines and bars, on an outline in the color of the paper."""
    return [
        {"mark": {"type": "text", "style": "halo", **mark}, "encoding": dict(encoding)},
        {"mark": {"type": "text", **mark}, "encoding": dict(encoding)},
    ]


def make_tooltip(*fields: tuple[str, str]) -> list[dict[str, Any]]:
    number = {"type": "quantitative", "format": ".4~g"}
    return [
        {
            "field": name,
            # Vega-Lite puts titles into an expression without escaping backslashes.
            "title": clean_label(title).replace("\\", "\N{SET MINUS}"),
            **({"type": "nominal"} if name in TEXT_FIELDS else number),
        }
        for name, title in fields
    ]
