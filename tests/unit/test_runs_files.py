from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.runs import checksums, files, json_files
from heedful.runs.files import JsonLines, WriteError


def full_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_full_disk_leaves_the_previous_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = files.write_json(tmp_path / "results.json", {"value": 1})
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(WriteError, match=r"results.json: cannot be written \(No space left on device\)"):
        files.write_json(path, {"value": 2})
    assert json_files.read_json(path) == {"value": 1}
    assert names(tmp_path) == ["results.json"]


def test_a_kill_before_the_rename_leaves_the_previous_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    path = files.write_text(tmp_path / "a.txt", "old")
    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(Killed):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    monkeypatch.undo()
    files.remove_temporary(tmp_path)
    assert names(tmp_path) == ["a.txt"]


def test_folders_are_made_and_unwritable_places_told_in_one_line(tmp_path: Path) -> None:
    assert files.write_text(tmp_path / "x" / "y" / "a.txt", "text").read_text() == "text"
    (tmp_path / "file").write_text("")
    with pytest.raises(WriteError, match=r"a\.txt: cannot be written \(a part of its path is a file\)"):
        files.write_text(tmp_path / "file" / "a.txt", "text")


def test_json_holds_only_what_every_reader_accepts(tmp_path: Path) -> None:
    value = {
        "nan": math.nan,
        "inf": [math.inf, np.float32("-inf")],
        "array": np.arange(3),
        "scalar": np.float32(0.5),
        "whole": np.int64(7),
        "truth": np.bool_(True),
        "path": Path("a/b"),
        "lone surrogate": "\ud800",
        3: (1, 2),
    }
    path = files.write_json(tmp_path / "a.json", value)
    assert json.loads(path.read_text(), parse_constant=pytest.fail) == {
        "nan": None,
        "inf": [None, None],
        "array": [0, 1, 2],
        "scalar": 0.5,
        "whole": 7,
        "truth": True,
        "path": "a/b",
        "lone surrogate": "\ud800",
        "3": [1, 2],
    }


def test_what_json_cannot_hold_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object cannot be written"):
        files.write_json(tmp_path / "a.json", {"x": object()})
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n oops}', r"a\.json line 2: is not JSON"),
        (b"", r"a\.json line 1: is not JSON"),
        (b"\xff\xfe", r"a\.json: is not UTF-8 \(byte 0\)"),
        (b"[" * 100_000, r"a\.json: cannot be read as JSON \(nested too deeply"),
    ],
)
def test_a_damaged_file_is_told_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as told:
        json_files.read_json(path)
    assert "\n" not in str(told.value)


def test_a_missing_file_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a\.json: there is no such file"):
        json_files.read_json(tmp_path / "a.json")


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "device").symlink_to("/dev/zero")
    for name, message in (
        ("pipe", "is not a regular file"),
        ("folder", "is a folder|cannot be read"),
        ("loop", "cannot be read"),
        ("device", "is not a regular file"),
    ):
        with pytest.raises(UserError, match=f"{name}: ({message})"):
            json_files.read_json(tmp_path / name)


def test_no_more_than_the_stated_size_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b" " * 11)
    with pytest.raises(UserError, match=r"a\.json: is larger than"):
        json_files.read_bytes(path, limit=10)
    assert json_files.read_bytes(path, limit=11) == b" " * 11
    with path.open("wb") as file:
        file.truncate(json_files.MAX_BYTES + 1)
    with pytest.raises(UserError, match=r"a\.json: is larger than 256 MiB"):
        json_files.read_json(path)


def test_lines_are_cut_back_to_the_stored_length_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with JsonLines(path) as log:
        log.append({"step": 1, "text": "é\n"})
        stored = log.sync()
        log.append({"step": 2})
    assert stored < path.stat().st_size
    with JsonLines(path, keep=stored) as log:
        log.append({"step": 2, "again": True})
    assert json_files.read_jsonl(path) == [{"step": 1, "text": "é\n"}, {"step": 2, "again": True}]


def test_every_row_is_in_the_file_at_once(tmp_path: Path) -> None:
    with JsonLines(tmp_path / "a.jsonl") as log:
        log.append({"step": 1})
        assert json_files.read_jsonl(log.path) == [{"step": 1}]
        assert log.length == log.path.stat().st_size


