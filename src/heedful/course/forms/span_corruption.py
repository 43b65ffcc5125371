"""Span corruption as students write it: a data set of characters, or a function of one document."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch

from heedful.contracts.subject import NotApplicable
from heedful.course.student_file import Operation, StudentFile, build, simplify

CLASSES = ["CharCorruptionDataset", "SpanCorruptionDataset", "CorruptionDataset", "CharDataset"]
FUNCTIONS = [
    "corrupt",
    "span_corruption",
    "corrupt_document",
    "corrupt_span",
    "char_corruption",
    "corrupt_text",
]
MASK, PAD = "\u2047", "\u25a1"
Row = tuple[list[int], list[int]]
DATA = ("data", "text", "texts", "corpus", "raw", "documents", "docs")


class CorruptionForm:
    """How to build one student's data set, and how to read its rows as characters."""

    def __init__(self, thing: Callable[..., Any]) -> None:
        self.thing = thing
        self.data_name = ""
        if inspect.isclass(thing):
            names = list(inspect.signature(thing).parameters)
            self.data_name = next((n for n in names if simplify(n) in DATA), names[0] if names else "")

    def corrupt(self, text: str, block_size: int, repeats: int, **_: Any) -> dict[str, Any]:
        """Carry out the operation `corrupt`."""
        if inspect.isclass(self.thing):
            dataset = build(self.thing, {"length": block_size, self.data_name: text})
            rows = [self.read_row(dataset, dataset[0]) for _ in range(repeats)]
        else:
            rows = [self.call_function(text, block_size) for _ in range(repeats)]
        lengths = [len(x) for x, _ in rows]
        answer: dict[str, Any] = {}
        if len(set(lengths)) > 1 or any(len(x) != len(y) for x, y in rows):
            answer["lengths"] = lengths
            longest = max(len(part) for row in rows for part in row)
            rows = [(fill(x, longest), fill(y, longest)) for x, y in rows]
        return answer | {name: torch.tensor([row[i] for row in rows]) for i, name in enumerate(("x", "y"))}

    def call_function(self, text: str, block_size: int) -> Row:
        """Call a function of a document; it may return the whole string, or inputs and targets."""
        arguments: list[Any] = [text]
        for name, parameter in list(inspect.signature(self.thing).parameters.items())[1:]:
            if "block" in name or "len" in name or "size" in name:
                arguments.append(block_size)
            elif "mask" in name.lower():
                arguments.append(MASK)
            elif "pad" in name.lower():
                arguments.append(PAD)
            elif parameter.default is parameter.empty:
                raise NotApplicable(f"the meaning of its parameter {name} is unknown")
        returned = self.thing(*arguments)
        if isinstance(returned, str):
            whole = [ord(c) for c in returned.ljust(block_size, PAD)]
            return whole[:-1], whole[1:]
        return self.read_row(None, returned)

    def read_row(self, dataset: Any, row: Any) -> Row:
        """Return x and y as code points, through the data set's own table of characters."""
        if isinstance(row, Mapping):
            row = list(row.values())
        if not isinstance(row, tuple | list) or len(row) != len(("x", "y")):
            raise TypeError(f"a row is {type(row).__name__}, not a pair of x and y")
        if isinstance(row[0], str):
            return [ord(c) for c in row[0]], [ord(c) for c in row[1]]
        table = self.find_table(dataset)
        x, y = (part.tolist() if isinstance(part, torch.Tensor) else [int(i) for i in part] for part in row)
        return [table.get(i, i) for i in x], [table.get(i, i) for i in y]

    def find_table(self, dataset: Any) -> dict[int, int]:
        """Return the code point of each id."""
        itos = getattr(dataset, "itos", None)
        if itos is None and (stoi := getattr(dataset, "stoi", None)) is not None:
            itos = {i: s for s, i in stoi.items()}
        if itos is None:
            raise NotApplicable("it has no itos or stoi, so that ids cannot be read as characters")
        pairs = itos.items() if isinstance(itos, Mapping) else enumerate(itos)
        masks = (getattr(dataset, "MASK_CHAR", MASK), getattr(dataset, "PAD_CHAR", PAD))
        names = dict(zip(masks, (MASK, PAD), strict=True))
        characters = {int(i): str(names.get(s, s)) for i, s in pairs}
        return {i: ord(character) for i, character in characters.items() if len(character) == 1}


def fill(row: list[int], length: int) -> list[int]:
    return row + [ord(PAD)] * (length - len(row))


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operation `corrupt` if the file has a class or function for it."""
    thing = file.find(CLASSES, kind="class") or file.find(FUNCTIONS, kind="function")
    if thing is None:
        return {}
    if inspect.isclass(thing) and not hasattr(thing, "__getitem__"):
        raise NotApplicable(f"{thing.__name__} has no __getitem__")
    return {"corrupt": Operation(CorruptionForm(thing).corrupt, {"found": thing.__name__})}
