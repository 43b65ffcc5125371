"""Every command and every code block of the README runs as it stands, in order, in one folder."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
COMMANDS = [
    line
    for kind, block in BLOCKS
    if kind == "bash"
    for line in block.splitlines()
    if line.startswith("heedful ")
]


@pytest.mark.needs("minilm")
def test_every_command_of_the_readme_runs(
    heedful: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) >= 10
    for command in COMMANDS:
        done = heedful(*shlex.split(command, comments=True)[1:])
        announced = re.search(r"# status (\d)", command)
        assert done.status == (int(announced[1]) if announced else 0), f"{command}\n{done.err}"
        assert done.out, command


@pytest.mark.needs("minilm")
def test_every_python_block_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [block for kind, block in BLOCKS if kind == "python"]
    assert blocks
    for block in blocks:
        scope: dict[str, object] = {}
        exec(compile(block, "README.md", "exec"), scope)
        assert scope["out"].shape == (1, 4, 100, 16)
        assert scope["logits"].shape == (1, 3)
        assert scope["answers"][0].label in ("0", "1")


def test_the_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = [
        line.split()[1]
        for kind, block in BLOCKS
        if kind == "bash"
        for line in block.splitlines()
        if line.startswith("make ")
    ]
    assert targets == ["demo", "test"]
    for target in targets:
        assert f"\n{target}:" in makefile


def test_every_folder_in_the_map_exists() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for folder in re.findall(r"^\| `([^`]+)`", text, re.MULTILINE):
        assert (ROOT / folder).is_dir(), folder
