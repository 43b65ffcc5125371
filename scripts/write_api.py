"""Writes what editors and type checkers read of the options: signatures with one parameter per option.

    python scripts/write_api.py            write commands.pyi and the parameters of TextClassifier
    python scripts/write_api.py --check    print which of them is stale; status 1 if one is

The dataclasses in `heedful.options` are the one list of options. These files are made from them.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from heedful.api.commands import FUNCTIONS, describe_parameters, list_parameters
from heedful.estimator_parameters import PARAMETERS
from heedful.options.keywords import Signature

ROOT = Path(__file__).parents[1]
STUB = ROOT / "src" / "heedful" / "api" / "commands.pyi"
ESTIMATOR = ROOT / "src" / "heedful" / "estimator_parameters.py"
BEGIN, END = "    # <parameters: written by scripts/write_api.py>\n", "    # </parameters>\n"
HEADER = '''"""Written by scripts/write_api.py from the dataclasses in `heedful.options`; do not edit."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from heedful.results import RunResult, SolveResult, StudyResult

'''
OWN_PARAMETERS = {
    "dev_share": ("float", "0.1"),
    "minutes": ("float", "10.0"),
    "kind": ("str | None", "None"),
}
"""Parameters of the estimators that are no options of `heedful adapt`, with their type and default."""


def show_type(hint: Any) -> str:
    """Return a type as it is written in code."""
    text = inspect.formatannotation(hint)
    text = re.sub(r"\b(?:typing|collections\.abc)\.", "", text)
    return re.sub(r"Optional\[((?:[^\[\]]|\[[^\]]*\])*)\]", r"\1 | None", text)


def write_stub() -> str:
    """Return the stub of `heedful.api.commands`."""
    parts = [HEADER]
    for name, (function, signature) in FUNCTIONS.items():
        parameters = list_parameters(function, signature)
        lines = []
        for parameter in parameters:
            if parameter.kind is parameter.KEYWORD_ONLY and "*" not in lines:
                lines.append("*")
            default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
            lines.append(f"{parameter.name}: {show_type(parameter.annotation)}{default}")
        returned = inspect.signature(inspect.unwrap(function), eval_str=True).return_annotation.__name__
        doc = textwrap.indent(describe_parameters(function, signature), "    ")
        parts.append(f'def {name}({", ".join(lines)}) -> {returned}:\n    r"""{doc.strip()}\n\n    """\n\n')
    return format_code("".join(parts), STUB)


def write_estimator() -> str:
    """Return estimator_parameters.py with the parameters of the constructor."""
    text = ESTIMATOR.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return format_code(before + BEGIN + write_constructor(PARAMETERS) + END + after, ESTIMATOR)


def write_constructor(signature: Signature) -> str:
    options = signature.options()
    defaults = {name: repr(option.default) for name, option in options.items()} | {"model": "'minilm'"}
    types = {name: show_type(option.annotation()) for name, option in options.items()}
    types |= {"model": "str | os.PathLike[str]"} | {name: kind for name, (kind, _) in OWN_PARAMETERS.items()}
    defaults |= {name: default for name, (_, default) in OWN_PARAMETERS.items()}
    names = [*signature.arguments, *OWN_PARAMETERS, *(n for n in options if n not in signature.arguments)]
    words = [f"{name}: {types[name]} = {defaults[name]}" for name in names]
    words.insert(len(signature.arguments), "*")
    body = "".join(f"        self.{name} = {name}\n" for name in names)
    return f"    def __init__(self, {', '.join(words)}) -> None:\n{body}"


def format_code(text: str, path: Path) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(path), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def main(arguments: list[str]) -> int:
    """Write the files, or compare them."""
    files = {STUB: write_stub(), ESTIMATOR: write_estimator()}
    stale = [p for p, text in files.items() if not p.is_file() or p.read_text("utf-8") != text]
    if arguments == ["--check"]:
        print("\n".join(f"stale: {path.relative_to(ROOT)}; python scripts/write_api.py" for path in stale))
        return int(bool(stale))
    for path in stale:
        path.write_text(files[path], "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
