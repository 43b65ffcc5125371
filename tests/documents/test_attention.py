"""What docs/attention.md says its commands print, they print."""

from __future__ import annotations

import contextlib
import io
import math
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "attention.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
LOOSE = ("lab argmax", "lab masking", "lab scaling", "lab heads")
"""These train models, measure, or sum in float32: their numbers are a little different on other machines."""


def taken_apart(line: str) -> tuple[str, list[float]]:
    """The words of a line, and its numbers."""
    return " ".join(NUMBER.sub("#", line).split()), [float(n) for n in NUMBER.findall(line)]


def same(told: str, printed: str, *, loose: bool) -> bool:
    """Whether two lines have the same words and nearly the same numbers."""
    (words, numbers), (other_words, others) = taken_apart(told), taken_apart(printed)
    relative, absolute = (0.5, 0.05) if loose else (0.01, 1e-12)
    return (
        words == other_words
        and len(numbers) == len(others)
        and all(
            math.isclose(a, b, rel_tol=relative, abs_tol=absolute)
            for a, b in zip(numbers, others, strict=True)
        )
    )


@pytest.mark.needs("minilm")
def test_every_line_that_the_page_shows_is_printed(
    heedful: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed, loose, compared = "", False, 0
    for kind, block in BLOCKS:
        if kind == "bash":
            printed = ""
            for command in block.splitlines():
                done = heedful(*shlex.split(command)[1:])
                assert done.status == 0, f"{command}\n{done.out}\n{done.err}"
                printed += done.out
            loose = any(name in block for name in LOOSE)
        elif kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(block, PAGE.name, "exec"), {})
            printed, loose = out.getvalue(), False
        elif not kind:
            for line in filter(str.strip, block.splitlines()):
                assert any(same(line, other, loose=loose) for other in printed.splitlines()), (
                    f"{line}\nis not in\n{printed}"
                )
                compared += 1
    assert compared > 40


def test_lines_with_other_words_or_numbers_differ() -> None:
    line = " k_1: smallest length    7.95916  at most 1e-12  yes"
    assert same(line, "k_1: smallest length 7.959 at most 1e-12 yes", loose=False)
    assert not same(line, "k_1: smallest length 8.2 at most 1e-12 yes", loose=False)
    assert not same(line, "k_2: smallest length 7.95916 at most 1e-12 yes", loose=False)
    assert not same(line, "k_1: smallest length 7.95916 at most 1e-12 NO", loose=False)


def test_every_topic_on_the_page_has_its_figure() -> None:
    shown = re.findall(r"\]\((images/lab-(\w+)\.svg)\)", PAGE.read_text(encoding="utf-8"))
    topics = re.findall(r"^heedful lab (\w+)$", "\n".join(b for k, b in BLOCKS if k == "bash"), re.MULTILINE)
    assert [topic for _, topic in shown] == topics
    for path, _ in shown:
        assert (PAGE.parent / path).read_text(encoding="utf-8").startswith("<svg")