def test_a_new_log_starts_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("old\n")
    JsonLines(path).close()
    assert path.read_bytes() == b""


def test_a_log_shorter_than_its_checkpoint_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    with pytest.raises(UserError, match="has 3 bytes, the checkpoint was made when it had 100"):
        JsonLines(path, keep=100)
    assert path.read_text() == "{}\n"


def test_half_a_last_line_is_left_out_and_a_damaged_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"step": 1}\n{"step": 2')
    assert json_files.read_jsonl(path) == [{"step": 1}]
    path.write_text('{"step": 1}\nnonsense\n{"step": 3}\n')
    with pytest.raises(UserError, match=r"a\.jsonl line 2: is not a JSON object"):
        json_files.read_jsonl(path)


def test_a_row_that_does_not_fit_on_the_disk_leaves_no_half_line(tmp_path: Path) -> None:
    log = JsonLines(tmp_path / "a.jsonl")
    log.append({"step": 1})
    whole = log.file

    class HalfWritten:
        def write(self, line: bytes) -> None:
            os.write(whole.fileno(), line[:4])
            full_disk()

        def __getattr__(self, name: str) -> object:
            return getattr(whole, name)

    log.file = HalfWritten()  # type: ignore[assignment]
    with pytest.raises(WriteError, match="No space left"):
        log.append({"step": 2})
    log.append({"step": 3})
    log.close()
    assert (tmp_path / "a.jsonl").read_text() == '{"step": 1}\n{"step": 3}\n'


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    best = tmp_path / "best"
    with files.new_folder(best) as folder:
        (folder / "a").write_text("1")
        assert not best.exists()

    def fail_half_way() -> None:
        with files.new_folder(best) as folder:
            (folder / "a").write_text("2")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert (best / "a").read_text() == "1"
    assert names(tmp_path) == ["best"]


def test_a_replaced_folder_holds_only_the_new_files(tmp_path: Path) -> None:
    for name in ("old", "new"):
        with files.new_folder(tmp_path / "best") as folder:
            (folder / name).write_text("")
    assert names(tmp_path / "best") == ["new"]
    assert names(tmp_path) == ["best"]


def test_a_folder_lost_between_two_renames_is_brought_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = tmp_path / "best"
    with files.new_folder(best) as folder:
        (folder / "a").write_text("1")
    rename, calls = Path.rename, []

    def dies_at_the_second(self: Path, target: Path) -> Path:
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt), files.new_folder(best) as folder:
        (folder / "a").write_text("2")
    monkeypatch.undo()
    assert not best.exists()
    files.recover(best)
    assert (best / "a").read_text() == "1"
    assert names(tmp_path) == ["best"]


def test_a_full_disk_keeps_the_former_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    best = tmp_path / "best"
    with files.new_folder(best) as folder:
        (folder / "a").write_text("1")
    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(WriteError, match="best: cannot be written"), files.new_folder(best) as folder:
        (folder / "a").write_text("2")
    assert (best / "a").read_text() == "1"
    assert names(tmp_path) == ["best"]


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    (tmp_path / "inner").mkdir()
    (tmp_path / "model.bin").write_bytes(bytes(range(256)) * 100)
    (tmp_path / "inner" / "state.json").write_text("{}")
    checksums.seal(tmp_path)
    return tmp_path


def test_a_sealed_folder_is_whole(sealed: Path) -> None:
    assert checksums.find_damage(sealed) is None


def test_every_kind_of_damage_is_named(sealed: Path) -> None:
    content = bytearray((sealed / "model.bin").read_bytes())
    content[12_345] ^= 1
    (sealed / "model.bin").write_bytes(content)
    assert checksums.find_damage(sealed) == "model.bin does not have the content that was written"
    (sealed / "model.bin").unlink()
    assert checksums.find_damage(sealed) == "model.bin is missing"
    (sealed / checksums.SEAL).write_text("{")
    assert "is not JSON" in str(checksums.find_damage(sealed))
    (sealed / checksums.SEAL).write_text("[]")
    assert "must be an object" in str(checksums.find_damage(sealed))
    (sealed / checksums.SEAL).unlink()
    assert "interrupted" in str(checksums.find_damage(sealed))


def test_a_file_too_many_is_damage(sealed: Path) -> None:
    (sealed / "extra").write_text("")
    assert checksums.find_damage(sealed) == "extra does not belong to it"
