"""Who looks at whom: two columns of words with lines between them, one map at a time, for a reader's hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import UserError
from heedful.report.heat import Matrix
from heedful.report.parts import Chart, chart, number, tooltip, words

ROW = 24
LEFT, RIGHT = 150, 330
BROAD = 480


def links(
    panels: Mapping[str, Matrix],
    *,
    labels: Sequence[object],
    title: str,
    subtitle: str = "",
    value_title: str = "weight",
    choice: str = "map",
) -> Chart:
    """Draw lines from each label to each, as strong as their value, of the map that the reader chooses.

    The pointer on a label at the left leaves its lines alone, with their values at the right.
    Labels may repeat.
    """
    names = [words(name) for name in panels]
    if not names or any(
        len(m) != len(labels) or any(len(r) != len(labels) for r in m) for m in panels.values()
    ):
        raise UserError(f"lines between {len(labels)} labels need as many rows and columns of values")
    rows = [
        {
            "map": name,
            "i": i,
            "j": j,
            "from": words(labels[i]),
            "to": words(labels[j]),
            "value": number(value),
        }
        for name, matrix in zip(names, panels.values(), strict=True)
        for i, row in enumerate(matrix)
        for j, value in enumerate(row)
    ]
    middle = {"scale": {"domain": [-0.5, len(labels) - 0.5], "reverse": True, "nice": False}, "axis": None}
    from_, to = ({"field": f, "type": "quantitative", **middle} for f in ("i", "j"))
    strength = {"field": "value", "type": "quantitative", "legend": None}
    hovered: dict[str, Any] = {"filter": {"param": "token"}}
    received = {
        "aggregate": [{"op": "mean", "field": "value", "as": "value"}],
        "groupby": ["j", "to"],
    }
    body = {
        "width": BROAD,
        "height": ROW * len(labels),
        "params": [
            {
                "name": "chosen",
                "value": names[0],
                "bind": {"input": "select", "options": names, "name": f"{words(choice)}: "},
            }
        ],
        "data": {"values": rows},
        "transform": [{"filter": "datum.map === chosen"}],
        "layer": [
            {
                "transform": [hovered],
                "mark": {"type": "rule", "strokeCap": "round"},
                "encoding": {
                    "x": {"value": LEFT},
                    "x2": {"value": RIGHT},
                    "y": from_,
                    "y2": {"field": "j"},
                    "color": {"datum": "line", "legend": None},
                    "strokeWidth": {**strength, "scale": {"domain": [0, 1], "range": [0, 7], "clamp": True}},
                    "opacity": {**strength, "scale": {"domain": [0, 1], "range": [0.05, 0.9], "clamp": True}},
                    "tooltip": tooltip(("from", "from"), ("to", "to"), ("value", value_title)),
                },
            },
            {
                "params": [
                    {
                        "name": "token",
                        "select": {
                            "type": "point",
                            "fields": ["i"],
                            "on": "pointerover",
                            "clear": "pointerout",
                        },
                    }
                ],
                "transform": [{"filter": "datum.j === 0"}],
                "mark": {"type": "text", "align": "right", "fontSize": 13, "dx": -8, "cursor": "pointer"},
                "encoding": {
                    "x": {"value": LEFT},
                    "y": from_,
                    "text": {"field": "from"},
                    "opacity": {"condition": {"param": "token", "value": 1}, "value": 0.35},
                },
            },
            {
                "transform": [hovered, received],
                "mark": {"type": "text", "align": "left", "fontSize": 13, "dx": 8},
                "encoding": {
                    "x": {"value": RIGHT},
                    "y": to,
                    "text": {"field": "to"},
                    "opacity": {**strength, "scale": {"domain": [0, 0.3], "range": [0.3, 1], "clamp": True}},
                },
            },
            {
                "transform": [hovered, received],
                "mark": {"type": "text", "align": "right", "fontSize": 11},
                "encoding": {
                    "x": {"value": BROAD},
                    "y": to,
                    "text": {"field": "value", "type": "quantitative", "format": ".3f"},
                },
            },
        ],
        # Each layer fades by its own scale: one for lines and words would be a compromise.
        "resolve": {"scale": {"opacity": "independent"}},
    }
    return chart(title, subtitle, body)
