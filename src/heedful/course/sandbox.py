"""Runs a student's code where it can harm nobody: bubblewrap, limits and a watch.

    sandbox = make_sandbox(folder, Limits(seconds=60))
    with Watch(subprocess.Popen(sandbox.command([sys.executable, "child.py"])), sandbox) as watch:
        ...
    watch.reason  # "" or why it was stopped: "ran longer than 60 seconds"

The code sees a read-only system, Python, the submission, and an empty home of limited size; no network, no
other process, and nothing more. The kernel limits the number of processes, the size of files and
the memory of each process; the watch limits time and the memory of all processes together. As root, the code
runs as a user of its own, without any right.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import TracebackType

import psutil

import heedful
from heedful.errors import UserError

MIB = 2**20
HOME = "/home/student"
PACKAGE = Path(heedful.__file__).parent
SECRETS = ("course/assignments", "course/bugs")
"""Folders of the package with solutions, which a submission must not read."""
POLL_SECONDS = 0.05
LEAST_FREE = 256 * MIB
"""When the whole machine has less memory than this, what is watched is stopped, whoever took it."""
USERS = range(61_184, 65_519)
"""User ids that no account has: systemd gives them to services for as long as they run."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_FILES = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
)
NO_CAPABILITIES = ("--no-new-privs", "--inh-caps=-all", "--bounding-set=-all")
NEEDED_CAPABILITIES = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP")


@dataclass(frozen=True)
class Limits:
    """What one submission may use."""

    seconds: float = 120.0
    """Wall time, from the start of the process to its end."""
    memory: int = 3072 * MIB
    """Of all processes together, in bytes; torch itself takes 300 MiB."""
    processes: int = 64
    """Processes; the kernel refuses the start of twice as many, threads included."""
    file_bytes: int = 64 * MIB
    """The largest file."""
    home_bytes: int = 128 * MIB
    """All files together."""
    output_bytes: int = 1 * MIB
    """What it may print before it is stopped."""


@dataclass(frozen=True)
class Sandbox:
    """Where one submission runs: which folder it sees, as which user, and with which limits."""

    submission: Path
    limits: Limits = field(default_factory=Limits)
    readable: tuple[Path, ...] = ()
    """Further files and folders that the code may read."""
    user: int | None = None
    """The user it runs as; None is the caller, who is not root."""
    isolated: bool = True
    """False is `--no-sandbox`: only limits, and a user of its own if the caller is root."""
    home: Path | None = None
    """A temporary folder in place of `HOME`, if not isolated."""

    def command(self, arguments: Sequence[str]) -> list[str]:
        """Return the command that runs `arguments` in here."""
        limits = self.limits
        limited = [
            *("prlimit", f"--nproc={2 * limits.processes}", f"--fsize={limits.file_bytes}", "--core=0"),
            *(f"--data={limits.memory}", f"--cpu={int(limits.seconds) * 2 + 10}", "--nofile=512", "--"),
            *arguments,
        ]
        if not self.isolated:
            environment = [f"{name}={value}" for name, value in self.environment().items()]
            return [*self.become_user(), "env", "-i", *environment, *limited]
        outer, inner = ["bwrap", "--die-with-parent", "--new-session"], []
        if self.user is None:
            outer += ["--unshare-all", *refuse_more_namespaces()]
        else:
            outer += [
                "--unshare-pid",
                "--unshare-net",
                "--unshare-ipc",
                "--unshare-uts",
                "--unshare-cgroup-try",
            ]
            outer += [
                "--cap-drop",
                "ALL",
                *(word for cap in NEEDED_CAPABILITIES for word in ("--cap-add", cap)),
            ]
            inner = self.become_user()
            if refuse_more_namespaces() and users_may_make_namespaces(self.user):
                inner += ["bwrap", "--unshare-user", *refuse_more_namespaces(), "--dev-bind", "/", "/", "--"]
        return [*outer, *self.mounts(), *self.variables(), "--", *inner, *limited]

    def become_user(self) -> list[str]:
        if self.user is None:
            return []
        user = str(self.user)
        return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *NO_CAPABILITIES, "--"]

    def mounts(self) -> list[str]:
        """Return bubblewrap's options for what is to be seen of the machine."""
        limits = self.limits
        words: list[str] = []
        for path in SYSTEM:
            if Path(path).is_symlink():
                words += ["--symlink", str(Path(path).readlink()), path]
            else:
                words += ["--ro-bind-try", path, path]
        for path in SYSTEM_FILES:
            words += ["--ro-bind-try", path, path]
        words += ["--proc", "/proc", "--dev", "/dev"]
        for path, size in ((HOME, limits.home_bytes), ("/tmp", limits.home_bytes), ("/dev/shm", 64 * MIB)):
            words += [*make_parents(Path(path)), "--perms", "1777", "--size", str(size), "--tmpfs", path]
        for folder in dict.fromkeys((*python_folders(), *(path.resolve() for path in self.readable))):
            if not any(folder.is_relative_to(seen) for seen in SYSTEM):
                words += [*make_parents(folder), "--ro-bind", str(folder), str(folder)]
        for name in SECRETS:
            if (PACKAGE / name).is_dir():
                words += ["--perms", "0755", "--size", "4096", "--tmpfs", str(PACKAGE / name)]
        submission = self.submission.resolve()
        words += [*make_parents(submission), "--ro-bind", str(submission), str(submission)]
        return [*words, "--chdir", str(submission), "--remount-ro", "/dev", "--remount-ro", "/"]

    def variables(self) -> list[str]:
        words = ["--clearenv"]
        for name, value in self.environment().items():
            words += ["--setenv", name, value]
        return words

    def environment(self) -> dict[str, str]:
        """Return all environment variables that the code sees."""
        home = HOME if self.isolated else str(self.home)
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": home,
            "TMPDIR": home,
            "LANG": "C.UTF-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(PACKAGE.parent),
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "TORCHINDUCTOR_CACHE_DIR": home,
        }


