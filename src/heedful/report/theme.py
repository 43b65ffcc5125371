"""Chart themes: the colors and the font of figures and pages, for light and dark.

Chart specifications have no colors of their own; they come from the configuration made here. An image file
gets plain colors. In a page the same properties are CSS variables, so that a chart follows the reader's light
or dark setting, and paper, without being drawn again.

Another package adds a theme through an entry point and `heedful report --theme NAME` uses it:

    [project.entry-points."heedful.themes"]
    ocean = "my_package:OCEAN"

where `OCEAN = replace(DEFAULT, light=replace(DEFAULT.light, series=(...)))`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from heedful.errors import UserError
from heedful.plugins import Registry

SERIES_COLORS = 8
"""The number of colors for series; charts with more series add dashes."""
SPLITS = {"train": 0, "dev": 1, "test": 2}
"""The color of each split, as its position in `Palette.series`: the same in every chart and table."""
OTHER_SERIES = (6, 4, 5, 3, 7, 0, 1, 2)
"""The order in which other series take their colors, those of the splits last."""


@dataclass(frozen=True)
class Palette:
    """The colors of a theme on light or on dark paper, as CSS colors."""

    paper: str
    ink: str
    muted: str
    grid: str
    raised: str
    """The background of code and notes."""
    good: str
    warning: str
    bad: str
    series: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.series) != SERIES_COLORS:
            raise UserError(f"a theme needs {SERIES_COLORS} colors for series, not {len(self.series)}")


@dataclass(frozen=True)
class Theme:
    """What all figures and pages of a report share.

    `sequential` is the color scale of heat maps, from the lowest value to the highest; the middle of
    `diverging` is zero. Numbers in cells are written in `low_ink` on low values and in `high_ink` on high
    ones (on extreme ones, if the scale is diverging).
    """

    light: Palette
    dark: Palette
    sequential: tuple[str, ...]
    diverging: tuple[str, ...]
    low_ink: str = "#14202e"
    high_ink: str = "#ffffff"
    empty_cell: str = "#c9ced6"
    font: str = "Liberation Sans, Arial, Helvetica, sans-serif"


# Series colors follow Okabe and Ito (2008), safe for color-blind readers, lightened or darkened for contrast.
DEFAULT = Theme(
    light=Palette(
        paper="#ffffff", ink="#1c2430", muted="#5a6472", grid="#e3e7ec", raised="#f5f7f9",
        good="#00704f", warning="#8a5a00", bad="#b3261e",
        series=("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00", "#56b4e9", "#5b3a8e", "#4d4d4d"),
    ),
    dark=Palette(
        paper="#14181f", ink="#e8ecf2", muted="#a3adbb", grid="#2c333e", raised="#1c222b",
        good="#3ecf9e", warning="#f0b64a", bad="#ff8a80",
        series=("#4da3e0", "#f0803c", "#2cc79c", "#e5a3c8", "#e0c341", "#8fd0f5", "#b59ae6", "#b8b8b8"),
    ),
    # Light to dark in one hue, readable in gray.
    sequential=("#f4f8fc", "#c6ddf0", "#86b8dd", "#4690c4", "#17659f", "#07365f"),
    diverging=("#8c3a00", "#d98242", "#f3d2b5", "#f5f6f7", "#b7d5ec", "#4690c4", "#083e6b"),
)  # fmt: skip
# For projectors and low vision: black on white or white on black, series with at least 4.5 : 1 contrast.
CONTRAST = replace(
    DEFAULT,
    light=replace(
        DEFAULT.light, ink="#000000", muted="#3a3a3a", grid="#c8c8c8",
        series=("#004488", "#b33c00", "#006b4f", "#9b2f74", "#6b5500", "#006c9c", "#4b2a7e", "#333333"),
    ),
    dark=replace(
        DEFAULT.dark, paper="#000000", ink="#ffffff", muted="#cccccc", grid="#4a4a4a",
        series=("#74bdff", "#ff9a5c", "#4fe3b8", "#ffb3dc", "#ffe066", "#a8deff", "#cdb5ff", "#d9d9d9"),
    ),
    low_ink="#000000",
)  # fmt: skip

THEMES: Registry[Theme] = Registry(
    "theme", {"default": "heedful.report.theme:DEFAULT", "contrast": "heedful.report.theme:CONTRAST"}
)


def find_theme(name: str) -> Theme:
    theme = THEMES.find(name)
    if not isinstance(theme, Theme):
        raise UserError(
            f'theme "{name}" of the package {THEMES.package(name)} is a {type(theme).__name__}; '
            "it must be a heedful.report.theme.Theme"
        )
    return theme


def write_css_variables(palette: Palette) -> str:
    """Write a palette as CSS declarations, with the names that `make_page_palette` refers to."""
    declarations = [f"--{f.name}:{getattr(palette, f.name)}" for f in fields(palette) if f.name != "series"]
    declarations += [f"--series-{i}:{color}" for i, color in enumerate(palette.series)]
    declarations += [f"--{split}:{palette.series[i]}" for split, i in SPLITS.items()]
    return ";".join(declarations)


def make_page_palette(theme: Theme) -> Palette:
    """Return the palette of charts in a page: CSS variables that fall back to light outside of it."""
    light = theme.light
    single = {
        f.name: f"var(--{f.name},{getattr(light, f.name)})" for f in fields(light) if f.name != "series"
    }
    series = tuple(f"var(--series-{i},{color})" for i, color in enumerate(light.series))
    return Palette(**single, series=series)


def make_vega_config(theme: Theme, palette: Palette) -> dict[str, Any]:
    paper, ink, muted = palette.paper, palette.ink, palette.muted
    labels = {"labelColor": ink, "titleColor": ink, "labelFontSize": 12}
    title = {"anchor": "start", "frame": "bounds", "color": ink, "fontSize": 15, "fontWeight": 600}
    subtitle = {"offset": 12, "subtitleColor": muted, "subtitleFontSize": 12, "subtitlePadding": 4}
    axis_title = {"titleFontWeight": "normal", "titleFontSize": 12.5, "titlePadding": 8}
    axis_colors = {"gridColor": palette.grid, "domainColor": muted, "tickColor": muted}
    legend_title = {"titleFontWeight": "normal", "titleFontSize": 12, "titleLimit": 260}
    return {
        "background": paper,
        "font": theme.font,
        "padding": {"left": 8, "right": 16, "top": 8, "bottom": 8},
        "view": {"stroke": None, "continuousWidth": 480, "continuousHeight": 280},
        "title": {**title, **subtitle},
        "axis": {**labels, "labelLimit": 220, **axis_title, **axis_colors},
        "axisX": {"grid": False, "labelFlush": False},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": {**labels, "labelLimit": 260, **legend_title, "unselectedOpacity": 0.25},
        "header": {**labels, "labelLimit": 220},
        "range": {
            "category": list(palette.series),
            "heatmap": list(theme.sequential),
            "diverging": list(theme.diverging),
        },
        "text": {"color": ink, "fontSize": 11.5},
        "rule": {"color": ink},
        "style": {
            "halo": {"color": paper, "stroke": paper, "strokeWidth": 4, "strokeJoin": "round"},
            "reason": {"color": muted, "fontStyle": "italic"},
            "threshold": {"color": muted, "strokeDash": [5, 4], "strokeWidth": 1.5},
            "best": {"stroke": paper, "strokeWidth": 1.5},
            "low-cell": {"color": theme.low_ink},
            "high-cell": {"color": theme.high_ink},
            "empty-cell": {"color": theme.empty_cell},
        },
    }
