"""Folders with one folder per class: `pos/*.txt` and `neg/*.txt`, or `train/pos/*.txt` and so on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heedful.data import cache
from heedful.data.names import find_split
from heedful.data.notices import notify
from heedful.data.text_files import WESTERN, WESTERN_TITLE, decode_text

TEXTS = (".txt", ".text")
UNLABELED = ("unsup", "unsupervised", "unlabeled", "unlabelled")


def find_class_folders(folder: Path) -> dict[str, Path]:
    """Return the folder of each split whose folders are classes; all rows are "train" if there are no splits.

    The dict is empty if the folder is something else.
    """
    try:
        children = sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return {}
    splits = {split: path for path in children if (split := find_split(path.name)) and list_classes(path)}
    if "train" in splits:
        return splits
    return {"train": folder} if len(list_classes(folder)) > 1 else {}


def list_classes(folder: Path) -> list[Path]:
    """Return the folders that are classes, each with texts in it."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.is_dir() and path.name.lower() not in UNLABELED and next(list_texts(path), None) is not None
    )


def list_texts(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.suffix.lower() in TEXTS and path.is_file())


def list_class_files(folder: Path) -> list[Path]:
    return [path for label in list_classes(folder) for path in sorted(list_texts(label))]


def read_class_folder(folder: Path) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield (number, (text, label)) of every file, by class and name; a whole file is one text."""
    western = 0
    for number, path in enumerate(list_class_files(folder), start=1):
        text, encoding = decode_text(path.read_bytes())
        western += encoding == WESTERN
        yield number, (text.strip(), path.parent.name)
    if western:
        notify(f"{folder}: {western:,} files are not UTF-8 and are read as {WESTERN_TITLE}")


def hash_class_folder(folder: Path) -> str:
    files = list_class_files(folder)
    return cache.digest("folder", [[f"{p.parent.name}/{p.name}", cache.hash_content(p)] for p in files])


def report_unread_files(folder: Path) -> None:
    """Mention folders and files beside the classes that are not read."""
    read = {path.name for path in list_classes(folder)}
    others = sorted(path.name for path in folder.iterdir() if path.is_dir() and path.name not in read)
    if others:
        notify(f"{folder}: not read, because without labels or texts: {', '.join(others[:5])}")
