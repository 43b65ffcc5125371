"""Training in one process needs nothing that only Linux has: it works where that is taken away."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from heedful.runs import leases
from heedful.runs.leases import Lease, holder_of
from tiny import make_model, make_task

TESTS = Path(__file__).parents[1]
SUITE = (
    "cli/test_adapt.py",
    "cli/test_evaluate.py",
    "cli/test_linear_runs.py",
    "cli/test_predict.py",
    "unit/test_estimators.py",
    "unit/test_loop_resume.py::test_a_resumed_run_has_the_same_bits",
    "unit/test_solve.py",
)
"""The tests of what a person needs: train, resume, evaluate, predict, solve, as a command and in Python."""
CORE = """
import sys
import without_linux
from pathlib import Path
import signal
import heedful
from heedful.cli import main
from heedful.options.training import AdaptOptions
from heedful.training.build import build_job
from heedful.training.signals import StoppedError, StopSignals
from heedful.training.train import train_job

model, task = sys.argv[1:]
same = dict(epochs=2, batch_size=8, lr=5e-3, max_len=32, threads=1, precision="float32")
whole = heedful.adapt(model, task, out="whole", **same)
assert whole.results.memory_gb > 0

stop = StopSignals(silent=True)
def ask_to_stop(row):
    stop.asked = signal.SIGTERM
options = AdaptOptions(model=model, task=task, out=Path("stopped"), processes=1, **same)
try:
    train_job(build_job(options), stop, on_row=ask_to_stop)
except StoppedError:
    pass
heedful.adapt(model, task, out="stopped", resume=True, **same)
for name in ("metrics.jsonl", "predictions_test.jsonl"):
    assert Path("whole", name).read_bytes() == Path("stopped", name).read_bytes(), name

assert heedful.load("whole").predict(["a lovely film"])
assert main(["report", "whole", "--out", "page.html"]) == 0
study = ["study", "search", model, task, "--method", "head", "--lr", "1e-3,1e-2", "--epochs", "1", "--jobs", "0"]
assert main([*study, "--max-len", "32", "--threads", "1", "--precision", "float32", "--out", "study"]) == 0
assert main(["lab", "average"]) == 0
print("everything ran")
"""


def run_without_linux(*words: str | Path, cwd: Path) -> str:
    """Run a program with `tests/without_linux.py` at hand; return what it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
def test_a_program_runs_without_what_only_linux_has(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CORE, encoding="utf-8")
    words = [make_model(tmp_path / "model"), make_task(tmp_path / "task")]
    assert run_without_linux("program.py", *words, cwd=tmp_path).splitlines()[-1] == "everything ran"


@pytest.mark.long
def test_the_suite_s_core_passes_without_what_only_linux_has(tmp_path: Path) -> None:
    options = ("-q", "-p", "without_linux", "-p", "no:cacheprovider", "--basetemp", tmp_path / "suite")
    tests = (str(TESTS / name) for name in SUITE)
    out = run_without_linux(
        "-m", "pytest", *options, "-m", "not long and not nightly", *tests, cwd=TESTS.parent
    )
    passed = re.search(r"(\d+) passed", out)
    assert passed is not None
    assert int(passed[1]) > 100
    assert "skipped" not in out


def test_a_lease_needs_no_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "this file system has no links")

    monkeypatch.setattr(leases.os, "link", refuse)
    first = Lease.claim(tmp_path / "x", "first", 60)
    assert first is not None
    assert Lease.claim(tmp_path / "x", "second", 60) is None
    assert holder_of(tmp_path / "x") == "first"
    first.release()
    second = Lease.claim(tmp_path / "x", "second", 60)
    assert second is not None
    assert (second.number, holder_of(tmp_path / "x")) == (2, "second")
    with pytest.raises(FileExistsError):
        leases.link_or_copy(second.file, second.file)
    assert [file.name for file in tmp_path.iterdir()] == ["x.2"]
