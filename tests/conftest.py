"""Fixtures shared by all tests: the command called in-process, and parts that a machine may lack."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

LONG = {"slurm", "browser", "kills", "documents", "handouts"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what belongs to `make test-long`, by folder."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).parts[0] in LONG:
            item.add_marker(pytest.mark.long)


@dataclass
class Finished:
    """What a command did."""

    status: int
    out: str
    err: str


@pytest.fixture()
def heedful(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Finished]:
    """Run a heedful command in this process."""
    from heedful.cli import main

    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: object) -> Finished:
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Finished(status, captured.out, captured.err)

    return run


@pytest.fixture()
def real_data() -> Path:
    """The folder of real data sets, for tests that want it."""
    if not os.environ.get("HEEDFUL_DATA"):
        pytest.skip("HEEDFUL_DATA is not set: this test reads real data sets")
    return Path(os.environ["HEEDFUL_DATA"])
