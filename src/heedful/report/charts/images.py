"""Charts as files: PNG, SVG and PDF through vl-convert, offline; HTML as a page of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

from heedful.errors import UserError
from heedful.report.charts.vega import Chart
from heedful.report.theme import DEFAULT, Theme, make_vega_config
from heedful.runs.files import write_bytes

EXTENSIONS = (".png", ".svg", ".pdf", ".html")
PNG_SCALE = 2.0
VEGA_LITE = "6.4"
SVG_PATH = re.compile(r' (?:d|transform)="[-+a-zA-Z0-9., ()]*"')
EXCESS_DIGITS = re.compile(r"(?<=\.\d{3})\d+")
"""Digits beyond a thousandth of a pixel."""
Mode = Literal["light", "dark"]


def save_chart(chart: Chart, path: str | Path, *, mode: Mode = "light", theme: Theme = DEFAULT) -> Path:
    """Write a chart in the format of the extension: .png, .svg, .pdf or .html. Folders are created."""
    target = Path(path)
    return write_bytes(target, render_chart(chart, check_extension(target), mode, theme))


def check_extension(path: Path) -> str:
    if path.suffix.lower() not in EXTENSIONS:
        raise UserError(f'{path}: a figure ends in {", ".join(EXTENSIONS)}, not in "{path.suffix}"')
    return path.suffix.lower()


def render_chart(chart: Chart, extension: str, mode: Mode = "light", theme: Theme = DEFAULT) -> bytes:
    if extension == ".html":
        from heedful.report.page import Page

        page = Page(" ".join(chart["title"]["text"]), theme=theme)
        page.figure(chart)
        return page.html().encode()
    import vl_convert

    # Descriptions for screen readers are useful in a page; in a file they would be half of its size.
    config = {**make_vega_config(theme, getattr(theme, mode)), "aria": False}
    specification = json.dumps({**chart, "config": config}, allow_nan=False)
    version, no_urls = VEGA_LITE, list[str]()
    if extension == ".svg":
        svg: str = vl_convert.vegalite_to_svg(specification, version, allowed_base_urls=no_urls)
        return SVG_PATH.sub(lambda path: EXCESS_DIGITS.sub("", path[0]), svg).encode()
    if extension == ".pdf":
        image: bytes = vl_convert.vegalite_to_pdf(specification, version, allowed_base_urls=no_urls)
    else:
        image = vl_convert.vegalite_to_png(specification, version, PNG_SCALE, allowed_base_urls=no_urls)
    return image