def make_sandbox(
    submission: Path, limits: Limits | None = None, *, isolated: bool = True, readable: Sequence[Path] = ()
) -> Sandbox:
    """Return where a submission runs; without bubblewrap, say how to get it."""
    if isolated:
        require_bubblewrap()
    user = choose_user() if hasattr(os, "geteuid") and os.geteuid() == 0 else None
    home = None
    if not isolated:
        user = user if user is not None and user_can_run_python(user) else None
        home = Path(tempfile.mkdtemp(prefix="heedful-home-"))
        if user is not None:
            os.chown(home, user, user)
    return Sandbox(submission, limits or Limits(), tuple(readable), user, isolated, home)


def choose_user() -> int:
    """Return a user id that no process has, so that the limit on processes counts this submission alone."""
    taken = {process.info["uids"].real for process in psutil.process_iter(["uids"]) if process.info["uids"]}
    free = [user for user in USERS if user not in taken]
    return random.SystemRandom().choice(free)


@cache
def require_bubblewrap() -> None:
    """Refuse with one line where bubblewrap is absent or may not be used."""
    advice = "or grade with --no-sandbox, in a virtual machine that you can throw away"
    if shutil.which("bwrap") is None:
        raise UserError(f"no sandbox: bubblewrap is not installed; apt install bubblewrap, {advice}")
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    words = ["--unshare-pid", "--unshare-net"] if root else ["--unshare-all"]
    test = subprocess.run(
        ["bwrap", *words, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if test.returncode:
        reason = test.stderr.strip().splitlines()[-1:] or ["it ended with an error"]
        raise UserError(f"no sandbox: bubblewrap does not work here ({reason[0]}); allow it, {advice}")


@cache
def refuse_more_namespaces() -> list[str]:
    """Return the options that forbid namespaces within the sandbox, with a bubblewrap that has them."""
    usage = subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False).stdout
    return ["--unshare-user", "--disable-userns"] if "--disable-userns" in usage else []


@cache
def users_may_make_namespaces(user: int) -> bool:
    """Tell whether bubblewrap also works for a user without rights."""
    words = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "--"]
    words += ["bwrap", "--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def user_can_run_python(user: int) -> bool:
    """Tell whether a user without rights can run this Python, which may be in root's home."""
    words = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", *NO_CAPABILITIES, "--"]
    with suppress(OSError):
        # setpriv itself has root's rights until it has started something: `env` has none.
        command = [*words, "env", sys.executable, "-c", ""]
        return subprocess.run(command, capture_output=True, check=False, cwd="/").returncode == 0
    return False


def python_folders() -> list[Path]:
    """Return the folders that this Python runs from: its environment, its installation, editable packages."""
    folders = [Path(sys.prefix), Path(sys.base_prefix), PACKAGE]
    link = Path(sys.executable)
    while link.is_symlink():
        link = link.parent / link.readlink()
        folders.append(link.parent.parent if link.parent.name == "bin" else link.parent)
    unique = dict.fromkeys(Path(os.path.normpath(folder)) for folder in folders)
    return [folder for folder in unique if folder.is_dir() and folder != Path("/")]


def warn_of_root() -> str:
    """Return what to say if code that is not isolated would run as root; nothing otherwise."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or user_can_run_python(choose_user()):
        return ""
    return f"without a sandbox submissions run as root, because no other user can run {sys.executable}"


def make_parents(path: Path) -> Iterator[str]:
    """Yield the options that make the folders above a path readable; bubblewrap's own are for root only."""
    for parent in reversed(path.parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(parent))


class Watch:
    """Stops a process and all that it started when they exceed their limits, and in any case at the end."""

    def __init__(self, process: subprocess.Popen[bytes], sandbox: Sandbox) -> None:
        self.process, self.sandbox = process, sandbox
        self.reason = ""
        self.begin = time.monotonic()
        self.peak = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self) -> Watch:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended.set()
        self.thread.join()
        self.kill()
        if self.sandbox.home is not None:
            shutil.rmtree(self.sandbox.home, ignore_errors=True)

    def run(self) -> None:
        while not self.ended.wait(POLL_SECONDS) and self.process.poll() is None:
            if reason := self.find_excess():
                self.stop(reason)
                return

    def find_excess(self) -> str:
        """Return which limit is exceeded, or nothing."""
        limits = self.sandbox.limits
        if time.monotonic() - self.begin > limits.seconds:
            return f"ran longer than {limits.seconds:g} seconds"
        processes = self.find_processes()
        if len(processes) > limits.processes:
            return f"started more than {limits.processes} processes"
        memory = 0
        for process in processes:
            with suppress(psutil.Error):
                memory += process.memory_info().rss
        self.peak = max(self.peak, memory)
        if memory > limits.memory:
            return f"used more than {limits.memory / MIB:,.0f} MiB of memory"
        if psutil.virtual_memory().available < LEAST_FREE:
            return "left the machine without free memory"
        if self.sandbox.home is not None and folder_size(self.sandbox.home) > limits.home_bytes:
            return f"wrote more than {limits.home_bytes / MIB:,.0f} MiB of files"
        return ""

    def find_processes(self) -> list[psutil.Process]:
        """Return the process and all that it started; those of its user, if it has one of its own."""
        found: list[psutil.Process] = []
        with suppress(psutil.Error):
            top = psutil.Process(self.process.pid)
            found = [top, *top.children(recursive=True)]
        if not self.sandbox.isolated and self.sandbox.user is not None:
            user = self.sandbox.user
            own = (p for p in psutil.process_iter(["uids"]) if p.info["uids"] and p.info["uids"].real == user)
            found += [process for process in own if process not in found]
        return found

    def stop(self, reason: str) -> None:
        """End everything now; the first reason is kept."""
        self.reason = self.reason or reason
        self.kill()

    def kill(self) -> None:
        """Kill the process and all that it started; with bubblewrap the kernel does it, whatever they do."""
        if self.sandbox.isolated:
            with suppress(ProcessLookupError):
                self.process.kill()
            return
        for _ in range(100):
            living = [process for process in self.find_processes() if process.is_running()]
            for process in living:
                with suppress(psutil.Error):
                    process.suspend()  # a process that is stopped cannot start others
            for process in living:
                with suppress(psutil.Error):
                    process.kill()
            if self.process.poll() is not None and len(living) <= 1:
                break
            time.sleep(0.01)
        if self.sandbox.user is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


def folder_size(folder: Path) -> int:
    """Return the size of all files of a folder."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(Path(root, name)).st_size
    return total
