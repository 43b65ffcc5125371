"""Files of a run, each read again only when it has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import UserError
from heedful.runs.directory import METRICS

T = TypeVar("T")
Signature = tuple[int, int, int]
DEV = b'"dev"'


def find_signature(path: Path) -> Signature | None:
    """Return what changes when a file is written; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


@dataclass
class Files:
    """What the files of one folder contain."""

    folder: Path
    parts: dict[str, tuple[Signature, Any]] = field(default_factory=dict)
    curve: list[float] = field(default_factory=list)
    curve_bytes: int = 0
    curve_file: int = 0
    """The number of the file that the curve is from."""

    def read(self, name: str, load: Callable[[Path], T]) -> T | None:
        """Return what a file contains; None if there is none. A damaged one raises `UserError`."""
        path = self.folder / name
        signature = find_signature(path)
        if signature is None:
            self.parts.pop(name, None)
            return None
        if name not in self.parts or self.parts[name][0] != signature:
            try:
                value: T | UserError = load(path)
            except UserError as error:
                value = error
            self.parts[name] = signature, value
        stored: T | UserError = self.parts[name][1]
        if isinstance(stored, UserError):
            raise stored
        return stored

    def read_curve(self) -> list[float]:
        """Return the scores of dev so far; only what was appended to metrics.jsonl is read."""
        path = self.folder / METRICS
        signature = find_signature(path)
        if signature is None or signature[0] != self.curve_file or signature[1] < self.curve_bytes:
            self.curve, self.curve_bytes = [], 0
            self.curve_file = 0 if signature is None else signature[0]
        if signature is None or signature[1] == self.curve_bytes:
            return self.curve
        try:
            with path.open("rb") as file:
                file.seek(self.curve_bytes)
                content = file.read(signature[1] - self.curve_bytes)
        except OSError:
            return self.curve
        whole = content[: content.rfind(b"\n") + 1]
        self.curve_bytes += len(whole)
        self.curve += [value for line in whole.splitlines() if (value := read_dev(line)) is not None]
        return self.curve


def read_dev(line: bytes) -> float | None:
    """Return the score of a row of metrics, if it is one of dev."""
    if DEV not in line:
        return None
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    value = row.get("value") if isinstance(row, dict) and row.get("split") == "dev" else None
    return float(value) if isinstance(value, int | float) and abs(value) < float("inf") else None
