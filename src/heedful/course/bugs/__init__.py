"""Known mistakes: wrong implementations that students write, each a small edit of a right one.

A bug is caught by its name when its fingerprint (outputs on fixed inputs, or measured shares) is that of the
code that is checked. Submissions in the sandbox cannot read this folder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from heedful.contracts.operations import FunctionSubject
from heedful.contracts.subject import NotApplicable, Subject, SubjectError
from heedful.contracts.suite import Fingerprint, Suite

TOLERANCE = 1e-3
"""Largest difference of two fingerprints that are the same, relative to the largest number."""
MODULES: dict[str, tuple[str, ...]] = {
    "answers": (),
    "attention": ("attention", "self_attention"),
    "bert": ("bert",),
    "bpe": ("bpe",),
    "generation": ("generation",),
    "gpt": ("self_attention", "gpt"),
    "joint-loss": ("joint_loss",),
    "london-baseline": ("london_baseline",),
    "lora": ("lora",),
    "masked": ("masked",),
    "span-corruption": ("span_corruption",),
    "training": ("training",),
}
"""The modules of this package that have the bugs of each suite."""


@dataclass(frozen=True)
class Bug:
    """A wrong implementation, written as edits of a right one."""

    name: str
    """What the mistake is called: `mask after softmax`. Several ways to make it have one name."""
    sentence: str
    """What the wrong code does."""
    hint: str
    """What to look at, without giving the solution away."""
    twin: str
    """The source of the right implementation."""
    edits: tuple[tuple[str, str], ...]
    """Pairs of a text that the twin has once and what is there instead."""

    @property
    def source(self) -> str:
        """The wrong source."""
        source = self.twin
        for old, new in self.edits:
            if source.count(old) != 1:
                raise ValueError(
                    f'bug "{self.name}": its twin has {old!r} {source.count(old)} times, not once'
                )
            source = source.replace(old, new)
        return source


def find_bugs(suite: str) -> tuple[Bug, ...]:
    """Return the bugs that are known for a suite."""
    modules = (import_module(f"{__name__}.{module}") for module in MODULES.get(suite, ()))
    return tuple(bug for module in modules for bug in module.BUGS)


def build_subject(source: str, suite: str, name: str = "twin") -> FunctionSubject:
    """Return a subject of this process from the source of a file that can be trusted."""
    from heedful.course.adapters import SCRIPTS, find_operations
    from heedful.course.student_file import StudentFile

    file = StudentFile.from_source(source, name, script=suite in SCRIPTS)
    operations = find_operations(file, suite)
    return FunctionSubject(
        {name: each.function for name, each in operations.items()},
        {name: each.facts for name, each in operations.items()},
    )


@cache
def fingerprint_source(source: str, suite_name: str) -> Fingerprint:
    """Return the fingerprint of a source that can be trusted."""
    from heedful.contracts.suite import SUITES

    suite = SUITES.find(suite_name)
    assert suite.fingerprint is not None
    state = torch.get_rng_state()
    try:
        return suite.fingerprint(build_subject(source, suite_name))
    finally:
        torch.set_rng_state(state)


def name_mistake(suite: Suite, subject: Subject) -> Bug | None:
    """Return the known mistake with the fingerprint of this subject, if there is one.

    A bug is a match if everything that both fingerprints have agrees, and something of it tells the bug
    from its right twin. Of several the one with the most such telling numbers is taken.
    """
    bugs = find_bugs(suite.name)
    if suite.fingerprint is None or not bugs:
        return None
    found: Fingerprint = {}
    with suppress(NotApplicable, SubjectError, RuntimeError, ValueError, TypeError, AttributeError):
        found = suite.fingerprint(subject)
    best: tuple[int, Bug | None] = (0, None)
    for bug in bugs if found else ():
        telling = count_telling(
            found,
            fingerprint_source(bug.source, suite.name),
            fingerprint_source(bug.twin, suite.name),
            suite.tolerances,
        )
        if telling > best[0]:
            best = (telling, bug)
    return best[1]


def count_telling(
    found: Fingerprint, wrong: Fingerprint, right: Fingerprint, tolerances: Mapping[str, float]
) -> int:
    """Return how many entries tell a bug from its twin; 0 if one entry of the subject is not the bug's."""
    common = [name for name in wrong if name in found]
    if not all(is_same(found[name], wrong[name], tolerances.get(name, TOLERANCE)) for name in common):
        return 0
    return sum(
        name not in right or not is_same(wrong[name], right[name], tolerances.get(name, TOLERANCE))
        for name in common
    )


def is_same(a: Any, b: Any, tolerance: float) -> bool:
    """Compare two entries of fingerprints; of a list any may agree with the first of the other."""
    if isinstance(a, Sequence) or isinstance(b, Sequence):
        others = a if isinstance(a, Sequence) else [a]
        first = b[0] if isinstance(b, Sequence) else b
        return any(is_same(other, first, tolerance) for other in others)
    a, b = (
        torch.as_tensor(x, dtype=torch.float64) if not isinstance(x, Tensor) else x.double() for x in (a, b)
    )
    if a.shape != b.shape:
        return False
    if not a.numel():
        return True
    if not bool((a.isfinite() == b.isfinite()).all()):
        return False
    a, b = (x.nan_to_num(0.0, 0.0, 0.0) for x in (a, b))
    scale = max(1.0, float(b.abs().max()))
    return math.isclose(float((a - b).abs().max()) / scale, 0.0, abs_tol=tolerance)
