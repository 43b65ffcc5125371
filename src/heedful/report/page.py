"""One self-contained HTML file of text, figures, sortable tables and facts, for screen and paper, offline.

    page = Page("minilm on sst2", summary="Accuracy 0.91 on test, between 0.89 and 0.93.")
    page.section("Curves")
    page.figure(charts.lines(...), caption="Accuracy by epoch")
    page.write("report.html")

Text from data is never trusted: all text is escaped, data are JSON that cannot end their element, and a
content security policy allows only the page's own two scripts (by their hashes) and forbids every request.
Vega's expressions are interpreted, so that even `eval` stays forbidden.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from heedful.errors import one_line
from heedful.report.charts.images import VEGA_LITE
from heedful.report.charts.vega import WIDTH, Chart
from heedful.report.formats import choose_format, format_number, is_number
from heedful.report.theme import (
    DEFAULT,
    SPLITS,
    Theme,
    make_page_palette,
    make_vega_config,
    write_css_variables,
)
from heedful.runs.files import write_bytes

if TYPE_CHECKING:
    from jinja2 import Template

Kind = Literal["plain", "good", "warning", "bad"]
SEVERITIES: dict[Kind, str] = {"bad": "problem", "warning": "caution", "good": "fine", "plain": "not checked"}
"""The word for each kind of finding, so that nothing is told by color alone."""


@dataclass(frozen=True)
class Cell:
    text: str
    key: float | str
    kind: Kind = "plain"


@dataclass(frozen=True)
class Headline:
    """What a page says first, in large type."""

    verdict: str
    """One plain sentence."""
    kind: Kind = "plain"
    value: str = ""
    """The most important number, such as the score on test."""
    label: str = ""
    """What `value` is."""
    detail: str = ""
    """How sure `value` is."""
    split: str = ""
    """The split that `value` is from; it has the split's color."""


@dataclass(frozen=True)
class Finding:
    """The result of a check: `kind` is its severity."""

    kind: Kind
    name: str
    text: str
    word: str = ""
    """The word for the severity; by default that of its kind."""


