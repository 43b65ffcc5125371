"""One look for every figure: colours safe for colour-blind readers, readable type, light and dark.

Specifications carry no colours of their own for text, axes and series; they come from the configuration made
here. A file gets plain colours. In a page the same places hold CSS variables, so that a chart follows the
reader's light or dark setting, and paper, without being drawn again.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


@dataclass(frozen=True)
class Look:
    """The colours of one theme. Series follow Okabe and Ito (2008), lightened or darkened for contrast."""

    paper: str
    ink: str
    muted: str
    grid: str
    series: tuple[str, ...]


LIGHT = Look(
    paper="#ffffff",
    ink="#1c2430",
    muted="#5a6472",
    grid="#e3e7ec",
    series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#5b3a8e", "#4d4d4d"),
)
DARK = Look(
    paper="#14181f",
    ink="#e8ecf2",
    muted="#a3adbb",
    grid="#2c333e",
    series=("#4da3e0", "#f0803c", "#2cc79c", "#e5a3c8", "#e0c341", "#8fd0f5", "#b59ae6", "#b8b8b8"),
)
LOOKS = {"light": LIGHT, "dark": DARK}

# Light to dark in one hue, readable in grey; the middle of the second one is neutral and means zero.
SEQUENTIAL = ("#f4f8fc", "#c6ddf0", "#86b8dd", "#4690c4", "#17659f", "#07365f")
DIVERGING = ("#8c3a00", "#d98242", "#f3d2b5", "#f5f6f7", "#b7d5ec", "#4690c4", "#083e6b")
CELL_DARK_INK, CELL_LIGHT_INK, CELL_EMPTY = "#14202e", "#ffffff", "#c9ced6"


def css_variables(look: Look) -> str:
    """Write a look as CSS declarations, under the names that `page_look` refers to."""
    plain = [f"--{f.name}:{getattr(look, f.name)}" for f in fields(look) if f.name != "series"]
    return ";".join(plain + [f"--series-{i}:{colour}" for i, colour in enumerate(look.series)])


def page_look() -> Look:
    """Give the look of charts in a page: CSS variables; a chart saved out of the page falls back to light."""
    plain = {f.name: f"var(--{f.name},{getattr(LIGHT, f.name)})" for f in fields(LIGHT) if f.name != "series"}
    series = tuple(f"var(--series-{i},{colour})" for i, colour in enumerate(LIGHT.series))
    return Look(**plain, series=series)


def configuration(look: Look) -> dict[str, Any]:
    """Make Vega-Lite's `config` for a look."""
    return {
        "background": look.paper,
        "font": FONT,
        "padding": 8,
        "view": {"stroke": None, "continuousWidth": 480, "continuousHeight": 280},
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": look.ink,
            "fontSize": 15,
            "fontWeight": 600,
            "offset": 12,
            "subtitleColor": look.muted,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
        },
        "axis": {
            "labelColor": look.ink,
            "titleColor": look.ink,
            "labelFontSize": 12,
            "titleFontSize": 12.5,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelLimit": 220,
            "gridColor": look.grid,
            "domainColor": look.muted,
            "tickColor": look.muted,
        },
        "axisX": {"grid": False, "labelFlush": False},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": {
            "labelColor": look.ink,
            "titleColor": look.ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "labelLimit": 260,
            "titleLimit": 260,
            "unselectedOpacity": 0.25,
        },
        "header": {"labelColor": look.ink, "titleColor": look.ink, "labelFontSize": 12, "labelLimit": 220},
        "range": {"category": list(look.series), "heatmap": list(SEQUENTIAL), "diverging": list(DIVERGING)},
        "text": {"color": look.ink, "fontSize": 11.5},
        "rule": {"color": look.ink},
        "style": {
            "halo": {"color": look.paper, "stroke": look.paper, "strokeWidth": 4, "strokeJoin": "round"},
            "reason": {"color": look.muted, "fontStyle": "italic"},
            "threshold": {"color": look.muted, "strokeDash": [5, 4], "strokeWidth": 1.5},
            "best": {"stroke": look.paper, "strokeWidth": 1.5},
        },
    }
