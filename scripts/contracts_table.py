"""Write the suites and their claims into docs/contracts.md; with --check, only say whether they are there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from heedful.contracts.suite import SUITES
from heedful.course.bugs import find_bugs

PAGE = Path(__file__).parents[1] / "docs" / "contracts.md"
BEGIN, END = "<!-- suites: written by scripts/contracts_table.py -->\n", "<!-- end of the suites -->\n"


def write_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def render_suites() -> Iterator[str]:
    """Yield the lines: a heading per suite, its operations, its claims, and the mistakes that it names."""
    for name in SUITES:
        suite = SUITES.find(name)
        if not suite.claims:
            continue
        yield f"### {name}\n\n{write_cell(suite.about[:1].upper() + suite.about[1:])}.\n"
        yield "\n| operation | inputs and outputs |\n| --- | --- |\n"
        for operation, about in suite.operations.items():
            yield f"| `{operation}` | {write_cell(about)} |\n"
        yield "\n| claim | what it says |\n| --- | --- |\n"
        for claim in suite.claims:
            yield f"| {claim.name} | {write_cell(claim.sentence)} |\n"
        mistakes = sorted({bug.name for bug in find_bugs(name)})
        if mistakes:
            yield f"\nMistakes with a name ({len(mistakes)}): {write_cell(', '.join(mistakes))}.\n"
        yield "\n"


def main() -> None:
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    wanted = before + BEGIN + "\n" + "".join(render_suites()) + END + after
    if "--check" in sys.argv:
        sys.exit(0 if text == wanted else "docs/contracts.md is old: run scripts/contracts_table.py")
    PAGE.write_text(wanted, "utf-8")


if __name__ == "__main__":
    main()
