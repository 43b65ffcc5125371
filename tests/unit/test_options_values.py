"""The typed parser: the same values are accepted, and the same refused, from text, TOML and Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.cli.help_format import PANEL_OF
from heedful.errors import UserError
from heedful.options.configuration import check_table
from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.options.types import Bounds, Count, Positive, Rate, Share
from heedful.options.values import check_bounds, convert_value, flag, parse_assignments, parse_value

ABSURD = {
    "seed": [2**64, -(2**63) - 1],
    "epochs": [10**20, 0, -1],
    "steps": [0, 10**10],
    "threads": [100_000, 0],
    "warmup": [math.nan, math.inf, -0.1],
    "lr": [math.inf, math.nan, 0.0, -1.0],
    "weight_decay": [math.nan, math.inf, -1.0],
    "clip": [math.nan, math.inf, -1.0],
    "batch_size": [0, 10**12],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in ABSURD for value in ABSURD[name]])
def test_an_absurd_number_is_refused_by_every_door(
    heedful: Callable[..., Any], name: str, value: float
) -> None:
    done = heedful("adapt", "no-model", "no-task", f"{flag(name)}={value}")
    assert done.status == 2
    assert done.err.startswith(f"heedful: {flag(name)} ")
    assert ": must be " in done.err
    assert done.err.count("\n") == 1
    with pytest.raises(UserError, match=r"x\.toml: .* must be "):
        check_table(AdaptOptions, {name: value}, "x.toml")
    with pytest.raises(UserError, match=f"{flag(name)} .*: must be "):
        check_bounds(AdaptOptions(**{name: value}))


@pytest.mark.parametrize(
    ("hint", "text", "value"),
    [
        (int, "3", 3),
        (int, "1e3", 1000),
        (int, "4.0", 4),
        (float, "3", 3.0),
        (bool, "True", True),
        (int | None, "none", None),
        (str | None, "none", None),
        (Path, "a/b", Path("a/b")),
        (Literal["a", "b"], "b", "b"),
        (Literal[1, 2], "2", 2),
        (tuple[str, ...], "rank=4", ("rank=4",)),
        (tuple[str, ...], '["a", "b"]', ("a", "b")),
        (int | float, "0.5", 0.5),
        (Annotated[int | None, Bounds(least=1)], "none", None),
        (Rate | None, "5e-5", 5e-5),
    ],
)
def test_text_is_read_as_the_declared_type(hint: Any, text: str, value: Any) -> None:
    result = parse_value(hint, text, "--x")
    assert (result, type(result)) == (value, type(value))


@pytest.mark.parametrize(
    ("hint", "value", "message"),
    [
        (int, "3", 'x "3": must be a whole number'),
        (int, 2.5, "x 2.5: must be a whole number"),
        (int, True, "x true: must be a whole number"),
        (bool, 1, "x 1: must be true or false"),
        (float, "fast", 'x "fast": must be a number'),
        (float, math.nan, "x nan: must be a finite number"),
        (float, 10**400, "x inf: must be a finite number"),
        (str, 3, "x 3: must be text"),
        (Path, 3, "x 3: must be a path"),
        (Literal["a", "b", "c"], "d", 'x "d": must be a, b or c'),
        (tuple[str, ...], "a", 'x "a": must be an array'),
        (tuple[int, int], [1], "x: has 1 entries; it must have 2"),
        (tuple[int, ...], [1, "b"], 'x[1] "b": must be a whole number'),
        (dict[str, int], 3, "x 3: must be a table"),
        (dict[str, int], {"a": None}, "x, a none: must be a whole number"),
        (int | float, "x", 'x "x": must be a whole number or a number'),
        (Positive, 0, "x 0: must be at least 1"),
        (Positive | None, 0, "x 0: must be at least 1"),
        (Count, -1, "x -1: must be at least 0"),
        (Share, 1.0, "x 1: must be at least 0 and below 1"),
    ],
)
def test_what_is_wrong_is_one_line_that_says_what_would_be_right(hint: Any, value: Any, message: str) -> None:
    with pytest.raises(UserError) as refused:
        convert_value(hint, value, "x")
    assert str(refused.value) == message


@given(st.one_of(st.integers(), st.floats(), st.text(max_size=5), st.booleans(), st.none()))
def test_a_value_is_accepted_as_it_is_or_refused_with_a_user_error(value: Any) -> None:
    for hint in (int, float, str, bool, Positive | None, Share, Literal["a", 1], Path | None):
        try:
            result = convert_value(hint, value, "x")
        except UserError:
            continue
        expected = float(value) if isinstance(result, float) else value
        assert result == expected or result == Path(str(value)).expanduser()


def test_assignments_name_the_option_and_its_owner() -> None:
    hints = {"rank": Positive, "targets": str}
    assert parse_assignments(["rank=8", "targets=q,v"], hints, "--m") == {"rank": 8, "targets": "q,v"}
    for text, message in (
        ("rank", '--m "rank": must be option=value'),
        ("rnk=8", '--m: unknown option of lora "rnk"; did you mean "rank"?'),
        ("rank=0", "--m rank 0: must be at least 1"),
    ):
        with pytest.raises(UserError) as refused:
            parse_assignments([text], hints, "--m", "lora")
        assert str(refused.value) == message


@pytest.mark.parametrize("kind", [AdaptOptions, PretrainOptions])
def test_every_option_has_a_panel_in_the_help(kind: type[LoopOptions]) -> None:
    names = {flag(field.name) for field in fields(kind)} - {"--model", "--task", "--corpus"}
    assert names <= PANEL_OF.keys()


def test_help_shows_bounds(heedful: Callable[..., Any]) -> None:
    shown = " ".join(heedful("adapt", "--help").out.replace("│", " ").split())
    assert "--epochs INT Number of passes over the training data. By default 3, and more for few" in shown
    assert "less memory, the same result. [at least 1] [default: 1]" in shown
    assert "[at least 0 and below 1]" in shown
