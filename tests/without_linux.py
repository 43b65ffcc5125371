"""A pytest plugin, `-p without_linux`: take away what only Linux has before `heedful` is imported."""

from __future__ import annotations

import ctypes
import importlib
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

OTHERS = (
    "_pytest", "cyclopts", "datasets", "huggingface_hub", "hypothesis", "jinja2", "joblib", "numpy", "optuna", "pandas",
    "polars", "psutil", "pyarrow.parquet", "rich.progress", "safetensors.torch", "scipy.stats", "sklearn.model_selection",
    "tokenizers", "torch", "torch.utils.data", "vl_convert",
)  # fmt: skip
"""Packages with their own ways on every system, which they choose when they are imported."""
MODULES = ("resource", "fcntl", "pwd", "grp", "termios", "tty")
OF_OS = (
    "fork", "sched_getaffinity", "sched_setaffinity", "sysconf", "sysconf_names", "uname", "getuid", "killpg", "setsid",
    "O_DIRECTORY", "getloadavg", "link",
)  # fmt: skip
SIGNALS = ("SIGUSR1", "SIGUSR2", "SIGKILL", "SIGHUP", "SIGQUIT", "SIGALRM")


class NoLibrary(ctypes.CDLL):
    def __init__(self, name: str | None, *args: Any, **kwargs: Any) -> None:
        if name is None:
            raise TypeError("there is no such library")  # as on Windows
        super().__init__(name, *args, **kwargs)


def refuse_linux_paths(name: str) -> None:
    """Let a method of `Path` find nothing below /proc and /sys."""
    right = getattr(pathlib.Path, name)

    def method(self: pathlib.Path, *args: Any, **kwargs: Any) -> Any:
        if self.parts[:2] not in (("/", "proc"), ("/", "sys")):
            return right(self, *args, **kwargs)
        if name in ("exists", "is_file", "is_dir"):
            return False
        raise FileNotFoundError(str(self))

    setattr(pathlib.Path, name, method)


for package in OTHERS:
    importlib.import_module(package)
assert "heedful" not in sys.modules
for module in MODULES:
    sys.modules[module] = None  # type: ignore[assignment]  # importing it raises ImportError
for name in OF_OS:
    delattr(os, name)
for name in SIGNALS:
    delattr(signal, name)
for name in ("read_text", "read_bytes", "write_text", "open", "readlink", "exists", "is_file", "is_dir"):
    refuse_linux_paths(name)
ctypes.CDLL = NoLibrary  # type: ignore[misc]
subprocess.Popen.kill = lambda self: self.send_signal(9)  # type: ignore[method-assign]  # of this Python, not of ours
