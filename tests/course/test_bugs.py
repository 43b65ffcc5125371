"""Every known mistake is caught by its name, and nothing right is blamed: in this process, without the child."""

from collections import Counter
from pathlib import Path

import pytest

from heedful.contracts.suite import SUITES
from heedful.course.bugs import MODULES, Bug, build_subject, find_bugs
from heedful.course.check import run_suite

pytestmark = pytest.mark.filterwarnings("ignore")
"""The process of a student's file ignores warnings too."""
RIGHT = Path(__file__).parent / "right"
BUGS = {
    f"{suite}-{bug.name}-{number}": (suite, bug)
    for suite in MODULES
    for number, bug in enumerate(find_bugs(suite))
}
VARIANTS = sorted(RIGHT.glob("*/*.py"))
FIRST = {(suite, bug.twin): name for name, (suite, bug) in reversed(BUGS.items())}
"""One mistake of each twin is looked at in `make test`; all others in `make test-long`."""
LISTED = (
    "mask after softmax", "scaled by the whole width", "heads split along the wrong axis", "softmax over queries", "labels not shifted",
    "loss on padding", "[MASK] always", "sentinel missing", "dropout left on", "pooled padding", "test used for selection",
    "learning rate rises again", "query and key are tied", "transposed value product",
)  # fmt: skip


def list_cases() -> list[object]:
    soon = set(FIRST.values())
    return [pytest.param(name, marks=() if name in soon else pytest.mark.long) for name in BUGS]


@pytest.mark.parametrize("case", list_cases())
def test_a_known_mistake_is_caught_by_its_name(case: str) -> None:
    suite, bug = BUGS[case]
    verdicts = run_suite(suite, build_subject(bug.source, suite))
    failed = [v for v in verdicts if v.status == "failed"]
    assert failed
    assert {v.mistake for v in failed} == {bug.name}
    hints = {other.hint for other in find_bugs(suite) if other.name == bug.name}
    assert all(any(hint in v.hint for hint in hints) for v in failed)


@pytest.mark.parametrize(("suite", "twin"), sorted({(suite, bug.twin) for suite, bug in BUGS.values()}))
def test_the_right_twin_of_a_mistake_passes(suite: str, twin: str) -> None:
    verdicts = run_suite(suite, build_subject(twin, suite))
    assert [(v.claim, v.message, v.hint) for v in verdicts if not v.passed] == []
    assert any(v.status == "passed" for v in verdicts)


@pytest.mark.parametrize("path", VARIANTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_right_variant_is_blamed(path: Path) -> None:
    suite = path.parent.name.replace("_", "-")
    verdicts = run_suite(suite, build_subject(path.read_text("utf-8"), suite, path.stem))
    assert [(v.claim, v.message, v.mistake) for v in verdicts if not v.passed] == []
    assert sum(v.status == "passed" for v in verdicts) >= 3


def test_there_are_as_many_as_the_documents_say() -> None:
    names = {(suite, bug.name) for suite, bug in BUGS.values()}
    assert len({bug.name for _, bug in BUGS.values()}) >= 190
    assert set(LISTED) <= {name for _, name in names}
    assert len(VARIANTS) >= 60
    assert set(SUITES) == set(MODULES)


def test_names_have_one_meaning() -> None:
    """A mistake with one name is not described by two texts that contradict each other in one module."""
    for suite in MODULES:
        bugs: tuple[Bug, ...] = find_bugs(suite)
        assert max(Counter((bug.twin, bug.edits) for bug in bugs).values(), default=1) == 1
        for bug in bugs:
            assert bug.sentence.endswith(".")
            assert bug.hint.endswith((".", "?"))
