"""What all charts share: clean numbers and words, colour by series, rules, notes, what a reader can do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from heedful.errors import one_line

Chart = dict[str, Any]
"""A Vega-Lite specification: plain data, without the colours of text, axes and series (see `theme`)."""

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
WIDTH, HEIGHT = 480, 280
COLOURS = 8
LEGEND_ROW = 64
LEGEND_MOST = 40
"""Of more series than this nobody reads a legend; a hover still names each."""


def number(value: Any) -> float | None:
    """Give a finite float; what cannot be drawn (missing, not a number, infinite) is None."""
    if value is None:
        return None
    plain = float(value)
    return plain if math.isfinite(plain) else None


def written(value: float | None, form: str) -> str | None:
    """A number as the tables beside a figure have it; None where the figure's own format must do.

    Of 0.3125 Python makes 0.312 and a browser 0.313.
    """
    if value is None or not form.endswith(("f", "%")):
        return None
    return format(value, form).replace("-", "\N{MINUS SIGN}")


def words(text: object) -> str:
    """Text from anywhere, for a label: control characters become visible, so that SVG stays valid."""
    return one_line(str(text))


def literal(text: str) -> str:
    """Words for a tooltip's titles: Vega-Lite puts them into an expression without escaping the backslash."""
    return words(text).replace("\\", "\N{SET MINUS}")


def headline(title: str, subtitle: str = "") -> dict[str, Any]:
    """Fold long titles over several lines."""
    lines: dict[str, Any] = {"text": wrap(words(title), 64, break_on_hyphens=False) or [""]}
    if subtitle:
        lines["subtitle"] = wrap(words(subtitle), 84)
    return {"title": lines}


def noted(drawn: Chart, note: str) -> Chart:
    """Add a remark to a chart's title."""
    if not note:
        return drawn
    whole = headline(f"{' '.join(drawn['title']['text'])} ({note})")["title"]
    return {**drawn, "title": {**drawn["title"], **whole}}


def chart(title: str, subtitle: str, body: Mapping[str, Any]) -> Chart:
    """Put the parts of a specification together."""
    return {"$schema": SCHEMA, **headline(title, subtitle), **body}


def axis(title: str, values: Iterable[float | None] = (), **more: Any) -> dict[str, Any]:
    """Label an axis in words; whole numbers never get ticks between them."""
    known = [v for v in values if v is not None]
    whole: dict[str, Any] = {"tickMinStep": 1} if known and all(v == int(v) for v in known) else {}
    return {"title": words(title), **whole, **more}


def scale(
    *,
    log: bool = False,
    domain: Sequence[float] | None = None,
    zero: bool = False,
    padding: float | None = None,
) -> dict[str, Any]:
    """Choose an axis' scale; without a given domain it ends `padding` pixels on, or at a round number."""
    kind: dict[str, Any] = {"type": "log"} if log else {"zero": zero}
    if domain is not None:
        return kind | {"domain": list(domain), "nice": False}
    return kind | ({"nice": True} if padding is None else {"nice": False, "padding": padding})


def widened(low: float, high: float, least: float | None) -> tuple[float, float] | None:
    """Round ends for an axis of shares that would be shorter than `least`, and would show chance as much."""
    if least is None or high - low >= least:
        return None
    more = (least - (high - low)) / 2
    first, last = max(0.0, low - more), min(1.0, high + more)
    return math.floor(100 * first) / 100, math.ceil(100 * last) / 100


def room(values: Iterable[float | None], least: float | None = None) -> tuple[float, float] | None:
    """Ends for an axis whose numbers are all the same, or are shares that differ by less than `least`."""
    known = {v for v in values if v is not None}
    if known and (ends := widened(min(known), max(known), least)) is not None:
        return ends
    if len(known) != 1:
        return None
    (value,) = known
    return value - (abs(value) / 10 or 1), value + (abs(value) / 10 or 1)


