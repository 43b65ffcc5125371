"""What a suite checks: something that carries out named operations on arrays and plain values."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Protocol, runtime_checkable


class SubjectError(Exception):
    """The code of the subject raised an error; `lines` are the last frames within its own file."""

    def __init__(self, message: str, lines: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.lines = lines


class SubjectStoppedError(SubjectError):
    """The process of the subject has ended, or was ended because it exceeded a limit; no more calls work."""


class NotApplicable(Exception):  # noqa: N818 - not an error
    """A claim says nothing about this subject, for the reason in the message."""


@runtime_checkable
class Subject(Protocol):
    """Something that can be checked.

    `call` carries out an operation. Inputs and outputs are torch tensors and plain values (None, bool, int,
    float, str, lists and dictionaries of them). Every operation also takes these inputs:

    - `seed`: the random generators begin with this number (0 if it is absent);
    - `gradients`: names of inputs whose gradients are returned, as `grad_NAME`: those of the sum of the
      output `of` (`out`), each number multiplied by that of `output_gradient`;
    - `measure`: True returns `cost`, a dictionary with `seconds`, `elements` (numbers computed by all torch
      operations) and `largest` (the numbers in the largest tensor).

    `call` raises `NotApplicable` for an operation or an input that the subject does not have,
    `SubjectError` if its code fails, and `SubjectStoppedError` if its process is gone.
    """

    @property
    def operations(self) -> Mapping[str, Mapping[str, Any]]:
        """The operations by name, each with facts about it, such as the name of the student's function."""

    def call(self, operation: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation."""


class RememberingSubject:
    """A subject that answers the same question from memory, for claims that look at the same draws."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.answers: dict[str, dict[str, Any]] = {}

    @property
    def operations(self) -> Mapping[str, Mapping[str, Any]]:
        """The operations of the subject."""
        return self.subject.operations

    def call(self, operation: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation, or return what it returned before."""
        digest = sha256(operation.encode())
        for name, value in sorted(inputs.items()):
            digest.update(name.encode())
            digest.update(value.numpy().tobytes() if hasattr(value, "numpy") else repr(value).encode())
        key = digest.hexdigest()
        if key not in self.answers:
            self.answers[key] = self.subject.call(operation, inputs)
        return dict(self.answers[key])
