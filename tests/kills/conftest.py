"""A disk that is soon full."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A disk of the size that the test names: `parametrize("small_disk", ["4m"], indirect=True)`."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk: this test fills one")
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "tmpfs", disk],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("this machine does not allow mounting a small disk: this test fills one")
    yield disk
    subprocess.run(["umount", disk], check=True)
