"""Write a chart to a file: PNG, SVG and PDF through vl-convert, offline; HTML as a page of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Literal

from heedful.errors import UserError
from heedful.report.parts import Chart
from heedful.report.theme import LOOKS, configuration
from heedful.runs.files import write_bytes

EXTENSIONS = (".png", ".svg", ".pdf", ".html")
PNG_SCALE = 2.0
VEGA_LITE = "6.4"
PATH = re.compile(r' (?:d|transform)="[-+a-zA-Z0-9., ()]*"')
DIGITS = re.compile(r"(?<=\.\d{3})\d+")
"""Behind a thousandth of a pixel."""


def save(chart: Chart, path: str | Path, *, look: Literal["light", "dark"] = "light") -> Path:
    """Write a chart; the ending of `path` (.png, .svg, .pdf or .html) chooses the form. Folders are made."""
    target = Path(path)
    return write_bytes(target, render(chart, ending(target), look))


def ending(path: Path) -> str:
    """The form that a file's name asks for; what cannot be written is refused before it is computed."""
    if path.suffix.lower() not in EXTENSIONS:
        raise UserError(f'{path}: a figure ends in {", ".join(EXTENSIONS)}, not in "{path.suffix}"')
    return path.suffix.lower()


def render(chart: Chart, ending: str, look: Literal["light", "dark"] = "light") -> bytes:
    """Draw a chart in the form that a file with this ending holds."""
    if ending == ".html":
        from heedful.report.page import Page

        page = Page(" ".join(chart["title"]["text"]))
        page.figure(chart)
        return page.html().encode()
    import vl_convert

    # A page reads its marks out; in a file their names would be half of it.
    config = {**configuration(LOOKS[look]), "aria": False}
    specification = json.dumps({**chart, "config": config}, allow_nan=False)
    version, nothing_outside = VEGA_LITE, list[str]()
    if ending == ".svg":
        svg: str = vl_convert.vegalite_to_svg(specification, version, allowed_base_urls=nothing_outside)
        return PATH.sub(lambda path: DIGITS.sub("", path[0]), svg).encode()
    if ending == ".pdf":
        pdf: bytes = vl_convert.vegalite_to_pdf(specification, version, allowed_base_urls=nothing_outside)
        return pdf
    png: bytes = vl_convert.vegalite_to_png(
        specification, version, scale=PNG_SCALE, allowed_base_urls=nothing_outside
    )
    return png
