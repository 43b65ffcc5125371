"""What students hand in: a folder, a zip or a Python file each, copied into a fresh folder without tricks."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from heedful.errors import UserError, one_line, shorten

MOST_FILES = 500
MOST_BYTES = 50 * 2**20
LONGEST_PATH = 200
CHUNK = 1 << 16
IGNORED = ("__MACOSX", "__pycache__", ".git", ".ipynb_checkpoints", ".venv", "venv", ".DS_Store")
"""Files and folders that are no part of what a student wrote."""


class RefusedError(Exception):
    """A submission that is not graded, for the reason in the message."""


@dataclass(frozen=True)
class Submission:
    """What one student handed in."""

    name: str
    path: Path


def list_submissions(folder: Path) -> tuple[list[Submission], list[str]]:
    """Return the submissions of a folder by name, and the names of entries that are none."""
    if not folder.is_dir():
        raise UserError(f"{folder}: there is no such folder; it has a folder, zip or .py file per student")
    found: dict[str, Submission] = {}
    others = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in IGNORED:
            continue
        if path.is_symlink() or not (path.is_dir() or path.suffix.lower() in (".zip", ".py")):
            others.append(path.name)
            continue
        name = path.name if path.is_dir() else path.stem
        if name in found:
            raise UserError(f"{folder}: {name} is there twice, as {found[name].path.name} and as {path.name}")
        found[name] = Submission(name, path)
    if not found:
        raise UserError(f"{folder}: no submissions; it has a folder, zip or .py file per student")
    return list(found.values()), others


def copy_submission(source: Path, target: Path) -> None:
    """Copy a submission into an empty folder; what is no ordinary file, or too much, is refused."""
    if source.is_dir():
        entries = walk_folder(source)
    elif source.suffix.lower() == ".zip":
        entries = walk_zip(source)
    else:
        entries = iter([(PurePosixPath(source.name), source.open("rb"))])
    left = MOST_BYTES
    for number, (name, file) in enumerate(entries, 1):
        with file:
            if number > MOST_FILES:
                raise RefusedError(f"it has more than {MOST_FILES} files")
            left = copy_file(file, target / name, left)
    target.chmod(0o755)


def copy_file(file: IO[bytes], target: Path, left: int) -> int:
    """Copy a file, and return how many bytes the next ones may have."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with target.open("xb") as copy:
            while chunk := file.read(CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise RefusedError(f"unpacked it has more than {MOST_BYTES // 2**20} MiB")
                copy.write(chunk)
    except FileExistsError:
        raise RefusedError(f"two of its files have the name {describe(target.name)}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise RefusedError(f"its zip file is damaged or encrypted: {one_line(str(error))}") from None
    except OSError as error:
        raise RefusedError(f"{describe(target.name)} cannot be copied: {error.strerror}") from None
    return left


def walk_folder(folder: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """Yield the files of a folder, without following links."""
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in IGNORED)
        for name in [*folders, *sorted(names)]:
            path = Path(root, name)
            mode = path.lstat().st_mode
            if name in IGNORED or stat.S_ISDIR(mode):
                continue
            relative = PurePosixPath(path.relative_to(folder).as_posix())
            if stat.S_ISLNK(mode):
                raise RefusedError(f"{describe(str(relative))} is a link; hand in files only")
            if not stat.S_ISREG(mode):
                raise RefusedError(f"{describe(str(relative))} is not an ordinary file")
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            yield check_path(str(relative)), os.fdopen(descriptor, "rb")


def walk_zip(path: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """Yield the files of a zip; links, paths that leave it and encrypted files are refused."""
    if path.stat().st_size > MOST_BYTES:
        raise RefusedError(f"its zip file has more than {MOST_BYTES // 2**20} MiB")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if len(entries) > MOST_FILES:
                raise RefusedError(f"it has more than {MOST_FILES} files")
            if sum(entry.file_size for entry in entries) > MOST_BYTES:
                raise RefusedError(f"unpacked it has more than {MOST_BYTES // 2**20} MiB")
            for entry in entries:
                name = check_path(entry.orig_filename)
                kind = stat.S_IFMT(entry.external_attr >> 16)
                if kind == stat.S_IFLNK:
                    raise RefusedError(f"{describe(entry.filename)} is a link; hand in files only")
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise RefusedError(f"{describe(entry.filename)} is not an ordinary file")
                if entry.is_dir() or set(name.parts) & set(IGNORED):
                    continue
                if entry.flag_bits & 1:
                    raise RefusedError("its zip file is encrypted")
                yield name, archive.open(entry)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError, ValueError) as error:
        raise RefusedError(f"its zip file is damaged: {one_line(str(error))}") from None


def check_path(name: str) -> PurePosixPath:
    """Return the path of a file within a submission; one that leaves it is refused."""
    path = PurePosixPath(name.replace("\\", "/"))
    outside = path.is_absolute() or ".." in path.parts or ":" in (path.parts or ("",))[0]
    if outside or not path.parts or "\0" in name:
        raise RefusedError(f"the path {describe(name)} leads out of the submission")
    if len(name.encode(errors="replace")) > LONGEST_PATH:
        raise RefusedError(f"the path {describe(name)} is too long")
    return path


def describe(name: str) -> str:
    return f'"{shorten(one_line(name))}"'


def find_file(folder: Path, name: str) -> Path:
    """Return the file that is graded: by its name, wherever it is, or the only Python file."""
    files = sorted(folder.rglob("*.py"), key=lambda path: (len(path.parts), str(path)))
    named = [path for path in files if path.name == name]
    if not named:
        named = [path for path in files if path.name.lower() == name.lower()]
    shallow = [path for path in named if len(path.parts) == len(named[0].parts)]
    if len(shallow) == 1:
        return shallow[0]
    if shallow:
        where = ", ".join(str(path.relative_to(folder)) for path in shallow[:4])
        raise RefusedError(f"it has more than one {name}: {where}")
    own = [path for path in files if path.name != "adapters.py"]
    if len(own) == 1:
        return own[0]
    has = ", ".join(describe(path.name) for path in sorted(folder.rglob("*")) if path.is_file())
    raise RefusedError(f"there is no {name}" + (f"; it has {shorten(has, 120)}" if has else "; it is empty"))


def hash_folder(folder: Path) -> str:
    """Return a hash of the names and contents of all files."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        name = path.relative_to(folder).as_posix().encode(errors="surrogateescape")
        digest.update(b"%d %d " % (len(name), len(content)) + name + content)
    return digest.hexdigest()
