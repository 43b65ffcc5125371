"""Everything in one zip: report, figures, predictions, configurations, and a script that reruns all."""

from __future__ import annotations

import io
import shlex
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from heedful.report.page import Page, unused
from heedful.report.reading import RunFacts, StudyFacts
from heedful.runs.answers import ANSWER
from heedful.runs.directory import CHECKS, CONFIG, ENVIRONMENT, METRICS, PREDICTIONS, RESULTS, TIMING, slug
from heedful.runs.files import write_bytes
from heedful.runs.studies import FAILED, PRUNED, RUNS, STUDY

SMALL = (CONFIG, RESULTS, CHECKS, ENVIRONMENT, METRICS, TIMING, FAILED, PRUNED)
"""What of a run is packed, with its predictions; models and checkpoints are not."""
DATE = (2000, 1, 1, 0, 0, 0)
"""Of every entry: a zip needs one, and when it was packed says nothing."""


def write_bundle(
    path: Path, page: Page, items: Sequence[RunFacts | StudyFacts], figures: Mapping[str, bytes]
) -> Path:
    """Write the zip; it appears when it is complete. `figures` are files by their names."""
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
        named = names(items)
        for name, item in named.items():
            for file in own_files(item):
                add(f"{name}/{file.relative_to(item.path).as_posix()}", file.read_bytes())
        add("reproduce.sh", script(named).encode(), 0o755)
    return write_bytes(path, packed.getvalue())


def names(items: Sequence[RunFacts | StudyFacts]) -> dict[str, RunFacts | StudyFacts]:
    """Give each run and study a folder in the zip, of harmless letters only."""
    found: dict[str, RunFacts | StudyFacts] = {}
    for item in items:
        found[
            unused(
                slug(item.path.resolve().name), {*found, "figures", "again", "report.html", "reproduce.sh"}
            )
        ] = item
    return found


def own_files(item: RunFacts | StudyFacts) -> Iterator[Path]:
    """List the small files of a run, or of a study and its runs."""
    if isinstance(item, RunFacts):
        yield from run_files(item.path)
        return
    yield from (file for name in (STUDY, ANSWER) if (file := item.path / name).is_file())
    for folder in sorted((item.path / RUNS).glob("*")):
        if folder.is_dir() and not folder.is_symlink():
            yield from run_files(folder)


def run_files(folder: Path) -> Iterator[Path]:
    """List the small files of one run."""
    for file in sorted(folder.iterdir()):
        packed = file.name in SMALL or PREDICTIONS.fullmatch(file.name)
        if packed and file.is_file() and not file.is_symlink():
            yield file


def script(named: Mapping[str, RunFacts | StudyFacts]) -> str:
    """Write the shell script that makes everything again, and the report of it. Every word is quoted."""
    lines = [
        "#!/usr/bin/env bash",
        "# Makes every run and study of this bundle again, below again/, and the report of them.",
        "# Needs heedful; named tasks are looked for in $HEEDFUL_DATA, as when they were made.",
        "set -euo pipefail",
        'cd "$(dirname "$0")"',
        "",
    ]
    again = []
    for name, item in named.items():
        out = f"again/{name}"
        if isinstance(item, RunFacts):
            command: Sequence[str] = ("run", f"{name}/{CONFIG}", "--out", out)
        else:
            command = (*without_out(item.answer.command or item.record.command), "--out", out)
        lines.append(shlex.join(("heedful", *command)))
        again.append(out)
    lines += [shlex.join(("heedful", "report", *again, "--out", "again/report.html")), ""]
    return "\n".join(lines)


def without_out(command: Sequence[str]) -> list[str]:
    """Leave out where a study was put, and that it replaced another."""
    kept: list[str] = []
    words = iter(command)
    for word in words:
        if word == "--out":
            next(words, None)
        elif not word.startswith("--out=") and word != "--overwrite":
            kept.append(word)
    return kept
