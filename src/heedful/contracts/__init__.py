"""What must be true of an implementation, as claims that any code can be checked against, without pytest.

A suite is a list of claims about one thing that people write by hand: attention, a BERT block, LoRA, masking.
It asks a subject to carry out operations and compares what comes back; the subject may be a module of this
package, a function of yours, or a student's file in a process of its own.

    from heedful.contracts import FunctionSubject, check_subject

    def attend(q, k, v, mask=None):
        ...
        return {"out": out}

    for verdict in check_subject("attention", FunctionSubject({"attend": attend})):
        print(verdict.status, verdict.sentence, verdict.message)

The contracts of Heedful's own mechanisms, methods and runs are in `mechanisms`, `methods` and `runs`;
`heedful selftest` checks them on your machine.
"""

from typing import TYPE_CHECKING

from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
    from heedful.contracts.operations import FunctionSubject as FunctionSubject
    from heedful.contracts.subject import NotApplicable as NotApplicable
    from heedful.contracts.subject import Subject as Subject
    from heedful.contracts.subject import SubjectError as SubjectError
    from heedful.contracts.subject import SubjectStoppedError as SubjectStoppedError
    from heedful.contracts.suite import SUITES as SUITES
    from heedful.contracts.suite import Claim as Claim
    from heedful.contracts.suite import Suite as Suite
    from heedful.contracts.suite import check_subject as check_subject
    from heedful.contracts.verdicts import Counterexample as Counterexample
    from heedful.contracts.verdicts import RefutedError as RefutedError
    from heedful.contracts.verdicts import Verdict as Verdict

__all__ = [
    "SUITES",
    "Claim",
    "Counterexample",
    "FunctionSubject",
    "NotApplicable",
    "RefutedError",
    "Subject",
    "SubjectError",
    "SubjectStoppedError",
    "Suite",
    "Verdict",
    "check_subject",
]

__getattr__ = lazy_attributes(
    __name__,
    {
        "heedful.contracts.operations": "FunctionSubject",
        "heedful.contracts.subject": "NotApplicable Subject SubjectError SubjectStoppedError",
        "heedful.contracts.suite": "SUITES Claim Suite check_subject",
        "heedful.contracts.verdicts": "Counterexample RefutedError Verdict",
    },
)
