"""Options to words and back: what a job is told is what was asked for."""

from __future__ import annotations

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from heedful.cli import build
from heedful.options.command_line import command_words, option_flags
from heedful.options.training import AdaptOptions, PretrainOptions
from heedful.options.values import members

TEXT = st.text(st.sampled_from(list(" '\"$;\n-=[]{},aé1")), min_size=1, max_size=8)
SKIPPED = ("model", "task", "corpus")


def value_of(hint: Any, default: Any) -> st.SearchStrategy[Any]:
    """Some values of an option's type, within its bounds."""
    for kind, bounds in members(hint):
        if kind in (int, float):
            numbers = st.integers(-9, 9) if kind is int else st.floats(-1e6, 1e6, allow_nan=False)
            return numbers.filter(
                lambda number, bounds=bounds: all(b.violation(number) is None for b in bounds)
            )
    hint = (get_origin(hint) is Annotated and get_args(hint)[0]) or hint
    arguments = getattr(hint, "__args__", ())
    named = [a for part in (hint, *arguments) for a in getattr(part, "__args__", ()) if isinstance(a, str)]
    if hint is bool:
        return st.booleans()
    if Path in (hint, *arguments):
        return TEXT.map(Path)
    if isinstance(default, tuple):
        return st.lists(TEXT, max_size=3).map(tuple)
    if named:
        return st.sampled_from(named)
    return TEXT


@pytest.mark.parametrize(("command", "kind"), [("adapt", AdaptOptions), ("pretrain", PretrainOptions)])
def test_a_command_reads_back_the_options_it_was_written_from(command: str, kind: Any) -> None:
    hints = get_type_hints(kind, include_extras=True)
    each = {f.name: value_of(hints[f.name], f.default) for f in fields(kind) if f.name not in SKIPPED}
    app = build(command)

    @settings(max_examples=40, deadline=None, phases=[Phase.generate])  # to shrink takes minutes
    @given(data=st.data(), names=st.sets(st.sampled_from(sorted(each)), max_size=8), name=TEXT)
    def reads_back(data: st.DataObject, names: set[str], name: str) -> None:
        options = kind(**{one: data.draw(each[one], one) for one in sorted(names)})
        words = command_words([command], [name, "x"], options, SKIPPED)
        assert words[:4] == (sys.executable, "-m", "heedful", command)
        _, bound, _ = app.parse_args(list(words[3:]), exit_on_error=False, print_error=False)
        assert bound.args == (name, "x")
        assert bound.arguments.get("options", kind()) == options

    reads_back()


def test_only_what_is_not_the_default_is_said() -> None:
    assert option_flags(AdaptOptions()) == []
    assert option_flags(replace(AdaptOptions(), accumulate=1, lr=1e-4, cache_features=False)) == [
        "--lr=0.0001",
        "--no-cache-features",
    ]
