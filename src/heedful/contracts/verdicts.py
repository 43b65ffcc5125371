"""What a check says: a verdict per claim, with the smallest counterexample where the claim is broken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from heedful.contracts.claims import BrokenContractError

Status = Literal["passed", "failed", "error", "not applicable"]
STATUSES: tuple[Status, ...] = ("passed", "failed", "error", "not applicable")


@dataclass(frozen=True)
class Counterexample:
    """The smallest input that was found to break a claim. Arrays are nested lists, ready for JSON."""

    inputs: Mapping[str, Any]
    got: Any
    """What came out."""
    expected: Any
    """What should have come out, or a sentence about it."""
    heat_map: str | None = None
    """An SVG drawing of both, where one helps."""


@dataclass(frozen=True)
class Verdict:
    """What became of one claim."""

    claim: str
    """The short name of the claim: `causality`."""
    sentence: str
    """What the claim says."""
    status: Status
    message: str = ""
    """What was measured, or what is wrong, in a sentence."""
    hint: str = ""
    """What to look at in the code."""
    counterexample: Counterexample | None = None
    mistake: str = ""
    """The name of the known mistake whose outputs are the same, if any."""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the claim holds or does not apply."""
        return self.status in ("passed", "not applicable")


class RefutedError(BrokenContractError):
    """A claim is broken: the message says how, and the counterexample shows it."""

    def __init__(
        self,
        message: str,
        *,
        inputs: Mapping[str, Any] | None = None,
        got: Any = None,
        expected: Any = None,
        hint: str = "",
        heat_map: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.counterexample = (
            None
            if inputs is None
            else Counterexample(
                {k: plain(v) for k, v in inputs.items()}, plain(got), plain(expected), heat_map
            )
        )


def plain(value: Any) -> Any:
    """Return a value as lists, numbers and text; floats have four significant digits."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value)
