"""Writing on a disk that is really full, and being killed in the middle of writing."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful.runs import (
    JsonLines,
    WriteError,
    find_damage,
    new_folder,
    read_json,
    read_jsonl,
    seal,
    write_json,
)


@pytest.mark.needs("tmpfs")
@pytest.mark.parametrize("small_disk", ["256k"], indirect=True)
def test_a_full_disk_costs_nothing_that_was_written(small_disk: Path) -> None:
    best = small_disk / "best"
    write_json(small_disk / "results.json", {"value": 1})
    with new_folder(best) as folder:
        (folder / "model").write_bytes(b"x" * 50_000)
        seal(folder)
    with JsonLines(small_disk / "metrics.jsonl") as log:

        def fill() -> None:
            for step in range(100_000):
                log.append({"step": step, "text": "y" * 100})

        with pytest.raises(WriteError, match=r"metrics.jsonl: cannot be written \(No space left on device\)"):
            fill()
        with pytest.raises(WriteError, match=r"results.json: cannot be written \(No space left on device\)"):
            write_json(small_disk / "results.json", {"value": "z" * 100_000})
        with pytest.raises(WriteError, match="best: cannot be written"), new_folder(best) as folder:
            (folder / "model").write_bytes(b"x" * 300_000)
    rows = read_jsonl(small_disk / "metrics.jsonl")
    assert [row["step"] for row in rows] == list(range(len(rows)))
    assert (small_disk / "metrics.jsonl").read_bytes().endswith(b"}\n")
    assert read_json(small_disk / "results.json") == {"value": 1}
    assert find_damage(best) is None
    assert sorted(entry.name for entry in small_disk.iterdir()) == ["best", "metrics.jsonl", "results.json"]


WRITER = """
import sys
from heedful.runs import JsonLines, new_folder, seal, write_json
root = sys.argv[1]
with JsonLines(root + "/metrics.jsonl") as log:
    for i in range(10**9):
        write_json(root + "/results.json", {"value": i, "filling": "x" * 100_000})
        with new_folder(root + "/best") as folder:
            (folder / "model").write_bytes(b"%d " % i * 20_000)
            seal(folder)
        log.append({"step": i})
        if i == 3:
            print("ready", flush=True)
"""


def test_a_kill_at_any_moment_leaves_whole_files(tmp_path: Path) -> None:
    from heedful.runs.files import recover, remove_temporary

    moments = random.Random(7)
    for i in range(25):
        root = tmp_path / str(i)
        root.mkdir()
        with subprocess.Popen([sys.executable, "-c", WRITER, root], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(moments.uniform(0, 0.02))
            writer.send_signal(signal.SIGKILL)
        rows = read_jsonl(root / "metrics.jsonl")
        assert [row["step"] for row in rows] == list(range(len(rows)))
        assert len(read_json(root / "results.json")["filling"]) == 100_000
        remove_temporary(root)
        recover(root / "best")
        assert find_damage(root / "best") is None
        assert sorted(entry.name for entry in root.iterdir()) == ["best", "metrics.jsonl", "results.json"]