class Page:
    """Blocks in the order in which they are added; `write` makes the file."""

    def __init__(
        self, title: str, *, summary: str | Sequence[str] = (), kind: Kind = "plain", theme: Theme = DEFAULT
    ) -> None:
        self.title = clean(title)
        self.theme = theme
        self.kind = kind
        self.summary = [clean(line) for line in ([summary] if isinstance(summary, str) else summary)]
        self.headline: Headline | None = None
        self.lead: list[dict[str, Any]] = []
        """Blocks between the headline and the summary: the most important figure and what needs attention."""
        self.covered: set[str] = set()
        """Lines of the summary that the top of the page says already."""
        self.blocks: list[dict[str, Any]] = []
        self.sections: list[str] = []
        self.figures: list[dict[str, Any]] = []
        self.charts: dict[str, Chart] = {}
        """The figures by name, with the width that they have in files."""
        self._target = self.blocks

    def open_with(self, headline: Headline, covers: Iterable[str] = ()) -> None:
        """Set what the page says first, in large type.

        The verdict is also the first line of the summary. The HTML page leaves out the lines of the summary
        that the headline and the lead `covers`.
        """
        texts: dict[str, Any] = {n: clean(text) for n, text in vars(headline).items() if n != "kind"}
        self.headline = replace(headline, **texts)
        verdict = self.headline.verdict
        self.summary = [verdict, *(line for line in self.summary if line != verdict)]
        self.covered = {verdict, *map(clean, covers)}

    def section(self, title: str) -> None:
        """Start a section; the page lists its sections at the top."""
        self.sections.append(clean(title))
        anchor = f"section-{len(self.sections)}"
        self._target.append({"type": "section", "title": self.sections[-1], "anchor": anchor})

    def part(self, title: str) -> None:
        """Start a part of a section; the list at the top does not show it."""
        self._target.append({"type": "part", "title": clean(title)})

    def text(self, *paragraphs: str) -> None:
        self._target.append({"type": "text", "paragraphs": [clean(p) for p in paragraphs]})

    def note(self, text: str, kind: Kind = "plain") -> None:
        self._target.append({"type": "note", "text": clean(text), "kind": kind})

    def code(self, text: str) -> None:
        self._target.append({"type": "code", "text": clean(text)})

    def figure(self, chart: Chart, caption: str = "", name: str = "", *, lead: bool = False) -> None:
        """Add a chart of `heedful.report.charts`; one of the usual width follows the width of the page.

        `name` is the name of the figure's file; by default it is made from the title. The `lead` figure is
        at the top of the page.
        """
        title = " ".join(chart["title"]["text"])
        name = make_unique(make_file_name(name or title), self.charts)
        self.charts[name] = chart
        block = {"type": "figure", "index": len(self.figures), "caption": clean(caption), "name": name}
        min_width = chart.get("usermeta", {}).get("min_width", 0)
        is_flexible = chart.get("width") == WIDTH
        size = {"min_width": int(min_width), "flexible": is_flexible}
        (self.lead if lead else self._target).append({**block, "title": title, **size})
        wide = {"width": "container", "autosize": {"type": "fit-x", "contains": "padding"}}
        self.figures.append({**chart, "description": title, **(wide if is_flexible else {})})

    def findings(self, findings: Iterable[Finding], more: str = "", *, lead: bool = False) -> None:
        """Add the results of checks, each with its severity in a word; `more` is a line that follows them."""
        rows = [
            {
                "kind": f.kind,
                "word": f.word or SEVERITIES[f.kind],
                "name": clean(f.name),
                "text": clean(f.text),
            }
            for f in findings
        ]
        block = {"type": "findings", "findings": rows, "more": clean(more)}
        (self.lead if lead else self._target).append(block)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> None:
        """Add a table; numbers are right-aligned with one format per column, a click on a heading sorts."""
        table, width = list(rows), len(columns)
        if any(len(row) != width for row in table):
            raise ValueError(f"every row of a table with {width} columns needs {width} cells")
        prepared = [prepare_column(cells) for cells in zip(*table, strict=True)] or [(False, [])] * width
        is_numeric = [numeric for numeric, _ in prepared]
        headings = [
            {"name": clean(name), "right": right, "split": find_split(name)}
            for name, right in zip(columns, is_numeric, strict=True)
        ]
        cells = list(zip(*(cells for _, cells in prepared), strict=True))
        self._target.append({"type": "table", "caption": clean(caption), "columns": headings, "rows": cells})

    def facts(self, facts: Mapping[str, Any], caption: str = "") -> None:
        texts = {name: format_number(v) if is_number(v) else clean(str(v)) for name, v in facts.items()}
        pairs = [(clean(name), text) for name, text in texts.items()]
        self._target.append({"type": "facts", "facts": pairs, "caption": clean(caption)})

    @contextmanager
    def details(self, title: str) -> Iterator[None]:
        """Put what is added inside the `with` block into a part that the reader opens."""
        outer, inner = self._target, list[dict[str, Any]]()
        outer.append({"type": "details", "title": clean(title), "blocks": inner})
        self._target = inner
        try:
            yield
        finally:
            self._target = outer

    def html(self, pictures: Mapping[str, bytes] | None = None) -> str:
        """Return the whole page; with `pictures` (SVG, by the figures' names) for paper, without scripts."""
        encoded = None
        if pictures is not None:
            encoded = {name: base64.b64encode(svg).decode() for name, svg in pictures.items()}
        specifications = self.figures if pictures is None else None
        blocks, lead = group_figures(self.blocks), group_figures(self.lead)
        return self.render("page", self.theme, specifications, pictures=encoded, blocks=blocks, lead=lead)

    def render(
        self, name: str, theme: Theme, specifications: Sequence[Mapping[str, Any]] | None, **values: Any
    ) -> str:
        """Render a template with its style and its script; without specifications it has no script."""
        from markupsafe import Markup

        scripts = [] if specifications is None else [read_source(f"{name}.js")]
        if specifications:
            scripts.insert(0, load_vega())
        digests = [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in scripts]
        hashes = " ".join(f"'sha256-{digest}'" for digest in digests) or "'none'"
        policy = (
            f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        )
        data = {
            "config": make_vega_config(theme, make_page_palette(theme)),
            "specifications": specifications or [],
        }
        style = read_source(f"{name}.css").replace("/* FONT */", theme.font)
        for mode, palette in (("LIGHT", theme.light), ("DARK", theme.dark)):
            style = style.replace(f"/* {mode} */", write_css_variables(palette))
        return str(
            load_template(name).render(
                page=self,
                severities=SEVERITIES,
                policy=policy,
                style=Markup(style),
                scripts=[Markup(script) for script in scripts],
                data=Markup(embed_json(data)),
                **values,
            )
        )

    def write(self, path: str | Path) -> Path:
        return write_bytes(path, self.html().encode())


