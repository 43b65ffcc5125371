"""Makes the code that students begin with from the annotated solution, so that the two cannot drift apart.

In the solution a block begins with `# SOLUTION: a hint` and ends with `# END SOLUTION`, both indented like
the code between them. In the starter the block is gone; in its place an error says what to write.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from heedful.errors import UserError

BEGIN = re.compile(r"(?P<indent> *)# SOLUTION:? *(?P<hint>.*?)\s*")
END = "# END SOLUTION"
SCOPE = re.compile(r"(?P<indent> *)(?:def|class) +(?P<name>\w+)")


def make_starter(source: str, path: Path) -> str:
    """Return the source with every solution replaced by an error with its hint."""
    lines: list[str] = []
    scopes: list[tuple[int, str]] = []
    block: tuple[int, str, str] | None = None
    for number, line in enumerate(source.splitlines(), 1):
        if block is not None:
            if line.strip() == END:
                lines += write_gap(block[1], block[2], ".".join(name for _, name in scopes))
                block = None
            elif BEGIN.fullmatch(line):
                raise UserError(f"{path} line {number}: a solution begins within the one of line {block[0]}")
            continue
        if line.strip() == END:
            raise UserError(
                f"{path} line {number}: {END} ends nothing; a solution begins with # SOLUTION: a hint"
            )
        if begin := BEGIN.fullmatch(line):
            if not begin["hint"]:
                raise UserError(f"{path} line {number}: say what to write: # SOLUTION: a hint")
            block = number, begin["indent"], begin["hint"]
            continue
        if scope := SCOPE.match(line):
            scopes = [each for each in scopes if each[0] < len(scope["indent"])]
            scopes.append((len(scope["indent"]), scope["name"]))
        lines.append(line)
    if block is not None:
        raise UserError(f"{path} line {block[0]}: this solution has no end; write {END} below it")
    starter = "\n".join(lines) + "\n"
    if starter == source:
        raise UserError(f"{path}: has no # SOLUTION: block, so the starter would be the solution")
    try:
        ast.parse(starter)
    except SyntaxError as error:
        raise UserError(
            f"{path}: without its solutions it is not Python: {error.msg}, line {error.lineno} of the starter"
        ) from None
    return starter


def write_gap(indent: str, hint: str, name: str) -> list[str]:
    """Return the lines in place of a solution."""
    message = f"{name} is not written yet: {hint}".replace("\\", "\\\\").replace('"', '\\"')
    return [f"{indent}# Write this part: {hint}.", f'{indent}raise NotImplementedError("{message}")']
