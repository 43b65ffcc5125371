"""The list of runs without a browser: what is read again, and which commands are started."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests import made_runs

from heedful.runs import Run
from heedful.runs.processes import process_name
from heedful.runs.schemas import Metrics
from heedful.runs.studies import StudyFolder, StudyRecord
from heedful.studio.children import Children
from heedful.studio.folder import StudioFolder
from heedful.studio.listing.scanner import Scanner


def copy_run(source: Path, target: Path) -> None:
    """Copy a run without its predictions and weights."""
    target.mkdir()
    for name in ("config.toml", "results.json", "checks.json", "metrics.jsonl"):
        shutil.copy(source / name, target / name)


def test_a_second_look_reads_nothing_that_has_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heedful.studio.listing import folders, run_reader

    monkeypatch.setattr(folders, "SETTLED_NS", 0)
    first = made_runs.write_run(tmp_path / "run-0", n=10)
    for i in range(1, 20):
        copy_run(first, tmp_path / f"run-{i}")
    folder = StudioFolder.open(tmp_path)
    scanner = Scanner(folder, Children(folder))
    assert len(list(scanner.scan())) == 20
    reads: list[Path] = []
    original = run_reader.RunReader.read

    def read(self: Any, listing: Any, changed: float) -> Any:
        reads.append(self.folder)
        return original(self, listing, changed)

    monkeypatch.setattr(run_reader.RunReader, "read", read)
    assert list(scanner.scan()) == []
    assert reads == []
    results = Run(tmp_path / "run-7").read_results()
    Run(tmp_path / "run-7").write_results(replace(results, seconds=1.0))
    shutil.rmtree(tmp_path / "run-8")
    changes = list(scanner.scan())
    assert [getattr(change, "seconds", change) for change in changes] == [1.0, "run-8"]
    assert reads == [tmp_path / "run-7"]


def test_only_what_is_appended_to_the_metrics_is_read(tmp_path: Path) -> None:
    from heedful.studio.listing.files import Files

    run = Run(tmp_path)
    files = Files(tmp_path)
    with run.metrics_log() as log:
        log.append(Metrics(1, 1.0, "dev", 0.5, 0.6))
    assert files.read_curve() == [0.6]
    with (tmp_path / "metrics.jsonl").open("a") as rows:
        rows.write('{"step": 2, "epoch": 2.0, "split": "train", "value": 0.9}\n{"step": 2, "epo')
    assert files.read_curve() == [0.6]
    with (tmp_path / "metrics.jsonl").open("a") as rows:
        rows.write('ch": 2.0, "split": "dev", "value": 0.7}\n')
    assert files.read_curve() == [0.6, 0.7]
    with run.metrics_log() as log:  # the run is begun anew
        log.append(Metrics(1, 1.0, "dev", 0.5, 0.1))
    assert files.read_curve() == [0.1]


def test_a_planted_command_is_not_started(tmp_path: Path) -> None:
    from heedful.errors import UserError
    from heedful.studio import control

    study = tmp_path / "study"
    (study / "runs").mkdir(parents=True)
    folder = StudioFolder.open(tmp_path)
    for command in (("data", "make", "/tmp/x"), ("study", "labels", "x"), ("solve",), ()):
        StudyFolder(study).write(StudyRecord("search", "?", 0, {}, (), command))
        with pytest.raises(UserError, match="no command that continues it"):
            control.resume(folder, Children(folder), "study")
    words = ("study", "search", "minilm", "x", "--out=/elsewhere", "--overwrite", "--on=slurm", "--seed=3")
    StudyFolder(study).write(StudyRecord("search", "?", 0, {}, (), words))
    assert control.continue_study(study, "study") == (*words[:4], "--seed=3", f"--out={study}")


def test_a_command_goes_on_without_the_studio_and_is_found_again(tmp_path: Path) -> None:
    folder = StudioFolder.open(tmp_path)
    children = Children(folder)
    child = children.start("runs/x", ("no-such-command",))
    end = time.monotonic() + 60
    while child.runs:
        assert time.monotonic() < end
        time.sleep(0.05)
    children.started["runs/x"].wait()
    assert 'unknown command "no-such-command"' in children.find_failure("runs/x")
    again = Children(folder)
    assert again.known["runs/x"] == child
    assert again.read_log(child) == children.read_log(child)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert replace(child, process=process_name(process.pid)).runs
        process.kill()
