"""The attention lab: textbook properties of attention, constructed, verified by numbers and drawn.

    from heedful import lab

    finding = lab.argmax(keys=[[0, 1, 2], [1, 1, 2]], query=[-2, 1, 1])
    finding.passed, finding.numbers, finding.results

Each topic is a function that returns a `Finding`; `heedful lab TOPIC` is the same on the command line.
"""

from typing import TYPE_CHECKING, Any

from heedful.lab.base import TOPICS, Finding, Number, Table

if TYPE_CHECKING:
    from heedful.lab.topics.approximation import approximation as approximation
    from heedful.lab.topics.argmax import argmax as argmax
    from heedful.lab.topics.average import average as average
    from heedful.lab.topics.copy import copy as copy
    from heedful.lab.topics.heads import heads as heads
    from heedful.lab.topics.kqv import kqv as kqv
    from heedful.lab.topics.masking import masking as masking
    from heedful.lab.topics.noise import noise as noise
    from heedful.lab.topics.scaling import scaling as scaling
    from heedful.lab.topics.subspace import subspace as subspace

__all__ = ["TOPICS", "Finding", "Number", "Table"]
__all__ += ["approximation", "argmax", "average", "copy", "heads"]
__all__ += ["kqv", "masking", "noise", "scaling", "subspace"]


def __getattr__(name: str) -> Any:
    """Import a topic when it is first asked for."""
    if name in TOPICS:
        return TOPICS[name].load()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *TOPICS])
