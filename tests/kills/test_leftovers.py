"""Processes killed at chosen file-system calls: what they leave is gone after the next command on the folder."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.runs import find_damage, new_folder, seal, write_json
from heedful.runs.directory import Run
from heedful.runs.files import temporary_path
from heedful.runs.leases import Lease
from heedful.runs.leftovers import DAY, clear_leftovers, clear_study_leftovers, machine_mark

CALLS = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.link",
    "os.truncate",
    "os.scandir",
    "os.utime",
}


def kill_at(call: int, work: Callable[[], None]) -> bool:
    """Run `work` in a child that is killed at this file-system call; return whether it got so far."""
    child = os.fork()
    if child == 0:
        count = 0

        def watch(event: str, _: object) -> None:
            nonlocal count
            if event in CALLS:
                count += 1
                if count == call:
                    os.kill(os.getpid(), signal.SIGKILL)

        try:
            sys.addaudithook(watch)
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def make_run(folder: Path) -> Path:
    run = Run.create(folder)
    run.write_config({"command": "adapt", "adapt": {"model": "m", "task": "t"}})
    run.checkpoints.mkdir()
    for target in (run.best, run.checkpoints / "step-00000001"):
        with new_folder(target) as new:
            (new / "model").write_bytes(b"old")
            seal(new)
    return folder


def write_again(folder: Path) -> None:
    """Write everything that a run writes: results, best weights, a checkpoint, a lease."""
    run = Run(folder)
    for target in (run.best, run.checkpoints / "step-00000001"):
        with new_folder(target) as new:
            (new / "model").write_bytes(b"new")
            seal(new)
    write_json(folder / "progress.json", {"step": 1})
    lease = Lease.claim(run.checkpoints / ".lease", "me", 30)
    assert lease is not None
    lease.release()


def test_nothing_stays_of_a_run_that_was_killed_at_any_file_system_call(tmp_path: Path) -> None:
    good = make_run(tmp_path / "good")
    call, killed = 1, 0
    while True:
        folder = tmp_path / str(call)
        shutil.copytree(good, folder)
        if not kill_at(call, lambda folder=folder: write_again(folder)):  # type: ignore[misc]
            break
        killed += 1
        Run.open(folder)
        hidden = [p for p in folder.rglob(".*") if not p.name.startswith(".lease.")]
        assert hidden == [], call
        for target in (folder / "best", folder / "checkpoints/step-00000001"):
            assert find_damage(target) is None, call
            assert (target / "model").read_bytes() in (b"old", b"new"), call
        call += 1
    assert killed > 30


def test_half_made_runs_of_a_study_are_removed_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text("{}")
    (tmp_path / "runs/empty").mkdir(parents=True)
    (tmp_path / "leases").mkdir()

    def die_in_the_middle() -> None:
        for folder in ("leases", "runs", "runs/half"):
            (tmp_path / folder).mkdir(exist_ok=True)
            temporary_path(tmp_path / folder / "x").mkdir()
        os.kill(os.getpid(), signal.SIGKILL)

    assert kill_at(10**9, die_in_the_middle)
    make_run(tmp_path / "runs/whole")
    clear_study_leftovers(tmp_path)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["whole"]
    assert list((tmp_path / "leases").iterdir()) == []
    assert Run.open(tmp_path / "runs/whole").read_config()["command"] == "adapt"


def test_what_a_living_process_owns_stays_and_what_another_machine_wrote_stays_for_a_day(
    tmp_path: Path,
) -> None:
    mine = temporary_path(tmp_path / "results.json")
    mine.write_text("")
    dead = tmp_path / f".results.json.999999999-{machine_mark()}-00000000.tmp"
    other = tmp_path / ".results.json.1-abcdef-00000000.tmp"
    older = tmp_path / ".results.json.1-00000000.tmp"
    persons = tmp_path / ".notes.tmp"
    for path in (dead, other, older, persons):
        path.write_text("")
    clear_leftovers(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {p.name for p in (mine, other, older, persons)}
    long_ago = time.time() - DAY - 60
    for path in (other, older):
        os.utime(path, (long_ago, long_ago))
    clear_leftovers(tmp_path)
    assert {p.name for p in tmp_path.iterdir()} == {mine.name, persons.name}


def test_a_folder_that_is_being_replaced_is_left_to_who_replaces_it(tmp_path: Path) -> None:
    (tmp_path / ".best.former").mkdir()
    temporary_path(tmp_path / "best").mkdir()  # by this process, which lives
    clear_leftovers(tmp_path)
    assert not (tmp_path / "best").exists()
    assert (tmp_path / ".best.former").is_dir()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    (folder / f".x.999999999-{machine_mark()}-00000000.tmp").write_text("")
    folder.chmod(0o500)
    assert Run.open(folder).read_config()["command"] == "adapt"
    folder.chmod(0o700)
