"""Asks a subject, and compares what it answers with what it should: shared by all suites."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from heedful.contracts.shrink import find_smallest, simplify_values
from heedful.contracts.subject import NotApplicable, Subject, SubjectStoppedError
from heedful.contracts.verdicts import RefutedError

Inputs = Mapping[str, Any]
C = TypeVar("C")
TOLERANCE = 1e-4
"""Largest difference, relative to the largest expected number, that float32 sums in another order make."""


def ask(subject: Subject, operation: str, *, output: str = "out", **inputs: Any) -> Tensor:
    """Carry out an operation and return one of its outputs, which must be a tensor."""
    answer = subject.call(operation, {name: value for name, value in inputs.items() if value is not None})
    if output not in answer:
        raise NotApplicable(f"{operation} returns no {output}")
    value = answer[output]
    if not isinstance(value, Tensor):
        raise RefutedError(
            f"{output} is a {type(value).__name__} instead of a tensor", inputs=inputs, got=value
        )
    return value


def collect(measures: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return those measures that can be taken; one that raises is left out, unless the subject has ended."""
    taken = {}
    for name, measure in measures.items():
        try:
            taken[name] = measure()
        except SubjectStoppedError:
            raise
        except Exception:  # code that fails at one thing is told apart by the others
            continue
    return taken


def difference(a: Tensor, b: Tensor) -> float:
    """Return the largest difference of two tensors; infinite for other shapes or values."""
    if a.shape != b.shape:
        return math.inf
    if not a.numel():
        return 0.0
    apart = (a.double() - b.double()).abs().max().item()
    return apart if math.isfinite(apart) else math.inf


def varies(first: Tensor, second: Tensor) -> bool:
    """Whether two answers to the same question differ; numbers that are not finite are the same."""
    return first.shape != second.shape or not torch.allclose(first, second, 1e-5, 1e-5, equal_nan=True)


def describe_difference(got: Tensor, expected: Tensor) -> str:
    """Return in words how two tensors differ."""
    if got.shape != expected.shape:
        return f"the shape is {tuple(got.shape)} instead of {tuple(expected.shape)}"
    if not got.isfinite().all():
        return "the output has numbers that are not finite"
    return f"the largest difference is {difference(got, expected):.3g}"


def relative(got: Tensor, expected: Tensor) -> float:
    """Return the largest difference relative to the largest expected number (at least 1)."""
    scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
    return difference(got, expected) / scale


def require_agreement(
    candidates: Iterable[Inputs],
    run: Callable[[Inputs], Tensor],
    reference: Callable[[Inputs], Tensor],
    *,
    what: str,
    tolerance: float = TOLERANCE,
    draw: Callable[[Inputs, Tensor, Tensor], str | None] | None = None,
    hint: str = "",
    hidden: Collection[str] = (),
) -> float:
    """Compare a subject with a reference on inputs of growing size; return the largest difference.

    The candidates come in the order of their size. The last one is tried first: where it agrees, all are
    tried; where it does not, the smallest that fails is found and its numbers are made plainer. Inputs that
    are `hidden` are not shown in the counterexample.
    """
    candidates = list(candidates)

    def fails(inputs: Inputs) -> tuple[Tensor, Tensor] | None:
        expected = reference(inputs)
        got = run(inputs)
        return (got, expected) if relative(got, expected) > tolerance else None

    found = find_smallest(candidates, fails)
    if found is None:
        return max(relative(run(inputs), reference(inputs)) for inputs in candidates[-1:])
    inputs, failure = simplify_values(found[0], fails, found[1])
    got, expected = failure
    raise RefutedError(
        f"{what}: {describe_difference(got, expected)}",
        inputs={name: value for name, value in inputs.items() if name not in hidden},
        got=got,
        expected=expected,
        hint=hint,
        heat_map=None if draw is None else draw(inputs, got, expected),
    )


def choose_convention(
    candidates: Sequence[Inputs],
    packings: Sequence[str | None],
    conventions: Sequence[C],
    run: Callable[[Inputs], Tensor],
    expect: Callable[[Inputs, C], Tensor],
) -> tuple[C, str | None, bool]:
    """Return the convention and packing under which most inputs agree, and whether all do.

    Of several the one with the smallest differences is taken. A mistake that short inputs do not show is so
    not taken for another convention.
    """
    expected = [[expect(inputs, convention) for inputs in candidates] for convention in conventions]
    best: tuple[tuple[int, float], C, str | None] | None = None
    for packing in packings:
        outputs = [run({**inputs, "packing": packing} if packing else inputs) for inputs in candidates]
        for convention, right in zip(conventions, expected, strict=True):
            apart = [relative(a, b) for a, b in zip(outputs, right, strict=True)]
            points = (sum(x > TOLERANCE for x in apart), sum(apart))
            if best is None or points < best[0]:
                best = (points, convention, packing)
    assert best is not None
    return best[1], best[2], best[0][0] == 0


def fit_exponent(sizes: Iterable[float], costs: Iterable[float]) -> float:
    """Return the exponent p of cost = c size^p that fits best (least squares of the logarithms)."""
    x, y = (torch.tensor([math.log(max(v, 1e-12)) for v in values]).double() for values in (sizes, costs))
    x, y = x - x.mean(), y - y.mean()
    return float((x * y).sum() / (x * x).sum())
