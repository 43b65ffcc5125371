"""A zip file of a report, its figures, predictions and configurations, and a script that reruns all."""

from __future__ import annotations

import io
import shlex
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from heedful.report.facts import RunFacts, StudyFacts
from heedful.report.page import Page, make_unique
from heedful.runs.answers import ANSWER
from heedful.runs.directory import (
    CHECKS,
    CONFIG,
    ENVIRONMENT,
    METRICS,
    PREDICTIONS,
    RESULTS,
    STUDY,
    TIMING,
    slug,
)
from heedful.runs.files import write_bytes
from heedful.runs.studies import FAILED, PRUNED, RUNS

RUN_FILES = (CONFIG, RESULTS, CHECKS, ENVIRONMENT, METRICS, TIMING, FAILED, PRUNED)
"""The files of a run that are packed, besides its predictions; models and checkpoints are not."""
DATE = (2000, 1, 1, 0, 0, 0)
"""The date of every entry, so that the same content gives the same zip."""
RESERVED = {"figures", "again", "report.html", "reproduce.sh"}


def write_bundle(
    path: Path, page: Page, facts: Sequence[RunFacts | StudyFacts], figures: Mapping[str, bytes]
) -> Path:
    """Write the zip file atomically. `figures` are contents by file name."""
    packed = io.BytesIO()
    top = slug(path.stem)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, content: bytes, mode: int = 0o644) -> None:
            entry = zipfile.ZipInfo(f"{top}/{name}", DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, mode << 16
            archive.writestr(entry, content)

        add("report.html", page.html().encode())
        for name, content in sorted(figures.items()):
            add(f"figures/{name}", content)
        folders: dict[str, RunFacts | StudyFacts] = {}
        for item in facts:
            name = make_unique(slug(item.path.resolve().name), {*folders, *RESERVED})
            folders[name] = item
            for file in list_files(item):
                add(f"{name}/{file.relative_to(item.path).as_posix()}", file.read_bytes())
        add("reproduce.sh", make_script(folders).encode(), 0o755)
    return write_bytes(path, packed.getvalue())


def list_files(item: RunFacts | StudyFacts) -> Iterator[Path]:
    if isinstance(item, RunFacts):
        yield from list_run_files(item.path)
        return
    yield from (file for name in (STUDY, ANSWER) if (file := item.path / name).is_file())
    for folder in sorted((item.path / RUNS).glob("*")):
        if folder.is_dir() and not folder.is_symlink():
            yield from list_run_files(folder)


def list_run_files(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.iterdir()):
        is_packed = file.name in RUN_FILES or PREDICTIONS.fullmatch(file.name)
        if is_packed and file.is_file() and not file.is_symlink():
            yield file


def make_script(folders: Mapping[str, RunFacts | StudyFacts]) -> str:
    """Return the shell script that reruns everything and reports it. Every argument is quoted."""
    lines = [
        "#!/usr/bin/env bash",
        "# Reruns every run and study of this bundle in again/ and writes a report of them.",
        "# Needs heedful; tasks that are given by name are read from $HEEDFUL_DATA, as in the original runs.",
        "set -euo pipefail",
        'cd "$(dirname "$0")"',
        "",
    ]
    outputs = []
    for name, item in folders.items():
        out = f"again/{name}"
        if isinstance(item, RunFacts):
            command: Sequence[str] = ("run", f"{name}/{CONFIG}", "--out", out)
        else:
            command = (*remove_out(item.answer.command or item.record.command), "--out", out)
        lines.append(shlex.join(("heedful", *command)))
        outputs.append(out)
    lines += [shlex.join(("heedful", "report", *outputs, "--out", "again/report.html")), ""]
    return "\n".join(lines)


def remove_out(command: Sequence[str]) -> list[str]:
    remaining: list[str] = []
    arguments = iter(command)
    for argument in arguments:
        if argument == "--out":
            next(arguments, None)
        elif not argument.startswith("--out=") and argument != "--overwrite":
            remaining.append(argument)
    return remaining
