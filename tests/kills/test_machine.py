"""A machine that fails: writes that fail in turn, limits of the system, stopped processes, a folder that vanishes."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heedful.runs.directory import Run
from tiny import make_task

sys.path.append(str(Path(__file__).parents[1] / "attacks"))

from trials import Trials


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    server = Trials({"HEEDFUL_CACHE": str(tmp_path_factory.mktemp("machine-cache")), "HF_HUB_OFFLINE": "1"})
    yield server
    server.close()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_task(tmp_path_factory.mktemp("machine") / "task")


@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EROFS", "EDQUOT"])
def test_a_write_that_fails_is_one_line_and_no_half_written_run(
    error: str, trials: Trials, task: Path, tmp_path: Path
) -> None:
    def run(number: int, out: Path, *more: object):  # type: ignore[no-untyped-def]
        call = ["python", "failing", number, error, out, "adapt", "tfidf", task, "--out", out, *more]
        return trials.run(call, seconds=60, megabytes=4000)

    whole = run(10**9, tmp_path / "whole")
    assert whole.statuses == [0], whole
    total = int(re.findall(r"writes (\d+)", whole.out)[0])
    assert total >= 8
    for number in range(1 + 3 * ["ENOSPC", "EIO", "EROFS", "EDQUOT"].index(error), total + 1, 12):
        out = tmp_path / f"{error}-{number}"
        done = run(number, out)
        assert done.ended == "exit 0", (number, done)
        assert done.statuses in ([0], [2]), (number, done.err)  # what is only convenient may be left out
        assert "Traceback" not in done.err
        if done.statuses == [2]:
            assert len([line for line in done.err.splitlines() if line.startswith("heedful: ")]) >= 1
            assert os.strerror(getattr(__import__("errno"), error)).lower() in done.err.lower(), done.err
            again = run(10**9, out, "--overwrite")
            assert again.statuses == [0], (number, again.err)
        assert Run.open(out).read_results().splits["dev"].value is not None
        assert [path.name for path in out.rglob(".*.tmp")] == []


SLOW = """
import sys, time
from heedful.linear import model
from heedful.cli import main
fit = model.TfidfModel.fit.__func__
def slow(cls, *a, **k):
    print("fitting", file=sys.stderr, flush=True)
    time.sleep(1.5)
    return fit(cls, *a, **k)
model.TfidfModel.fit = classmethod(slow)
sys.exit(main())
"""


def start(*arguments: object, before: str = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SLOW, *map(str, arguments)]
    words = ["bash", "-c", f'{before} exec "$@"', "bash", *command] if before else command
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    )


def wait_for_fit(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    said = ""
    while "fitting" not in said:
        line = process.stderr.readline()
        assert line, said
        said += line
    return said


def test_a_stopped_process_goes_on(task: Path, tmp_path: Path) -> None:
    process = start("adapt", "tfidf", task, "--out", tmp_path / "run")
    wait_for_fit(process)
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    process.send_signal(signal.SIGCONT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said


def test_two_interrupts_in_a_row_end_it_without_a_traceback(task: Path, tmp_path: Path) -> None:
    process = start("adapt", "tfidf", task, "--out", tmp_path / "run")
    said = wait_for_fit(process)
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, more = process.communicate(timeout=120)
    assert process.returncode in (75, 130), said + more
    assert "Traceback" not in more


def test_a_folder_that_vanishes_is_one_line(task: Path, tmp_path: Path) -> None:
    process = start("adapt", "tfidf", task, "--out", tmp_path / "run")
    wait_for_fit(process)
    shutil.rmtree(tmp_path / "run")
    _, said = process.communicate(timeout=120)
    assert "Traceback" not in said
    assert process.returncode in (0, 2), said


@pytest.mark.parametrize("limit", ["ulimit -v 400000;", "ulimit -n 24;", "ulimit -f 8;"])
def test_limits_of_the_system_are_one_line(limit: str, task: Path, tmp_path: Path) -> None:
    process = start("adapt", "tfidf", task, "--out", tmp_path / "run", before=limit)
    _, said = process.communicate(timeout=120)
    assert process.returncode in (0, 2, 71), said
    assert "Traceback" not in said
    if process.returncode:
        assert said.splitlines()[-1].startswith("heedful: ")
