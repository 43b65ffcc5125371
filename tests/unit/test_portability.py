"""Training in one process needs nothing that only Linux has: it works where that is taken away."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from heedful.runs import leases
from heedful.runs.leases import Lease, holder_of
from tiny import make_model, make_task

WITHOUT_LINUX = """
import ctypes, os, pathlib, signal, sys
# These have their own ways on every system, and choose them when they are imported.
import cyclopts, huggingface_hub, jinja2, numpy, optuna, psutil, pyarrow.parquet, rich.progress, scipy.stats, torch
import safetensors.torch, tokenizers, vl_convert

for name in ("resource", "fcntl", "pwd", "grp", "termios", "tty"):
    sys.modules[name] = None  # importing it raises ImportError
for name in ("fork", "sched_getaffinity", "sched_setaffinity", "sysconf", "sysconf_names", "uname", "getuid", "killpg",
             "setsid", "O_DIRECTORY", "getloadavg", "link"):
    delattr(os, name)
for name in ("SIGUSR1", "SIGUSR2", "SIGKILL", "SIGHUP", "SIGQUIT", "SIGALRM"):
    delattr(signal, name)

def refuse_linux_paths(name):
    right = getattr(pathlib.Path, name)
    def method(self, *args, **kwargs):
        if self.parts[:2] in (("/", "proc"), ("/", "sys")):
            if name in ("exists", "is_file", "is_dir"):
                return False
            raise FileNotFoundError(str(self))
        return right(self, *args, **kwargs)
    setattr(pathlib.Path, name, method)

for name in ("read_text", "read_bytes", "write_text", "open", "readlink", "exists", "is_file", "is_dir"):
    refuse_linux_paths(name)

class NoLibrary(ctypes.CDLL):
    def __init__(self, name, *args, **kwargs):
        if name is None:
            raise TypeError("there is no such library")  # as on Windows
        super().__init__(name, *args, **kwargs)

ctypes.CDLL = NoLibrary
"""
CORE = """
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


@pytest.mark.long
def test_the_core_runs_without_what_only_linux_has(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(WITHOUT_LINUX + CORE, encoding="utf-8")
    words = [make_model(tmp_path / "model"), make_task(tmp_path / "task")]
    done = subprocess.run(
        [sys.executable, "program.py", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "everything ran"


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
