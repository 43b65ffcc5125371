from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.runs import (
    Check,
    Checks,
    Metrics,
    Prediction,
    Results,
    Run,
    SplitResult,
    Timing,
    environment,
    new_run_path,
)
from heedful.runs.directory import last_run_path

RESULTS = Results(
    task="boolq",
    model="minilm",
    method="head",
    head="linear",
    seed=3,
    splits={
        "dev": SplitResult(
            "accuracy",
            0.7123456789012345,
            3,
            (0.1, 1.0),
            loss=0.5,
            macro_f1=0.6,
            confusion=((1, 1), (0, 1)),
            predicted_counts={"yes": 1, "no": 2},
            baselines={"chance": 0.5},
        )
    },
    trainable_parameters=770,
    total_parameters=22_713_216,
    seconds=12.5,
    labels=("yes", "no"),
)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    made = Run.create(tmp_path / "run")
    made.write_config({"lr": 5e-5, "task": "boolq"})
    return made


def test_everything_that_is_written_reads_back_equal(run: Run) -> None:
    checks = Checks(
        (Check("collapse", "failed", "All 3 predictions are yes.", value=1.0), Check("a", "passed", "b"))
    )
    here = environment(threads=2, device="cpu")
    predictions = [Prediction("1", "yes", "no", {"yes": 0.25, "no": 0.75}, text="</script>\n\x1b[31m")]
    run.write_results(RESULTS)
    run.write_checks(checks)
    run.write_environment(here)
    run.write_predictions("test", predictions)
    with run.metrics_log() as log, run.timing_log() as timing:
        log.append(Metrics(step=10, epoch=0.5, split="train", loss=0.1, lr=1e-5, losses={"masked": 2.0}))
        timing.append(Timing(step=10, seconds=1.5))
    again = Run.open(run.path)
    assert again.read_config() == {"lr": 5e-5, "task": "boolq"}
    assert again.read_results() == RESULTS
    assert again.read_checks() == checks
    assert again.read_environment() == here
    assert again.read_predictions("test") == predictions
    assert again.read_metrics() == [Metrics(10, 0.5, "train", 0.1, lr=1e-5, losses={"masked": 2.0})]
    assert again.read_timing() == [Timing(10, 1.5)]
    assert checks.worst() == "failed"


def test_predictions_that_fail_half_way_leave_the_former_ones(run: Run) -> None:
    former = [Prediction("1", "yes", "no")]
    run.write_predictions("dev", former)

    def half() -> Iterator[Prediction]:
        yield Prediction("2", "no", "no")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        run.write_predictions("dev", half())
    assert run.read_predictions("dev") == former
    assert sorted(entry.name for entry in run.path.iterdir()) == ["config.toml", "predictions_dev.jsonl"]


def test_a_number_that_is_not_finite_reads_back_as_none(run: Run) -> None:
    lost = SplitResult("perplexity", float("inf"), 10, (1.0, float("inf")), loss=float("nan"))
    run.write_results(replace(RESULTS, splits={"dev": lost}))
    assert run.read_results().splits["dev"] == SplitResult("perplexity", None, 10, (1.0, None))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "three"}, 'results.json: field "seed" is text; it must be a whole number'),
        ({"seed": True}, 'results.json: field "seed" is true or false; it must be a whole number'),
        ({"splits": []}, 'results.json: field "splits" is an array; it must be an object'),
        ({"splits": {"dev": {"metric": "accuracy"}}}, 'field "splits[...].n" is missing'),
        ({"labels": ["yes", 2]}, 'field "labels[1]" is a whole number; it must be text'),
    ],
)
def test_a_wrong_field_is_named(run: Run, change: dict[str, object], message: str) -> None:
    run.write_results(RESULTS)
    path = run.path / "results.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError) as told:
        run.read_results()
    assert message in str(told.value)


def test_a_missing_field_is_named_and_an_unknown_one_ignored(run: Run) -> None:
    run.write_results(RESULTS)
    path = run.path / "results.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "of a later version": 1}))
    assert run.read_results() == RESULTS
    del data["task"]
    path.write_text(json.dumps(data))
    with pytest.raises(UserError, match=r'results\.json: field "task" is missing'):
        run.read_results()


def test_a_damaged_row_is_named_by_its_line(run: Run) -> None:
    (run.path / "metrics.jsonl").write_text('{"step": 1, "epoch": 1, "split": "dev"}\n{"step": 2}\n')
    with pytest.raises(UserError, match=r'metrics\.jsonl line 2: field "epoch" is missing'):
        run.read_metrics()


