"""The process that runs a student's file: reads operations from its standard input, answers on its output.

    python -m heedful.course.child FILE --as SUITE

Whatever the student's code prints goes to standard error, so that it cannot disturb the answers.
"""

from __future__ import annotations

import argparse
import os
import traceback
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

from heedful.course.wire import WireError, encode, receive

LINES = 3
"""The number of frames of the student's file that an error shows."""


def main() -> None:
    """Answer operations until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--as", dest="suite", required=True)
    arguments = parser.parse_args()
    source, sink = take_pipes()
    warnings.simplefilter("ignore")
    try:
        from heedful.course.adapters import SCRIPTS, find_operations
        from heedful.course.student_file import StudentFile

        file = StudentFile(arguments.file, script=arguments.suite in SCRIPTS)
        send(sink, {"imported": True})
        functions = find_operations(file, arguments.suite)
        answer: dict[str, Any] = {"operations": {name: each.facts for name, each in functions.items()}}
    except BaseException as error:
        send(sink, {"error": describe(error, arguments.file)})
        return
    send(sink, answer)
    while (request := read_request(source)) is not None:
        send(sink, respond(functions, request, arguments.file))


def take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Keep the two pipes under other numbers; the student's code reads nothing and prints to stderr."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def read_request(source: BinaryIO) -> dict[str, Any] | None:
    """Return the next request; None at the end of the input."""

    def read(n: int) -> bytes:
        data = source.read(n)
        if len(data) < n:
            raise EOFError
        return data

    try:
        return receive(read)
    except EOFError:
        return None


def respond(functions: Mapping[str, Any], request: dict[str, Any], file: Path) -> dict[str, Any]:
    """Carry out one request."""
    from heedful.contracts.operations import as_tensors, carry_out

    try:
        function = functions[request["operation"]].function
        return {"outputs": carry_out(function, as_tensors(request["inputs"]))}
    except BaseException as error:
        return {"error": describe(error, file)}


def send(sink: BinaryIO, message: dict[str, Any]) -> None:
    try:
        frame = encode(message)
    except WireError as error:
        frame = encode({"error": {"kind": "error", "message": f"what came back cannot be used: {error}"}})
    sink.write(frame)
    sink.flush()


def describe(error: BaseException, file: Path) -> dict[str, Any]:
    """Return the kind and message of an error, and where in the student's folder it came from."""
    from heedful.contracts.subject import NotApplicable
    from heedful.errors import UserError

    kind = "not applicable" if isinstance(error, NotApplicable) else "error"
    kind = "user" if isinstance(error, UserError) else kind
    frames = traceback.extract_tb(error.__traceback__)
    here = [f for f in frames if Path(f.filename).parent == file.resolve().parent]
    lines = [
        f"{Path(f.filename).name} line {f.lineno}, in {f.name}{quote_code(f.line)}" for f in here[-LINES:]
    ]
    unwritten = isinstance(error, NotImplementedError) and str(error)
    message = str(error) if kind != "error" or unwritten else f"{type(error).__name__}: {error}"
    return {"kind": kind, "message": message[:2000], "lines": [line[:300] for line in lines]}


def quote_code(line: str | None) -> str:
    """Return a line of code for the end of a sentence; `raise` only repeats the message."""
    return "" if not line or line.startswith("raise ") else f": {line}"


if __name__ == "__main__":
    main()
