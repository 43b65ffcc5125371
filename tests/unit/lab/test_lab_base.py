"""What a finding is, and how the list of topics and their options hang together."""

from __future__ import annotations

import inspect
import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from heedful import lab
from heedful.errors import UserError
from heedful.lab.base import (
    TOPICS,
    Finding,
    Number,
    at_least,
    at_most,
    exactly,
    fact,
    find_topic,
    format_value,
    near,
)
from heedful.lab.vectors import check_vector, check_vectors, generate, orthonormal, parse_vectors
from heedful.report.charts import bars

FIGURE = bars([{"label": "a", "value": 1}], title="t", y_title="y")


@dataclass(frozen=True)
class Results:
    x: np.ndarray
    samples: np.ndarray = field(repr=False)


def finding(*numbers: Number) -> Finding[Results]:
    return Finding("t", "c", ("f",), numbers, Results(np.array([1.0, math.inf]), np.zeros(9)), FIGURE)


def test_a_finding_passes_only_if_it_has_conditions_and_all_hold() -> None:
    assert finding(at_most("a", 1, 2), fact("b", 3)).passed
    assert not finding(at_most("a", 1, 2), at_least("b", 1, 2)).passed
    assert not finding(fact("a", 1)).passed
    assert finding(at_most("a", 3, 2)).failed[0].name == "a"


@pytest.mark.parametrize("condition", [
    at_most("a", math.nan, 1), at_least("a", math.nan, 1), near("a", math.nan, 1, 1), exactly("a", math.nan, 1),
])  # fmt: skip
def test_what_is_not_a_number_never_holds(condition: Number) -> None:
    assert condition.holds is False


def test_facts_are_json(tmp_path: Path) -> None:
    facts = json.loads(json.dumps(finding(fact("a", math.inf), at_most("b", 1, 2)).facts(), allow_nan=False))
    assert facts["numbers"][0] == {"name": "a", "value": None, "condition": None, "holds": None}
    assert facts["results"] == {"x": [1.0, None]}


def test_a_page_holds_the_claim_and_the_numbers(tmp_path: Path) -> None:
    page = finding(at_most("seven <b>", 1, 2)).draw(tmp_path / "a.html").read_text()
    assert "seven &lt;b&gt;" in page
    assert finding().draw(tmp_path / "a.svg").read_text().startswith("<svg")
    with pytest.raises(UserError, match="a figure ends in"):
        finding().draw(tmp_path / "a.txt")


@pytest.mark.parametrize("name", TOPICS)
def test_every_topic_is_documented_and_offered(name: str) -> None:
    function = getattr(lab, name)
    assert name in lab.__all__
    text = inspect.cleandoc(function.__doc__)
    assert text.splitlines()[0] == TOPICS[name].about
    described = text.partition("Parameters\n----------\n")[2]
    for option in inspect.signature(function).parameters:
        assert f"\n{option}\n    " in f"\n{described}", option
    assert f"  heedful lab {name}" in text


def test_an_unknown_topic_lists_the_nearest() -> None:
    with pytest.raises(UserError, match='did you mean "argmax"'):
        find_topic("argmx")


@pytest.mark.parametrize("given", [[[1, 2], [3]], [["a"]], [[]], [], [[math.nan]], [[1e200]], 3])
def test_bad_vectors_are_refused_in_one_line(given: object) -> None:
    with pytest.raises(UserError, match="keys: "):
        check_vectors("keys", given)  # type: ignore[arg-type]


def test_counts_and_widths_are_checked() -> None:
    with pytest.raises(UserError, match="2 vectors; 3 are needed"):
        check_vectors("keys", [[1], [2]], count=3)
    with pytest.raises(UserError, match="vectors of 3 components; 2 are needed"):
        check_vector("query", [1, 2, 3], 2)


def test_vectors_are_read_from_files_and_from_words(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.eye(2, dtype=np.float32))
    assert (parse_vectors("--keys", str(tmp_path / "a.npy")) == np.eye(2)).all()
    assert (parse_vectors("--keys", "1,0;0,1") == np.eye(2)).all()
    assert (parse_vectors("--query", "-2,1 1") == [-2, 1, 1]).all()
    np.save(tmp_path / "b.npy", np.array([{}]), allow_pickle=True)
    (tmp_path / "c.npy").write_text("1,2")
    for text in (str(tmp_path / "b.npy"), str(tmp_path / "c.npy"), str(tmp_path / "d.npy"), "1,x", "1;2,3"):
        with pytest.raises(UserError):
            parse_vectors("--keys", text)


def test_generated_vectors_depend_on_the_seed_alone() -> None:
    assert (generate(3, 4, 1) == generate(3, 4, 1)).all()
    assert (generate(3, 4, 1) != generate(3, 4, 2)).all()
    made = orthonormal(3, 5, 0)
    assert np.abs(made @ made.T - np.eye(3)).max() < 1e-14
    with pytest.raises(UserError, match="need a width of at least 3"):
        orthonormal(3, 2, 0)


def test_numbers_are_written_to_be_compared() -> None:
    assert [format_value(v) for v in (3.0, 0.25, 1e-9, True, "x", None, [1, 0.5], math.inf)] == [
        *("3", "0.25", "1.000e-09", "yes", "x", "", "(1, 0.5)", "inf")
    ]
