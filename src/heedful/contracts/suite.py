"""Suites of claims by name, and the function that checks a subject against one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from heedful.contracts.claims import BrokenContractError
from heedful.contracts.subject import (
    NotApplicable,
    RememberingSubject,
    Subject,
    SubjectError,
    SubjectStoppedError,
)
from heedful.contracts.verdicts import RefutedError, Status, Verdict
from heedful.errors import unknown
from heedful.plugins import Registry

if TYPE_CHECKING:
    from torch import Tensor

Fingerprint = Mapping[str, "Tensor | float | list[Tensor]"]
"""Numbers by name; a list has what different conventions of the same code give."""


@dataclass(frozen=True)
class Claim:
    """Something that must be true of a subject.

    `function` returns a sentence about what it measured, raises `RefutedError` if the claim is broken, and
    `NotApplicable` if it says nothing about this subject.
    """

    name: str
    sentence: str
    function: Callable[[Subject], str]
    operation: str
    """The operation that it needs; without it the claim does not apply."""
    hint: str = ""
    """What to look at when it is broken, unless the refutation has a better hint."""


@dataclass(frozen=True)
class Suite:
    """The claims about one thing that people write."""

    name: str
    about: str
    """One line: what is checked."""
    operations: Mapping[str, str]
    """The operations that the claims use, with the inputs and outputs of each, in a sentence."""
    claims: tuple[Claim, ...]
    fingerprint: Callable[[Subject], Fingerprint] | None = None
    """Returns numbers that tell known mistakes apart: outputs on fixed inputs, or measured shares."""
    tolerances: Mapping[str, float] = field(default_factory=dict)
    """The tolerance of a number of the fingerprint, where it is not that of rounding."""
    remembers: bool = False
    """Whether the same question with the same seed is asked once, because many claims look at one draw."""

    def wrap(self, subject: Subject) -> Subject:
        """Return the subject as the claims ask it."""
        return RememberingSubject(subject) if self.remembers else subject

    def select(self, names: Iterable[str] | None) -> tuple[Claim, ...]:
        """Return the claims with these names; all if there are none."""
        if names is None:
            return self.claims
        by_name = {claim.name: claim for claim in self.claims}
        for name in (wanted := list(names)):
            if name not in by_name:
                raise unknown(f"claim of the suite {self.name}", name, by_name)
        return tuple(by_name[name] for name in wanted)


SUITES: Registry[Suite] = Registry(
    "suite",
    {
        "answers": "heedful.contracts.suites.answers:SUITE",
        "attention": "heedful.contracts.suites.attention:SUITE",
        "bert": "heedful.contracts.suites.bert:SUITE",
        "bpe": "heedful.contracts.suites.bpe:SUITE",
        "generation": "heedful.contracts.suites.generation:SUITE",
        "gpt": "heedful.contracts.suites.gpt:SUITE",
        "joint-loss": "heedful.contracts.suites.joint_loss:SUITE",
        "london-baseline": "heedful.contracts.suites.london_baseline:SUITE",
        "lora": "heedful.contracts.suites.lora:SUITE",
        "masked": "heedful.contracts.suites.masked:SUITE",
        "span-corruption": "heedful.contracts.suites.span_corruption:SUITE",
        "training": "heedful.contracts.suites.training:SUITE",
    },
)


def check_subject(
    suite: str | Suite,
    subject: Subject,
    *,
    claims: Iterable[str] | None = None,
    on_verdict: Callable[[Verdict], Any] | None = None,
) -> list[Verdict]:
    """Check a subject against the claims of a suite, and return a verdict for each.

    Parameters
    ----------
    suite
        A suite or its name (`heedful list suites`).
    subject
        What is checked.
    claims
        Names of claims; by default all of the suite.
    on_verdict
        Called after each claim with its verdict.

    """
    suite = SUITES.find(suite) if isinstance(suite, str) else suite
    subject, verdicts = suite.wrap(subject), []
    for claim in suite.select(claims):
        verdicts.append(judge(claim, subject))
        if on_verdict is not None:
            on_verdict(verdicts[-1])
    return verdicts


def judge(claim: Claim, subject: Subject) -> Verdict:
    """Check one claim; whatever the subject raises is part of the verdict."""
    begin = time.perf_counter()
    status: Status = "passed"
    message, hint, counterexample = "", "", None
    try:
        if claim.operation not in subject.operations:
            raise NotApplicable(f"there is no {claim.operation}")
        message = claim.function(subject)
    except NotApplicable as reason:
        status, message = "not applicable", str(reason)
    except RefutedError as refuted:
        status, message, counterexample = "failed", str(refuted), refuted.counterexample
        hint = refuted.hint or claim.hint
    except BrokenContractError as broken:
        status, message, hint = "failed", str(broken), claim.hint
    except SubjectStoppedError as stopped:
        status, message = "error", str(stopped)
    except SubjectError as error:
        status, message, hint = "error", str(error), "; ".join(error.lines)
    except Exception as error:  # what came back cannot be used: a wrong type, a wrong shape
        status, message = "error", f"{type(error).__name__}: {error}".partition("\n")[0]
    seconds = round(time.perf_counter() - begin, 4)
    return Verdict(claim.name, claim.sentence, status, message, hint, counterexample, seconds=seconds)
