"""Writes the list of modules in README.md: every module of the package with its duty in a line.

    python scripts/module_map.py            write the list
    python scripts/module_map.py --check    print what is missing or stale; status 1 if anything is

The duty of a module is the first sentence of its docstring, or of that of its first class.
"""

from __future__ import annotations

import ast
import html
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "heedful"
README = ROOT / "README.md"
BEGIN, END = "<!-- modules -->\n", "<!-- end of modules -->\n"
LAYERS = [
    "cli",
    "studio",
    "course",
    "contracts",
    "lab",
    "studies",
    "launch",
    "training",
    "evaluation",
    "inference",
    "problems",
    "objectives",
    "methods",
    "linear",
    "checkpoints",
    "models",
    "attention",
    "data",
    "text",
    "report",
    "statistics",
    "runs",
    "options",
]


def duty(path: Path) -> str:
    """Return the first sentence of the docstring of a module or its first class."""
    tree = ast.parse(path.read_text("utf-8"))
    classes = (ast.get_docstring(node) for node in tree.body if isinstance(node, ast.ClassDef))
    text = ast.get_docstring(tree) or next(filter(None, classes), "")
    paragraph = " ".join(text.partition("\n\n")[0].split())
    sentence = re.match(r".*?[.!?:](?=\s+[A-Z`]|$)", paragraph)
    return (sentence[0] if sentence else paragraph).rstrip(".:").replace("|", "\\|")


def make_map() -> str:
    """Return one table per package, the highest layer first, with a row per module."""
    parts = ["| module | duty |\n| --- | --- |"]
    parts += [row(path, path.name) for path in sorted(SOURCE.glob("*.py"))]
    packages = [path.parent for path in SOURCE.glob("*/__init__.py")]
    order = {name: rank for rank, name in enumerate(LAYERS)}
    for package in sorted(packages, key=lambda folder: (order.get(folder.name, len(order)), folder.name)):
        about = html.escape(duty(package / "__init__.py").replace("`", ""), quote=False)
        parts.append(f"\n<details><summary><code>{package.name}/</code>: {about}</summary>\n")
        parts.append("| module | duty |\n| --- | --- |")
        for path in sorted(package.rglob("*.py")):
            if path != package / "__init__.py":
                name = path.relative_to(package)
                parts.append(row(path, f"{name.parent}/" if path.name == "__init__.py" else str(name)))
        parts.append("\n</details>")
    return "\n".join(parts) + "\n"


def row(path: Path, name: str) -> str:
    return f"| `{name}` | {duty(path)} |"


def name_modules(text: str) -> dict[str, str]:
    """Return the lines of a map by the names of their modules, with their packages."""
    package, lines = "", {}
    for line in text.splitlines():
        if summary := re.match(r"<details><summary><code>(.*?)</code>", line):
            package = summary[1]
        elif name := re.match(r"\| `(.*?)` \|", line):
            lines[package + name[1]] = line
    return lines


def main(arguments: list[str]) -> int:
    """Write the map, or compare it with the README."""
    text = README.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    new = make_map()
    if arguments == ["--check"]:
        # By names alone: a docstring may be reworded without touching the README.
        listed, actual = name_modules(old), name_modules(new)
        print("\n".join([f"missing: {line}" for name, line in actual.items() if name not in listed]))
        print("\n".join([f"stale: {line}" for name, line in listed.items() if name not in actual]))
        print("\n".join([f"no docstring: {line}" for line in actual.values() if line.endswith("|  |")]))
        return int(listed.keys() != actual.keys() or any(x.endswith("|  |") for x in actual.values()))
    README.write_text(before + BEGIN + new + END + after, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
