"""One self-contained HTML file: words, figures, tables that sort, facts. Works offline and in print.

    page = Page("minilm on sst2", summary="Accuracy 0.91 on test, between 0.89 and 0.93.")
    page.section("Curves")
    page.figure(charts.lines(...), caption="Accuracy by epoch")
    page.write("report.html")

Nothing in the page is trusted and nothing leaves it: all text is escaped, data are JSON that cannot end their
element, a content security policy runs only the page's own two scripts (by their hashes) and forbids every
request. Vega's expressions are interpreted, so that even `eval` stays forbidden.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.errors import one_line
from heedful.report.formats import choose_format, format_number, is_number
from heedful.report.parts import WIDTH, Chart
from heedful.report.save import VEGA_LITE
from heedful.report.theme import DARK, LIGHT, configuration, css_variables, page_look
from heedful.runs.files import write_bytes

if TYPE_CHECKING:
    from jinja2 import Template

NOTHING = "'none'"
Kind = Literal["plain", "good", "warning", "bad"]


@dataclass(frozen=True)
class Cell:
    """A table's cell that is shown as `text` and sorted by `key`."""

    text: str
    key: float | str
    kind: Kind = "plain"


class Page:
    """Blocks in the order they are added; `write` makes the file."""

    def __init__(self, title: str, *, summary: str | Sequence[str] = (), kind: Kind = "plain") -> None:
        self.title = clean(title)
        self.kind = kind
        self.summary = [clean(line) for line in ([summary] if isinstance(summary, str) else summary)]
        self.blocks: list[dict[str, Any]] = []
        self.sections: list[str] = []
        self.figures: list[Chart] = []
        self.charts: dict[str, Chart] = {}
        """The figures as they were given, by name."""
        self._into = self.blocks

    def section(self, title: str) -> None:
        """Start a section; the page lists its sections at the top."""
        self.sections.append(clean(title))
        self._into.append(
            {"type": "section", "title": self.sections[-1], "anchor": f"section-{len(self.sections)}"}
        )

    def part(self, title: str) -> None:
        """Start a part of a section, which the list at the top leaves out."""
        self._into.append({"type": "part", "title": clean(title)})

    def text(self, *paragraphs: str) -> None:
        """Add paragraphs."""
        self._into.append({"type": "text", "paragraphs": [clean(p) for p in paragraphs]})

    def note(self, text: str, kind: Kind = "plain") -> None:
        """Add one remark that stands out, such as what a check has found."""
        self._into.append({"type": "note", "text": clean(text), "kind": kind})

    def code(self, text: str) -> None:
        """Add text with its line ends, such as a command or a configuration."""
        self._into.append({"type": "code", "text": clean(text)})

    def figure(self, chart: Chart, caption: str = "", name: str = "") -> None:
        """Add a chart of `heedful.report.charts`; one of the usual width follows the width of the page.

        `name` is what a file of the figure is called; without one it is made of the title.
        """
        title = " ".join(chart["title"]["text"])
        named = unused(file_name(name or title), self.charts)
        self.charts[named] = chart
        block = {"type": "figure", "index": len(self.figures), "caption": clean(caption), "name": named}
        least = chart.get("usermeta", {}).get("least", 0)
        self._into.append({**block, "title": title, "least": int(least)})
        wide: Chart = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
        self.figures.append({**chart, "description": title, **(wide if chart.get("width") == WIDTH else {})})

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> None:
        """Add a table; numbers stand right in one format a column, a click on a column's name sorts by it."""
        table = [list(row) for row in rows]
        width = len(columns)
        if any(len(row) != width for row in table):
            raise ValueError(f"every row of a table with {width} columns needs {width} cells")
        sides = (
            [column(list(cells)) for cells in zip(*table, strict=True)] if table else [(False, [])] * width
        )
        self._into.append(
            {
                "type": "table",
                "caption": clean(caption),
                "columns": [{"name": clean(n), "right": r} for n, (r, _) in zip(columns, sides, strict=True)],
                "rows": list(zip(*(cells for _, cells in sides), strict=True)) if table else [],
            }
        )

    def facts(self, facts: Mapping[str, Any], caption: str = "") -> None:
        """Add names and values."""
        pairs = [
            (clean(name), format_number(v) if is_number(v) else clean(str(v))) for name, v in facts.items()
        ]
        self._into.append({"type": "facts", "facts": pairs, "caption": clean(caption)})

    @contextmanager
    def details(self, title: str, *, opened: bool = False) -> Iterator[None]:
        """Put what is added inside the `with` into a part that the reader opens."""
        outer, inner = self._into, list[dict[str, Any]]()
        outer.append({"type": "details", "title": clean(title), "blocks": inner, "opened": opened})
        self._into = inner
        try:
            yield
        finally:
            self._into = outer

    def html(self, pictures: Mapping[str, bytes] | None = None) -> str:
        """Give the whole page; with `pictures` (SVG, by the figures' names) for paper, without scripts."""
        from markupsafe import Markup

        scripts = [bundle(), source("page.js")] if self.figures else [source("page.js")]
        drawn = None
        if pictures is not None:
            scripts, drawn = [], {name: base64.b64encode(svg).decode() for name, svg in pictures.items()}
        hashes = " ".join(f"'sha256-{fingerprint(script)}'" for script in scripts)
        policy = (
            f"default-src 'none'; script-src {hashes or NOTHING}; style-src 'unsafe-inline'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )
        figures = self.figures if scripts else []
        data = {"config": configuration(page_look()), "specifications": figures}
        style = source("page.css")
        for name, look in (("LIGHT", LIGHT), ("DARK", DARK)):
            style = style.replace(f"/* {name} */", css_variables(look))
        return str(
            template().render(
                page=self,
                pictures=drawn,
                policy=policy,
                style=Markup(style),
                scripts=[Markup(script) for script in scripts],
                data=Markup(embedded_json(data)),
            )
        )

    def write(self, path: str | Path) -> Path:
        """Write the page; folders are made."""
        return write_bytes(path, self.html().encode())


def file_name(text: str) -> str:
    """Turn words into a file's name without its ending: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].rstrip("-") or "figure"


def unused(name: str, taken: Container[str]) -> str:
    """Number a name that is taken."""
    count = 2
    numbered = name
    while numbered in taken:
        numbered, count = f"{name}-{count}", count + 1
    return numbered


def column(cells: list[Any]) -> tuple[bool, list[dict[str, str]]]:
    """Prepare a column: whether it holds numbers, and each cell's text and key for sorting."""
    numbers = [cell for cell in cells if is_number(cell)]
    form = choose_format(numbers)
    shown = []
    for cell in cells:
        if isinstance(cell, Cell):
            shown.append({"text": clean(cell.text), "key": clean(str(cell.key)), "kind": cell.kind})
        elif cell is None:
            shown.append({"text": "", "key": ""})
        elif is_number(cell):
            shown.append({"text": form(cell), "key": repr(float(cell))})
        else:
            shown.append({"text": clean(str(cell)), "key": clean(str(cell))})
    keyed = [cell for cell in cells if isinstance(cell, Cell) and not isinstance(cell.key, str)]
    return bool(numbers or keyed) and all(is_number(c) or c is None or c in keyed for c in cells), shown


def clean(text: str) -> str:
    """Make control characters visible; line ends and tabs stay."""
    return "\n".join("\t".join(one_line(part) for part in line.split("\t")) for line in text.split("\n"))


def embedded_json(data: Any) -> str:
    """Write JSON that can stand inside a script element: nothing in it can end the element or the line."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def source(name: str) -> str:
    """Read one of the page's own files."""
    return (files("heedful.report") / name).read_text(encoding="utf-8")


@cache
def template() -> Template:
    """Prepare the page's template; everything put into it is escaped."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source("page.html"))


@cache
def bundle() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script, which vl-convert brings with it."""
    import vl_convert

    expose = "window.vegaEmbed = vegaEmbed;"
    script: str = vl_convert.javascript_bundle(expose, VEGA_LITE)
    # What an HTML parser could take for the end or the start of something is rewritten, inside strings only.
    return script.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "<\\!--")


def fingerprint(script: str) -> str:
    """Hash a script as a content security policy wants it."""
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
