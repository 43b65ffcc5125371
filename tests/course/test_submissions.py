"""What students hand in is copied without tricks."""

from __future__ import annotations

import os
import stat
import struct
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from heedful.course import submissions
from heedful.course.submissions import RefusedError, copy_submission, find_file, list_submissions
from heedful.errors import UserError


def pack(tmp_path: Path, files: dict[str, bytes], mode: int | None = None) -> Path:
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            if mode is not None:
                entry.external_attr = mode << 16
            archive.writestr(entry, content)
    return path


def copy(source: Path, tmp_path: Path) -> Path:
    target = tmp_path / "target"
    target.mkdir()
    copy_submission(source, target)
    return target


@pytest.mark.parametrize(
    "name", ["../x.py", "/etc/x.py", "a/../../x.py", "..\\x.py", "C:\\x.py", "a/" * 101 + "x.py"]
)
def test_a_path_that_leaves_the_submission_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(RefusedError, match=r"leads out of the submission|too long"):
        copy(pack(tmp_path, {name: b"x"}), tmp_path)
    assert not (tmp_path / "x.py").exists()


@pytest.mark.parametrize("mode", [stat.S_IFLNK | 0o777, stat.S_IFIFO | 0o644, stat.S_IFCHR | 0o644])
def test_links_and_devices_in_a_zip_are_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(RefusedError, match=r"is a link|not an ordinary file"):
        copy(pack(tmp_path, {"attention.py": b"/etc/passwd"}, mode), tmp_path)


def test_a_zip_that_is_larger_than_it_says_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submissions, "MOST_BYTES", 2**20)
    path = pack(tmp_path, {"attention.py": bytes(2**21)})
    with pytest.raises(RefusedError, match="more than 1 MiB"):
        copy(path, tmp_path)
    data = bytearray(path.read_bytes())
    for signature, place in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        data[data.index(signature) + place : data.index(signature) + place + 4] = struct.pack("<I", 100)
    path.write_bytes(data)
    (tmp_path / "target").rmdir()
    with pytest.raises(RefusedError, match=r"damaged|more than 1 MiB"):
        copy(path, tmp_path)


def test_too_many_files_two_of_one_name_and_damage_are_refused(tmp_path: Path) -> None:
    many = pack(tmp_path, {f"{i}.py": b"" for i in range(501)})
    with pytest.raises(RefusedError, match="more than 500 files"):
        copy(many, tmp_path)
    (tmp_path / "target").rmdir()
    (tmp_path / "s.zip").write_bytes(b"PK\x03\x04 no zip")
    with pytest.raises(RefusedError, match="damaged"):
        copy(tmp_path / "s.zip", tmp_path)
    (tmp_path / "target").rmdir()
    memory = BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("a.py", "1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a.py", "2")
    (tmp_path / "s.zip").write_bytes(memory.getvalue())
    with pytest.raises(RefusedError, match=r'two of its files have the name "a.py"'):
        copy(tmp_path / "s.zip", tmp_path)


def test_links_and_pipes_in_a_folder_are_refused_and_nothing_waits_for_them(tmp_path: Path) -> None:
    folder = tmp_path / "ada"
    folder.mkdir()
    (folder / "attention.py").symlink_to("/etc/passwd")
    with pytest.raises(RefusedError, match="is a link"):
        copy(folder, tmp_path)
    (folder / "attention.py").unlink()
    os.mkfifo(folder / "attention.py")
    (tmp_path / "target").rmdir()
    with pytest.raises(RefusedError, match="not an ordinary file"):
        copy(folder, tmp_path)
    (folder / "attention.py").unlink()
    (folder / "data").symlink_to(tmp_path)
    (tmp_path / "target").rmdir()
    with pytest.raises(RefusedError, match="is a link"):
        copy(folder, tmp_path)


def test_the_file_is_found_wherever_it_is(tmp_path: Path) -> None:
    source = pack(
        tmp_path, {"a1/attention.py": b"x = 1", "a1/answers.md": b"", "__MACOSX/a1/._attention.py": b"no"}
    )
    target = copy(source, tmp_path)
    assert find_file(target, "attention.py").read_text() == "x = 1"
    assert not (target / "__MACOSX").exists()
    (target / "b").mkdir()
    (target / "b" / "attention.py").write_text("x = 2")
    with pytest.raises(RefusedError, match=r"more than one attention.py: a1/attention.py, b/attention.py"):
        find_file(target, "attention.py")
    assert find_file(target / "b", "other.py").name == "attention.py"
    (tmp_path / "empty").mkdir()
    with pytest.raises(RefusedError, match=r"there is no attention\.py; it is empty"):
        find_file(tmp_path / "empty", "attention.py")


def test_a_folder_of_submissions(tmp_path: Path) -> None:
    (tmp_path / "ada").mkdir()
    (tmp_path / "bob.zip").write_bytes(b"")
    (tmp_path / "eve.py").write_text("")
    (tmp_path / "list.csv").write_text("")
    (tmp_path / ".DS_Store").write_text("")
    found, others = list_submissions(tmp_path)
    assert [s.name for s in found] == ["ada", "bob", "eve"]
    assert others == ["list.csv"]
    (tmp_path / "ada.zip").write_bytes(b"")
    with pytest.raises(UserError, match=r"ada is there twice, as ada and as ada\.zip"):
        list_submissions(tmp_path)
    with pytest.raises(UserError, match="no submissions"):
        list_submissions(tmp_path / "ada")
