"""`--on slurm` and `heedful jobs` where there is no Slurm: scripts, settings, and one line about what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.runs import Run

ADAPT = ["adapt", "minilm", "world/reviews", "--on", "slurm"]


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without Slurm, and without the user's own settings."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bash").symlink_to("/bin/bash")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("command", [
    ADAPT, ["jobs"], ["jobs", "cancel", "12"], ["jobs", "nodes"],
    ["pretrain", "gpt-micro", "world/sentences", "--tokenizer", "bpe", "--on", "slurm"],
])  # fmt: skip
def test_without_slurm_a_line_says_so(
    heedful: Callable[..., Any], command: list[str], tmp_path: Path
) -> None:
    done = heedful(*command)
    assert done.status == 2
    assert "Slurm is not installed here" in done.err
    assert done.err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin"]


def test_a_dry_run_needs_no_slurm_and_writes_nothing(heedful: Callable[..., Any], tmp_path: Path) -> None:
    done = heedful(*ADAPT, "--dry-run", "--method", "lora", "--epochs", "5", "--gpus", "1")
    assert done.status == 0, done.err
    assert "#SBATCH --gres=gpu:1\n" in done.out
    assert "# --resume: begins the run, and continues it when the job is requeued.\n" in done.out
    out = tmp_path / "runs" / "reviews-minilm-lora-s0"
    assert "-m heedful adapt minilm world/reviews --epochs=5 " in done.out
    assert all(flag in done.out for flag in (f" --out={out}", " --resume", " --method=lora"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin"]
    facts = json.loads(
        heedful(*ADAPT, "--dry-run", "--method", "lora", "--epochs", "5", "--gpus", "1", "--json").out
    )
    assert facts == {"folder": str(out), "script": done.out}


def test_the_next_free_name_is_taken(heedful: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "runs" / "reviews-minilm-full-s0").mkdir(parents=True)
    assert "runs/reviews-minilm-full-s0-2 --resume" in heedful(*ADAPT, "--dry-run").out


def test_a_job_goes_on_with_the_last_run_of_its_name(heedful: Callable[..., Any], tmp_path: Path) -> None:
    told = heedful(*ADAPT, "--dry-run", "--resume")
    assert told.status == 2
    assert "there is no runs/reviews-minilm-full-s0 to go on with" in told.err
    Run.create(tmp_path / "runs" / "reviews-minilm-full-s0").write_config({"command": "adapt"})
    assert "runs/reviews-minilm-full-s0 --resume" in heedful(*ADAPT, "--dry-run", "--resume").out


def test_site_settings_come_from_the_files(heedful: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "home" / "heedful").mkdir(parents=True)
    (tmp_path / "home" / "heedful" / "heedful.toml").write_text(
        '[slurm]\npartition = "home"\naccount = "mine"\nsetup = ["module load python"]\nmax_requeues = 3\n'
    )
    (tmp_path / "heedful.toml").write_text(
        '[adapt]\nepochs = 7\n\n[slurm]\npartition = "near"\nslurm = ["mail-type=END"]\n'
    )
    script = heedful(*ADAPT, "--dry-run", "--cpus", "2").out
    for line in ("--partition=near", "--account=mine", "--cpus-per-task=2", "--mail-type=END"):
        assert f"#SBATCH {line}\n" in script
    assert "eval 'module load python' || exit\n" in script
    assert "HEEDFUL_MAX_REQUEUES=3\n" in script
    assert "--epochs=7" in script  # settled now: the job reads no heedful.toml
    assert "HEEDFUL_TOML=none" in script
    assert "--partition=flag" in heedful(*ADAPT, "--dry-run", "--partition", "flag").out
    assert heedful("list", "attentions").status == 0


def test_the_table_of_a_file_is_for_jobs_alone(heedful: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "heedful.toml").write_text("[slurm]\npartition = 3\n")
    assert heedful("list", "attentions").status == 0
    done = heedful(*ADAPT, "--dry-run")
    assert done.status == 2
    assert "heedful.toml: [slurm] partition 3: must be text" in done.err


@pytest.mark.parametrize(("flags", "words"), [
    (["--partition", "x"], "--partition belongs to --on slurm"),
    (["--dry-run"], "--dry-run belongs to --on slurm"),
    (["--on", "slrum"], "slurm"),
    (["--on", "slurm", "--method", "lorra"], 'did you mean "lora"'),
    (["--on", "slurm", "--slurm", "nonsense value"], "must be key=value"),
    (["--on", "slurm", "--out", "full"], "--resume continues the run there"),
    (["--on", "slurm", "--out", "full", "--resume"], "contains files but no run"),
    (["--on", "slurm", "--out", "100%"], "in its own way"),
])  # fmt: skip
def test_mistakes_are_found_before_anything_is_queued(
    heedful: Callable[..., Any], tmp_path: Path, flags: list[str], words: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.md").write_text("mine")
    done = heedful("adapt", "minilm", "world/reviews", *flags)
    assert done.status == 2
    assert words in done.err
    assert done.err.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin", "full"]


def test_an_evaluation_names_the_run_and_is_not_requeued(
    heedful: Callable[..., Any], run_of: Callable[[str], Path]
) -> None:
    done = heedful("evaluate", run_of("lora"), "--split", "dev", "--on", "slurm", "--dry-run")
    assert f"heedful evaluate {run_of('lora')} --split=dev\n" in done.out
    assert "--requeue" not in done.out
    assert not (run_of("lora") / "jobs").exists()


def test_jobs_are_shown_from_their_folders_where_slurm_is_not(
    heedful: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    submitted = {"job": "12", "command": ["heedful"], "cwd": "/", "submitted": "2026-01-01T00:00:00+00:00"}
    (folder / "job.json").write_text(json.dumps(submitted))
    (folder / "ended.json").write_text(
        json.dumps({"job": "12", "status": 2, "message": "no \x1b[31m such file"})
    )
    done = heedful("jobs")
    assert done.status == 0
    assert "showing only what the folders of the jobs say" in done.err
    assert "\x1b" not in done.out
    (job,) = json.loads(heedful("jobs", "runs", "--json").out)
    assert (job["state"], job["tasks"][0]["status"]) == ("failed", 2)
    assert job["folder"] == str(folder)


@pytest.mark.parametrize("command", [[], ["cancel"], ["nodes"]])
def test_each_command_has_examples(heedful: Callable[..., Any], command: list[str]) -> None:
    assert "Example" in heedful("jobs", *command, "--help").out


def test_a_study_is_an_array_with_no_more_workers_than_runs(
    heedful: Callable[..., Any], tmp_path: Path
) -> None:
    told = ["study", "search", "minilm", "world/reviews", "--epochs", "1", "--on", "slurm"]
    grid = [*told, "--lr", "1e-4,1e-3"]
    done = heedful(*grid, "--dry-run", "--cpus", "2", "--threads", "2")
    assert "#SBATCH --array=0-1\n" in done.out
    assert f"heedful study worker {tmp_path}/studies/search-reviews-minilm --threads=2\n" in done.out
    assert (
        "#SBATCH --array=0-2\n"
        in heedful(*told, "--lr", "1e-4:1e-3", "--tpe", "9", "--max-parallel", "3", "--dry-run").out
    )
    facts = json.loads(heedful(*grid, "--dry-run", "--cpus", "2", "--threads", "2", "--json").out)
    assert facts["script"] == done.out
    both = heedful(*grid, "--jobs", "2")
    assert both.status == 2
    assert "--max-parallel" in both.err
    without = heedful(*grid)
    assert without.status == 2
    assert "Slurm is not installed here" in without.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin"]
