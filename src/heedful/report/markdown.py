"""Pages as Markdown in GitHub's dialect, for a repository, a wiki or a message. Text from data is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from heedful.report.page import Page

SPECIAL = re.compile(r"([\\`*_{}\[\]|~$]|(?<!&)#)")  # a number sign after & belongs to a character entity
LINKS = re.compile(r"(?<=\w)(:)(?=//)|(?<=www)(\.)|(@)", re.IGNORECASE)
AT_START = re.compile(r"^(\s*)([-+=]|\d+[.)](?=\s|$))", re.MULTILINE)
"""What would start a list, a heading or a rule."""


def render_markdown(page: Page, address: Callable[[str], str]) -> str:
    """Return a page as Markdown; `address` returns the link to a figure's picture, by the figure's name."""
    lines = [f"# {escape_markdown(page.title)}", "", *render_paragraphs(page.summary)]
    lines += render_blocks([*page.lead, *page.blocks], address)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def render_blocks(blocks: Iterable[dict[str, Any]], address: Callable[[str], str]) -> list[str]:
    lines: list[str] = []
    for block in blocks:
        kind = block["type"]
        if kind in ("section", "part"):
            lines += [f"{'##' if kind == 'section' else '###'} {escape_markdown(block['title'])}", ""]
        elif kind == "text":
            lines += render_paragraphs(block["paragraphs"])
        elif kind == "note":
            lines += [f"> {escape_markdown(block['text'])}", ""]
        elif kind == "code":
            lines += render_code(block["text"])
        elif kind == "figure":
            lines += [f"![{escape_markdown(block['title'])}]({address(block['name'])})", ""]
            lines += render_paragraphs([block["caption"]] if block["caption"] else [])
        elif kind == "table":
            rows = [[cell["text"] for cell in row] for row in block["rows"]]
            names, right = zip(*((c["name"], c["right"]) for c in block["columns"]), strict=True)
            lines += render_table(block["caption"], names, rows, right)
        elif kind == "findings":
            rows = [[row["word"], row["name"], row["text"]] for row in block["findings"]]
            lines += render_table("", ("", "check", "finding"), rows, (False, False, False)) if rows else []
            lines += render_paragraphs([block["more"]] if block["more"] else [])
        elif kind == "facts":
            lines += render_table(block["caption"], ("", ""), block["facts"], (False, False))
        else:
            lines += [f"**{escape_markdown(block['title'])}**", "", *render_blocks(block["blocks"], address)]
    return lines


def render_paragraphs(texts: Iterable[str]) -> list[str]:
    """Render lines as paragraphs; what is indented as a list, and commands among it as code."""
    lines: list[str] = []
    for kind, group in groupby(texts, name_line):
        alike = list(group)
        if kind == "command":
            lines += render_code("\n".join(text.strip() for text in alike))
        elif kind == "item":
            lines += [*(f"- {escape_markdown(text.strip())}" for text in alike), ""]
        else:
            lines += [line for text in alike for line in (escape_markdown(text), "")]
    return lines


def name_line(text: str) -> str:
    if not text.startswith("  "):
        return "paragraph"
    return "command" if text.startswith("  heedful ") else "item"


def render_table(
    caption: str, names: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool]
) -> list[str]:
    lines = [escape_markdown(caption), ""] if caption else []
    cells = [list(map(escape_markdown, names)), ["---:" if side else "---" for side in right]]
    cells += [list(map(escape_markdown, row)) for row in rows]
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells), ""]


def render_code(text: str) -> list[str]:
    """Render preformatted text, in a fence longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text.rstrip("\n"), fence, ""]


def escape_markdown(text: str) -> str:
    """Escape text for one line: no markup, no HTML, no link, no mention."""
    flat = " ".join(text.split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = LINKS.sub(lambda m: f"&#{ord(m[0])};", flat)
    flat = SPECIAL.sub(r"\\\1", flat)
    return AT_START.sub(
        lambda m: m[1] + "\\" + m[2] if len(m[2]) == 1 else m[1] + m[2][:-1] + "\\" + m[2][-1], flat
    )
