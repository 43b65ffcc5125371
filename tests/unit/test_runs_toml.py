from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.runs import toml

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1)
scalars = text | numbers | st.booleans()
lists = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=6)
tables = st.recursive(
    st.dictionaries(text, lists, max_size=4),
    lambda inner: st.dictionaries(text, lists | inner | st.lists(inner, max_size=2), max_size=4),
    max_leaves=8,
)


@given(tables)
@example({"a.b": {"": {"é\n": 1}}, '"': "\x7f\x00\\"})
@example({"lr": 1e-05, "big": 1e16, "tiny": 5e-324, "infinite": -math.inf})
def test_what_is_written_reads_back_the_same(table: dict[str, Any]) -> None:
    read = tomllib.loads(toml.to_toml(table))
    assert read == table
    assert repr(sorted(read, key=str)) == repr(sorted(table, key=str))
    assert types_of(read) == types_of(table)


def types_of(value: Any) -> Any:
    """1 equals 1.0 and True, but a configuration must not change types."""
    if isinstance(value, dict):
        return {key: types_of(item) for key, item in value.items()}
    return [types_of(item) for item in value] if isinstance(value, list) else type(value)


def test_none_is_left_out_and_tables_follow_values() -> None:
    written = toml.to_toml({"optimizer": {"lr": 0.1, "decay": None}, "epochs": 3, "limit": None})
    assert written == "epochs = 3\n\n[optimizer]\nlr = 0.1\n"


def test_not_a_number_survives() -> None:
    assert math.isnan(tomllib.loads(toml.to_toml({"x": math.nan}))["x"])


def test_what_toml_cannot_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="key"):
        toml.to_toml({"key": object()})
    with pytest.raises(TypeError, match="key"):
        toml.to_toml({"key": [1, None]})
    with pytest.raises(UserError, match="half a character"):
        toml.to_toml({"key": "\ud800"})


def test_files_are_written_under_a_comment_and_errors_name_the_place(tmp_path: Path) -> None:
    path = toml.write_toml(tmp_path / "config.toml", {"a": 1}, comment="one\ntwo")
    assert path.read_text() == "# one\n# two\na = 1\n"
    assert toml.read_toml(path) == {"a": 1}
    path.write_text("a = 1\nb = = 2\n")
    with pytest.raises(UserError, match=r"config\.toml: is not TOML: .*line 2"):
        toml.read_toml(path)
