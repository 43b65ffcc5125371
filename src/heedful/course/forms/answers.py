"""Answers to written questions: every function whose name begins with `answer_`."""

from __future__ import annotations

from functools import partial

from heedful.course.student_file import Operation, StudentFile

PREFIX = "answer_"


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return an operation per answer."""
    from heedful.course.adapters import call_adapter

    return {
        name: Operation(partial(call_adapter, function), {"found": name})
        for name, function in file.functions().items()
        if name.startswith(PREFIX)
    }