def test_a_run_without_results_has_not_finished(run: Run) -> None:
    assert not run.has_results
    with pytest.raises(UserError, match="has not finished"):
        run.read_results()


def test_a_folder_with_a_run_is_neither_mixed_nor_replaced_by_accident(run: Run) -> None:
    with pytest.raises(
        UserError, match="is not empty; --resume continues the run there, --overwrite replaces"
    ):
        Run.create(run.path)
    with pytest.raises(UserError, match="exclude each other"):
        Run.create(run.path, overwrite=True, resume=True)
    assert Run.create(run.path, resume=True).read_config()["lr"] == 5e-5


def test_overwriting_removes_the_run_and_nothing_else(run: Run) -> None:
    run.write_results(RESULTS)
    run.write_predictions("dev", [])
    (run.best / "inner").mkdir(parents=True)
    (run.path / "notes.txt").write_text("mine")
    Run.create(run.path, overwrite=True)
    assert [entry.name for entry in run.path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("how", ["overwrite", "resume"])
def test_a_folder_that_is_no_run_is_never_touched(tmp_path: Path, how: str) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match=r"contains files but no run \(config.toml is missing\)"):
        Run.create(tmp_path, **{how: True})
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_resuming_cleans_up_after_a_kill_and_starts_when_nothing_is_there(run: Run, tmp_path: Path) -> None:
    (run.path / ".results.json.77-abcd.tmp").write_text("{")
    (run.checkpoints / ".step-7.77-abcd.tmp").mkdir(parents=True)
    (run.path / ".best.former").mkdir()
    (run.path / ".best.former" / "model").write_text("")
    Run.create(run.path, resume=True)
    assert sorted(entry.name for entry in run.path.iterdir()) == ["best", "checkpoints", "config.toml"]
    assert list(run.checkpoints.iterdir()) == []
    assert Run.create(tmp_path / "new", resume=True).path.is_dir()


def test_a_run_killed_before_its_configuration_was_written_can_be_started_again(tmp_path: Path) -> None:
    (tmp_path / ".config.toml.1-a.tmp").write_text("")
    (tmp_path / "log.txt").write_text("")
    Run.create(tmp_path, resume=True)


def test_a_file_or_nothing_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file; a run needs a folder"):
        Run.create(tmp_path / "file")
    with pytest.raises(UserError, match="there is no such folder"):
        Run.open(tmp_path / "nowhere")
    with pytest.raises(UserError, match="is not a run"):
        Run.open(tmp_path)


def test_runs_get_names_that_are_free_and_harmless(tmp_path: Path) -> None:
    names = [new_run_path(tmp_path, "sst2", "google/bert_u L-2", "full", 0).name for _ in range(3)]
    assert names == ["sst2-bert_u-L-2-full-s0", "sst2-bert_u-L-2-full-s0-2", "sst2-bert_u-L-2-full-s0-3"]
    assert last_run_path(tmp_path, "sst2", "google/bert_u L-2", "full", 0) == tmp_path / names[2]
    (tmp_path / names[0]).rmdir()
    (tmp_path / f"{names[0]}-old").mkdir()
    assert last_run_path(tmp_path, "sst2", "google/bert_u L-2", "full", 0) == tmp_path / names[2]
    assert last_run_path(tmp_path, "sst2", "google/bert_u L-2", "full", 1) is None
    hostile = new_run_path(tmp_path, "../../etc/..", "\x1b[31m$(rm -rf ~)", "…", 1)
    assert hostile.parent == tmp_path
    assert hostile.name == "etc-31m-rm-rf-unnamed-s1"


def test_the_environment_names_versions_but_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_very_secret")
    found = environment()
    assert found.packages["torch"].split(".")[0].isdigit()
    assert found.cores >= 1
    assert "hf_very_secret" not in repr(found)


def test_runs_and_reports_never_import_torch() -> None:
    program = (
        "import sys, heedful.runs, heedful.report.charts, heedful.report.page; heedful.runs.environment();"
        "sys.exit('torch' in sys.modules or 'altair' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], env=os.environ, check=False).returncode == 0


@pytest.mark.skipif(
    platform.libc_ver()[0] != "glibc", reason="other C libraries cannot be asked to give back"
)
def test_memory_that_one_run_freed_is_not_the_peak_of_the_next() -> None:
    code = """
import numpy as np
from heedful.runs.environment import forget_peak_memory, peak_memory_gb
pieces = [np.ones(12_500) for _ in range(3_000)]  # 0.3 GB, small enough that the C library would keep them
last = pieces.pop()
del pieces
before = peak_memory_gb()
forget_peak_memory()
print(before - peak_memory_gb())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 0.25
