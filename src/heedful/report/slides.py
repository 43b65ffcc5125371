"""A report to project in class: one figure per screen, large type, moved with the keyboard, offline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from heedful.report.charts.vega import HEIGHT, WIDTH, Chart
from heedful.report.page import Page
from heedful.report.theme import CONTRAST, DEFAULT

ROWS_MOST, COLUMNS_MOST = 8, 7
"""A larger table cannot be read from the back of a room."""


@dataclass(frozen=True)
class Slide:
    section: str
    """What the slide is about, in small letters at its top."""
    block: dict[str, Any]


def list_slides(page: Page) -> Iterator[Slide]:
    """List what follows the first slide: findings, figures and small tables, but no closed parts."""
    section = page.title
    for block in [*page.lead, *page.blocks]:
        kind = block["type"]
        if kind in ("section", "part"):
            section = block["title"]
        elif kind == "figure":
            yield Slide(section, block)
        elif kind == "findings" and block["findings"] and block in page.lead:
            yield Slide("What to know before you trust it", block)
        elif kind == "table" and len(block["rows"]) <= ROWS_MOST and len(block["columns"]) <= COLUMNS_MOST:
            yield Slide(section, block)


def render_slides(page: Page) -> str:
    """Return a page as slides, with strong contrast unless the page has a theme of its own."""
    theme = replace(CONTRAST, font=DEFAULT.font) if page.theme is DEFAULT else page.theme
    slides = list(list_slides(page))
    specifications = [fit_screen(chart) for chart in page.charts.values()]
    return page.render("slides", theme, specifications, slides=slides)


def fit_screen(chart: Chart) -> dict[str, Any]:
    """Return a chart of the usual size in the shape of a screen; it is then enlarged as a picture."""
    size = {"width": 540} if chart.get("width") == WIDTH else {}
    size |= {"height": 240} if chart.get("height") == HEIGHT else {}
    return {**chart, **size, "description": " ".join(chart["title"]["text"])}