def find_split(text: str) -> str:
    """Return the split that a heading or a cell begins with, which marks it with the split's color."""
    first = re.split(r"[ ,]", text, maxsplit=1)[0]
    return first if first in SPLITS else ""


def group_figures(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put figures that follow each other into one block, so that a wide page shows them side by side."""
    grouped: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] == "details":
            grouped.append({**block, "blocks": group_figures(block["blocks"])})
        elif block["type"] != "figure" or not block["flexible"]:
            grouped.append(block)
        elif grouped and grouped[-1]["type"] == "figures":
            grouped[-1]["blocks"].append(block)
        else:
            grouped.append({"type": "figures", "blocks": [block]})
    return grouped


def make_file_name(text: str) -> str:
    """Turn text into a file name without extension: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60].rstrip("-") or "figure"


def make_unique(name: str, taken: Container[str]) -> str:
    """Add a number to a name that is taken."""
    candidates = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(candidate for candidate in candidates if candidate not in taken)


def prepare_column(cells: Sequence[Any]) -> tuple[bool, list[dict[str, str]]]:
    """Return whether a column is numeric, and the text and the sort key of each cell."""
    numbers = [cell for cell in cells if is_number(cell)]
    format_cell = choose_format(numbers)
    prepared = []
    for cell in cells:
        if isinstance(cell, Cell):
            prepared.append({"text": clean(cell.text), "key": clean(str(cell.key)), "kind": cell.kind})
        elif cell is None:
            prepared.append({"text": "", "key": ""})
        elif is_number(cell):
            prepared.append({"text": format_cell(cell), "key": repr(float(cell))})
        else:
            prepared.append(
                {
                    "text": clean(str(cell)),
                    "key": clean(str(cell)),
                    "split": cell if isinstance(cell, str) and cell in SPLITS else "",
                }
            )
    keyed = [cell for cell in cells if isinstance(cell, Cell) and not isinstance(cell.key, str)]
    return bool(numbers or keyed) and all(is_number(c) or c is None or c in keyed for c in cells), prepared


def clean(text: str) -> str:
    """Make control characters visible, except line ends and tabs."""
    return "\n".join("\t".join(one_line(part) for part in line.split("\t")) for line in text.split("\n"))


def embed_json(data: Any) -> str:
    """Write JSON for a script element: nothing in it can end the element or the line."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def read_source(name: str) -> str:
    return (files("heedful.report") / name).read_text(encoding="utf-8")


@cache
def load_template(name: str) -> Template:
    """Load a template, which escapes everything put into it."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(read_source(f"{name}.html"))


@cache
def load_vega() -> str:
    """Load Vega, Vega-Lite and Vega-Embed as one script, which is part of vl-convert."""
    import vl_convert

    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE)
    # Rewrite, inside strings, what an HTML parser could take for the end of the script or for a comment.
    return script.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "<\\!--")
