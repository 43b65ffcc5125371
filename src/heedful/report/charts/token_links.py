"""Interactive attention maps: two columns of tokens with lines between them, one map at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import UserError
from heedful.report.charts import vega
from heedful.report.charts.heat_maps import Matrix
from heedful.report.charts.vega import Chart

ROW_HEIGHT = 24
LEFT, RIGHT, WIDTH = 150, 330, 480


def token_links(
    panels: Mapping[str, Matrix],
    *,
    labels: Sequence[object],
    title: str,
    subtitle: str = "",
    value_title: str = "weight",
    choice: str = "map",
) -> Chart:
    """Draw lines between all pairs of labels, as strong as their values in the map that the reader selects.

    Hovering over a label on the left shows its lines alone, with their values on the right. Labels may
    repeat.
    """
    names, texts, n = (
        [vega.clean_label(name) for name in panels],
        list(map(vega.clean_label, labels)),
        len(labels),
    )
    if not names or any(len(m) != n or any(len(row) != n for row in m) for m in panels.values()):
        raise UserError(f"a map of {n} labels needs {n} rows and columns of values")
    rows = [
        {"map": name, "i": i, "j": j, "from": texts[i], "to": texts[j], "value": vega.finite_or_none(value)}
        for name, matrix in zip(names, panels.values(), strict=True)
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
    ]
    axis = {"scale": {"domain": [-0.5, n - 0.5], "reverse": True, "nice": False}, "axis": None}
    source, target = ({"field": field, "type": "quantitative", **axis} for field in ("i", "j"))
    number = {"field": "value", "type": "quantitative"}

    def scale_value(highest: float, *ends: float) -> dict[str, Any]:
        scale = {"domain": [0, highest], "range": list(ends), "clamp": True}
        return {**number, "legend": None, "scale": scale}

    hovered: dict[str, Any] = {"filter": {"param": "token"}}
    received = {"aggregate": [{"op": "mean", "field": "value", "as": "value"}], "groupby": ["j", "to"]}
    hover = {"type": "point", "fields": ["i"], "on": "pointerover", "clear": "pointerout"}
    menu = {"input": "select", "options": names, "name": f"{vega.clean_label(choice)}: "}
    lines = {
        "transform": [hovered],
        "mark": {"type": "rule", "strokeCap": "round"},
        "encoding": {
            "x": {"value": LEFT},
            "x2": {"value": RIGHT},
            "y": source,
            "y2": {"field": "j"},
            "color": {"datum": "line", "legend": None},
            "strokeWidth": scale_value(1, 0, 7),
            "opacity": scale_value(1, 0.05, 0.9),
            "tooltip": vega.make_tooltip(("from", "from"), ("to", "to"), ("value", value_title)),
        },
    }
    faded = {"condition": {"param": "token", "value": 1}, "value": 0.35}
    sources = {
        "params": [{"name": "token", "select": hover}],
        "transform": [{"filter": "datum.j === 0"}],
        "mark": {"type": "text", "align": "right", "fontSize": 13, "dx": -8, "cursor": "pointer"},
        "encoding": {"x": {"value": LEFT}, "y": source, "text": {"field": "from"}, "opacity": faded},
    }
    opacity = scale_value(0.3, 0.3, 1)
    targets = {
        "transform": [hovered, received],
        "mark": {"type": "text", "align": "left", "fontSize": 13, "dx": 8},
        "encoding": {"x": {"value": RIGHT}, "y": target, "text": {"field": "to"}, "opacity": opacity},
    }
    values = {
        "transform": [hovered, received],
        "mark": {"type": "text", "align": "right", "fontSize": 11},
        "encoding": {"x": {"value": WIDTH}, "y": target, "text": {**number, "format": ".3f"}},
    }
    body = {
        "width": WIDTH,
        "height": ROW_HEIGHT * n,
        "params": [{"name": "chosen", "value": names[0], "bind": menu}],
        "data": {"values": rows},
        "transform": [{"filter": "datum.map === chosen"}],
        "layer": [lines, sources, targets, values],
        "usermeta": {"min_width": WIDTH + 24},
        # Lines and labels have different opacities for the same value.
        "resolve": {"scale": {"opacity": "independent"}},
    }
    return vega.make_chart(title, subtitle, body)
