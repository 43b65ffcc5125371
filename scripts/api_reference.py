"""Writes the reference in docs/python.md: every public function and class, from its signature and docstring.

python scripts/api_reference.py            write the reference
python scripts/api_reference.py --check    status 1 if it is stale
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import heedful
from heedful.api import commands
from heedful.api.commands import FUNCTIONS
from heedful.api.data import DataSummary
from heedful.api.use import report
from heedful.contracts.selftest import SelfCheck, SelftestResult
from heedful.inference.predictions import PredictedLabel
from heedful.options.keywords import read_field_docs
from heedful.results import EvaluationResult, RunResult, SolveResult, StudyResult
from heedful.runs.answers import Table

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
BEGIN, END = "<!-- reference -->\n", "<!-- end of reference -->\n"
FUNCTIONS_SHOWN: dict[str, Callable[..., Any]] = {
    **{f"heedful.{name}": getattr(commands, name) for name in FUNCTIONS},
    "heedful.load": heedful.load,
    "heedful.predict": heedful.predict,
    "heedful.evaluate": heedful.evaluate,
    "heedful.report": report,
    "heedful.tokenizer.train": heedful.tokenizer.train,
    "heedful.data.show": heedful.data.show,
    "heedful.selftest": heedful.selftest,
}
CLASSES = (
    heedful.TextClassifier,
    heedful.TextRegressor,
    RunResult,
    StudyResult,
    SolveResult,
    EvaluationResult,
    DataSummary,
    Table,
    PredictedLabel,
    SelftestResult,
    SelfCheck,
)


def write_reference() -> str:
    parts = ["### Functions\n"]
    for name, function in FUNCTIONS_SHOWN.items():
        parts += [f"#### {name}\n", describe_function(name, function)]
    parts.append("### Classes\n")
    for kind in CLASSES:
        parts += [f"#### {kind.__name__}\n", describe_class(kind)]
    return "\n".join(parts)


def describe_function(name: str, function: Callable[..., Any]) -> str:
    """Return the call with its arguments, what it does, and a table of its parameters with their defaults."""
    text, sections = split_docstring(inspect.getdoc(function) or "")
    parameters = inspect.signature(function).parameters
    required = [p.name for p in parameters.values() if p.default is p.empty]
    lines = ["```text", f"{name}({', '.join([*required, '...'])})", "```", "", text, ""]
    about = dict(read_entries(sections.get("Parameters", "")))
    if about:
        lines += [
            "<details><summary>Parameters</summary>",
            "",
            "| parameter | default | |",
            "| --- | --- | --- |",
        ]
        for entry, description in about.items():
            default = parameters[entry].default if entry in parameters else inspect.Parameter.empty
            shown = "" if default is inspect.Parameter.empty else f"`{default!r}`"
            lines.append(f"| `{entry}` | {shown} | {escape(description)} |")
        lines += ["", "</details>", ""]
    return "\n".join([*lines, *show_examples(sections)])


def describe_class(kind: type[Any]) -> str:
    """Return what a class is, its attributes and its methods."""
    text, sections = split_docstring(inspect.getdoc(kind) or "")
    lines = [text, ""]
    rows = read_entries(sections.get("Attributes", ""))
    rows += [(n, about) for n, about in read_field_docs(kind).items() if n not in dict(rows)]
    for name, member in inspect.getmembers(kind):
        if name.startswith("_") or name in dict(rows) or not belongs(kind, name):
            continue
        if isinstance(member, str):  # the default of a field
            continue
        doc = inspect.getdoc(member.func if hasattr(member, "func") else member)
        call = "()" if callable(member) else ""
        if doc:
            rows.append((f"{name}{call}", " ".join(doc.partition("\n\n")[0].split())))
    if rows:
        lines += [
            "| attribute | |",
            "| --- | --- |",
            *(f"| `{name}` | {escape(about)} |" for name, about in rows),
            "",
        ]
    return "\n".join([*lines, *show_examples(sections)])


def belongs(kind: type[Any], name: str) -> bool:
    """Whether this package defines a member, rather than scikit-learn."""
    owner = next(base for base in kind.__mro__ if name in vars(base))
    return owner.__module__.startswith("heedful")


def split_docstring(doc: str) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring, and its sections by title."""
    head, *rest = re.split(r"^(Parameters|Attributes|Returns|Examples)\n-+\n", doc, flags=re.MULTILINE)
    return head.strip(), dict(zip(rest[::2], rest[1::2], strict=True))


def read_entries(section: str) -> list[tuple[str, str]]:
    """Return the names of a section with their descriptions."""
    entries: list[tuple[str, str]] = []
    for line in section.splitlines():
        if line and not line.startswith(" ") and " " not in line.strip():
            entries.append((line.strip(), ""))
        elif entries and line.strip():
            entries[-1] = entries[-1][0], f"{entries[-1][1]} {line.strip()}".strip()
    return entries


def show_examples(sections: dict[str, str]) -> list[str]:
    code = [line.removeprefix(">>> ") for line in sections.get("Examples", "").strip().splitlines()]
    return ["```text", *code, "```", ""] if code else []


def escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(arguments: list[str]) -> int:
    """Write the reference, or compare it."""
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    new = before + BEGIN + write_reference() + END + rest.partition(END)[2]
    if arguments == ["--check"]:
        print("" if new == text else "stale: docs/python.md; python scripts/api_reference.py")
        return int(new != text)
    PAGE.write_text(new, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