def colour(names: Sequence[str], title: str = "", **legend: Any) -> dict[str, Any]:
    """Colour by series, in the given order; a single series needs no legend."""
    longest = max((len(name) for name in names), default=1)
    shown = {
        "title": words(title) or None,
        "orient": "top",
        "columns": max(1, min(len(names), LEGEND_ROW // (longest + 5))),
        "symbolOpacity": 1,
        **legend,
    }
    return {
        "field": "series",
        "type": "nominal",
        "sort": list(names),
        "scale": {"domain": list(names)},
        "legend": shown if named(names) or title else None,
    }


def named(names: Sequence[str]) -> bool:
    """Tell whether a legend names the series: one needs none, and too many cannot have one."""
    return 1 < len(names) <= LEGEND_MOST


def dash(names: Sequence[str], legend: Mapping[str, Any] | None) -> dict[str, Any]:
    """Tell curves apart that share a colour because there are more of them than colours.

    The legend is that of the colour, which then shows both.
    """
    if len(names) <= COLOURS:
        return {}
    patterns = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
    dashes = [patterns[(i // COLOURS) % len(patterns)] for i in range(len(names))]
    field = {"field": "series", "type": "nominal", "sort": list(names)}
    return {"strokeDash": {**field, "scale": {"domain": list(names), "range": dashes}, "legend": legend}}


def toggle(names: Sequence[str]) -> list[dict[str, Any]]:
    """Let the reader pick series by clicking their names in the legend."""
    if not named(names):
        return []
    return [
        {
            "name": "shown",
            "select": {"type": "point", "fields": ["series"], "toggle": "true"},
            "bind": "legend",
        }
    ]


def faded(names: Sequence[str], value: float = 1.0, unselected: float = 0.06) -> dict[str, Any]:
    """Fade what the reader has not picked."""
    if not named(names):
        return {"value": value}
    return {"condition": {"param": "shown", "value": value}, "value": unselected}


def zoom(*encodings: str) -> dict[str, Any]:
    """Let the reader drag, and zoom with shift and the wheel, so that the page itself still scrolls."""
    return {
        "name": "zoom",
        "select": {"type": "interval", "encodings": list(encodings), "zoom": "wheel![event.shiftKey]"},
        "bind": "scales",
    }


def vertical_rules(rules: Mapping[str, float] | None, x: Mapping[str, Any]) -> list[Chart]:
    """Draw labelled vertical lines; the labels of neighbours stand at different heights."""
    drawn: list[Chart] = []
    notes: list[Chart] = []
    for i, (label, at) in enumerate(sorted((rules or {}).items(), key=lambda item: item[1])):
        data = {"values": [{"x": number(at), "label": words(label)}]}
        place = {"x": {**x, "field": "x"}}
        drawn.append({"data": data, "mark": {"type": "rule", "style": "threshold"}, "encoding": place})
        named = {**place, "y": {"value": 2 + 15 * (i % 3)}, "text": {"field": "label"}}
        notes += [{"data": data, **text} for text in haloed(named, align="left", baseline="top", dx=5)]
    return drawn + notes


def level_rules(
    levels: Mapping[str, float] | None,
    y: Mapping[str, Any],
    others: Sequence[float] = (),
    *,
    stacked: bool = False,
) -> list[Chart]:
    """Draw labelled horizontal lines; of those that would lie on each other the labels stand together.

    `others` are the numbers that the axis shows besides, from which what is near is judged. Labels stand
    together on one line, or `stacked` above each other, the highest level's on top.
    """
    known = sorted(
        (at, words(label)) for label, value in (levels or {}).items() if (at := number(value)) is not None
    )
    span = [*others, *(at for at, _ in known)]
    near = 0.07 * (max(span) - min(span)) if span else 0.0
    groups: list[tuple[float, list[str]]] = []
    for at, label in known:
        if groups and at - groups[-1][0] <= near:
            groups[-1] = (at, [*groups[-1][1], label])
        else:
            groups.append((at, [label]))
    level = {"y": {**y, "field": "value"}}
    drawn: list[Chart] = []
    if known:
        values = [{"value": at} for at, _ in known]
        rule = {"type": "rule", "style": "threshold"}
        drawn.append({"data": {"values": values}, "mark": rule, "encoding": level})
    named = {**level, "x": {"value": "width"}, "text": {"field": "label"}}
    written = [(at, labels if stacked else [", ".join(labels)]) for at, labels in groups]
    for place in range(max((len(labels) for _, labels in written), default=0)):
        rows = [{"value": at, "label": labels[place]} for at, labels in written if place < len(labels)]
        texts = haloed(named, align="right", baseline="bottom", dx=-3, dy=-4 - 14 * place)
        drawn += [{"data": {"values": rows}, **text} for text in texts]
    return drawn


def haloed(encoding: Mapping[str, Any], **mark: Any) -> list[Chart]:
    """Write a note that stays readable over lines and bars: first its outline in the colour of the paper."""
    return [
        {"mark": {"type": "text", "style": "halo", **mark}, "encoding": dict(encoding)},
        {"mark": {"type": "text", **mark}, "encoding": dict(encoding)},
    ]


def tooltip(*fields: tuple[str, str], form: str = ".4~g") -> list[dict[str, Any]]:
    """List what a hover tells: (field, title) pairs; numbers are formatted, words are not."""
    wordy = {"series", "label", "note", "column", "line", "panel", "shown", "told"}
    return [
        {"field": name, "title": literal(title), "type": "nominal"}
        if name in wordy
        else {"field": name, "title": literal(title), "type": "quantitative", "format": form}
        for name, title in fields
    ]
