"""The sandbox: what the code in it can see, take and break."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful.course import sandbox as sandboxes
from heedful.course.sandbox import MIB, Limits, Sandbox, Watch, make_sandbox
from heedful.errors import UserError

pytestmark = pytest.mark.needs("bubblewrap")
LOOK = """
import json, os, socket, sys
def write(path):
    try:
        open(path, "a").write("x")
    except OSError as error:
        return error.errno
    return 0
def connect():
    try:
        socket.create_connection(("1.1.1.1", 53), 5)
    except OSError:
        return False
    return True
def fill(path):
    total = 0
    try:
        for i in range(40):
            with open(f"{path}/{i}", "wb") as file:
                total += file.write(bytes(2**20))
    except OSError:
        pass
    return total
print(json.dumps({
    "user": os.getuid(),
    "here": os.listdir("."),
    "processes": [name for name in os.listdir("/proc") if name.isdigit()],
    "written": {path: write(path) for path in ("/x", "/dev/x", "/usr/x", "x", "program.py", SECRET, "/tmp/x")},
    "secret": os.path.exists(SECRET),
    "neighbors": os.listdir(os.path.dirname(os.getcwd())),
    "network": connect(),
    "filled": fill(os.environ["HOME"]),
    "environment": sorted(os.environ),
}))
"""


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    folder = tmp_path / "class" / "ada"
    folder.mkdir(parents=True)
    (tmp_path / "class" / "bob").mkdir()
    return folder


def run(submission: Path, program: str, limits: Limits | None = None) -> tuple[str, Watch]:
    (submission / "program.py").write_text(program)
    sandbox = make_sandbox(submission, limits)
    command = sandbox.command([sys.executable, "program.py"])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    with Watch(process, sandbox) as watch:
        out = process.communicate()[0].decode(errors="replace")
    return out, watch


def test_the_code_sees_its_own_folder_and_nothing_else_of_the_machine(
    submission: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "hidden.toml"
    secret.write_text("seed = 1")
    monkeypatch.setenv("TOKEN", "secret")
    out, watch = run(submission, LOOK.replace("SECRET", repr(str(secret))), Limits(home_bytes=8 * MIB))
    seen = json.loads(out)
    assert not watch.reason
    assert seen["user"] != 0
    assert seen["here"] == ["program.py"]
    assert seen["neighbors"] == ["ada"]
    assert not seen["secret"]
    assert not seen["network"]
    assert len(seen["processes"]) < 8
    assert "TOKEN" not in seen["environment"]
    assert seen["filled"] <= 8 * MIB
    assert [path for path, errno in seen["written"].items() if errno == 0] == ["/tmp/x"]
    assert secret.read_text() == "seed = 1"


def test_solutions_of_the_package_cannot_be_read(submission: Path) -> None:
    program = (
        "import heedful.course, os; f = os.path.dirname(heedful.course.__file__)\n"
        "print([os.listdir(os.path.join(f, name)) for name in ('assignments', 'bugs') "
        "if os.path.isdir(os.path.join(f, name))])"
    )
    assert "py" not in run(submission, program)[0].replace("program.py", "")


@pytest.mark.parametrize(
    ("program", "limits", "reason"),
    [
        ("while True: pass", Limits(seconds=1), "ran longer than 1 seconds"),
        (
            "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
            Limits(),
            "more than 64 processes",
        ),
        (
            "x = [b'x' * 2**20 for _ in range(150)]\nwhile True: pass",
            Limits(memory=100 * MIB, seconds=5),
            None,
        ),
        (
            "import os\nfor _ in range(4):\n    if not os.fork(): x = b'x' * (60 * 2**20); os.read(0, 1)\nos.wait()",
            Limits(memory=100 * MIB, seconds=20),
            "more than 100 MiB of memory",
        ),
    ],
    ids=["time", "processes", "memory of one", "memory of all"],
)
def test_what_exceeds_a_limit_is_stopped_with_all_that_it_started(
    submission: Path, program: str, limits: Limits, reason: str | None
) -> None:
    begin = time.monotonic()
    out, watch = run(submission, program, limits)
    assert time.monotonic() - begin < 15
    if reason is None:
        assert "MemoryError" in out or "more than 100 MiB of memory" in watch.reason
    else:
        assert reason in watch.reason
    left = [p for p in sandboxes.psutil.process_iter(["cwd"]) if p.info["cwd"] == str(submission)]
    assert not [p for p in left if p.is_running() and p.status() != "zombie"]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes an ordinary user, which only root can")
def test_an_ordinary_user_has_the_same_sandbox(submission: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "python_folders", list)
    submission.chmod(0o755)
    for parent in list(submission.parents)[:-2]:
        parent.chmod(parent.stat().st_mode | 0o055)
    secret = submission.parent / "bob" / "solution.py"
    (submission / "program.py").write_text(LOOK.replace("SECRET", repr(str(secret))))
    command = Sandbox(submission, Limits(home_bytes=8 * MIB)).command(["/usr/bin/python3", "program.py"])
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    seen = json.loads(done.stdout)
    assert seen["neighbors"] == ["ada"]
    assert not seen["network"]
    assert seen["filled"] <= 8 * MIB
    assert [path for path, errno in seen["written"].items() if errno == 0] == ["/tmp/x"]


def test_without_bubblewrap_the_error_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    sandboxes.require_bubblewrap.cache_clear()
    with pytest.raises(UserError, match="apt install bubblewrap, or grade with --no-sandbox"):
        make_sandbox(tmp_path)
    sandboxes.require_bubblewrap.cache_clear()
