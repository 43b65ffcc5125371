"""A page as Markdown, in GitHub's form: for a repository, a wiki, a message. Text from data stays text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from heedful.report.page import Page

SPECIAL = re.compile(r"([\\`*_{}\[\]#|~$])")
LINKS = re.compile(r"(?<=\w)(:)(?=//)|(?<=www)(\.)|(@)", re.IGNORECASE)
AT_START = re.compile(r"^(\s*)([-+=]|\d+[.)](?=\s|$))", re.MULTILINE)
"""What would begin a list, a heading or a rule."""


def markdown(page: Page, address: Callable[[str], str]) -> str:
    """Write a page; `address` says where the picture of a figure is, by the figure's name."""
    lines = [f"# {inline(page.title)}", "", *paragraphs(page.summary)]
    lines += blocks(page.blocks, address)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def blocks(given: Iterable[dict[str, Any]], address: Callable[[str], str]) -> list[str]:
    """Write blocks in their order."""
    lines: list[str] = []
    for block in given:
        kind = block["type"]
        if kind in ("section", "part"):
            lines += [f"{'##' if kind == 'section' else '###'} {inline(block['title'])}", ""]
        elif kind == "text":
            lines += paragraphs(block["paragraphs"])
        elif kind == "note":
            lines += [f"> {inline(block['text'])}", ""]
        elif kind == "code":
            lines += fenced(block["text"])
        elif kind == "figure":
            lines += [f"![{inline(block['title'])}]({address(block['name'])})", ""]
            lines += paragraphs([block["caption"]] if block["caption"] else [])
        elif kind == "table":
            rows = [[cell["text"] for cell in row] for row in block["rows"]]
            names, right = zip(*((c["name"], c["right"]) for c in block["columns"]), strict=True)
            lines += table(block["caption"], names, rows, right)
        elif kind == "facts":
            lines += table(block["caption"], ("", ""), block["facts"], (False, False))
        else:
            lines += [f"**{inline(block['title'])}**", "", *blocks(block["blocks"], address)]
    return lines


def paragraphs(texts: Iterable[str]) -> list[str]:
    """Write paragraphs, an empty line after each."""
    return [line for text in texts for line in (inline(text), "")]


def table(
    caption: str, names: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[bool]
) -> list[str]:
    """Write a table with its caption before it."""
    lines = [inline(caption), ""] if caption else []
    lines.append(f"| {' | '.join(map(inline, names))} |")
    lines.append(f"| {' | '.join('---:' if side else '---' for side in right)} |")
    return [*lines, *(f"| {' | '.join(map(inline, row))} |" for row in rows), ""]


def fenced(text: str) -> list[str]:
    """Write text as it is, in a fence longer than any inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, text.rstrip("\n"), fence, ""]


def inline(text: str) -> str:
    """Make text harmless on one line: no markup, no HTML, no link, no mention."""
    flat = " ".join(text.split())
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = LINKS.sub(lambda m: f"&#{ord(m[0])};", flat)
    flat = SPECIAL.sub(lambda m: m[1] if is_entity(flat, m.start()) else "\\" + m[1], flat)
    return AT_START.sub(
        lambda m: m[1] + "\\" + m[2] if len(m[2]) == 1 else m[1] + m[2][:-1] + "\\" + m[2][-1], flat
    )


def is_entity(text: str, place: int) -> bool:
    """Tell whether a number sign belongs to a character written by its number."""
    return text[place] == "#" and text[place - 1 : place] == "&"
