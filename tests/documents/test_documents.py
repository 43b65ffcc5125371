"""Every command and code block of every document runs as it stands, in order, in a folder of its own.

A block marked `bash` or `python` is run; one without a language only shows something.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL = ("git ", "cd ", "make ", "source ", "pip ", "#", "export ")
"""What only sets up a checkout; the make targets are tested below."""


def blocks(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def runs(page: Path) -> bool:
    """Whether a page has something to run; test_attention.py runs its own, and looks at what it prints too."""
    return bool(blocks(page)) and page.stem != "attention"


def commands(block: str) -> list[str]:
    lines = block.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.strip() and not line.startswith(SHELL)]


@pytest.mark.timeout(1800)  # a page is a session of many commands
@pytest.mark.needs("minilm")
@pytest.mark.parametrize("page", [page for page in PAGES if runs(page)], ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(
    page: Path, heedful: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    scope: dict[str, object] = {}
    for kind, block in blocks(page):
        if kind == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(block, page.name, "exec"), scope)
        elif kind == "bash":
            for command in commands(block):
                words = shlex.split(command, comments=True)
                assert words[0] == "heedful", f"{page.name}: {command}"
                done = heedful(*words[1:])
                announced = re.search(r"# status (\d)", command)
                assert done.status == (int(announced[1]) if announced else 0), f"{command}\n{done.err}"
                assert done.out, command


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [
        line.split()[1]
        for _, block in blocks(ROOT / "README.md")
        for line in block.splitlines()
        if line.startswith("make ")
    ]
    assert targets[:2] == ["demo", "test"]
    for target in targets:
        assert f"\n{target}:" in makefile
