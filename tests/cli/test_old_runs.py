"""Runs and studies that an earlier version wrote are read by every command, and continued."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.numpy import load_file

Command = Callable[..., Any]
SOURCE = Path(__file__).parents[1] / "old_runs"
PLACEHOLDER = b"@OLD_RUNS@"
COMMANDS = json.loads((SOURCE / "commands.json").read_text())
CLOSE = 1e-3
"""Training goes on for some dozens of steps on what may be another processor than the one it began on."""


def copy(source: Path, target: Path, path: Path) -> None:
    """Copy a folder; in its files, `path` replaces the placeholder of the folder that all are in."""
    shutil.copytree(source, target)
    for file in target.rglob("*"):
        if file.is_file() and PLACEHOLDER in file.read_bytes():
            file.write_bytes(file.read_bytes().replace(PLACEHOLDER, os.fsencode(path)))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all of them; nobody may write into it."""
    folder = tmp_path_factory.mktemp("old") / "runs"
    copy(SOURCE, folder, folder)
    return folder


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of one's own to write into, as the current folder."""
    copy(SOURCE, tmp_path / "own", tmp_path / "own")
    monkeypatch.chdir(tmp_path / "own")
    return tmp_path / "own"


def read_rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("name", ["full", "lora", "head"])
def test_predict_gives_the_probabilities_that_were_stored(
    heedful: Command, old: Path, tmp_path: Path, name: str
) -> None:
    stored = read_rows(old / name / "predictions_dev.jsonl")
    assert {row["label"] for row in stored} == {"no", "yes"}
    done = heedful("predict", old / name, "--in", old / "task/dev.csv", "--text-column", "text", "--out", tmp_path / "p.jsonl")  # fmt: skip
    assert done.status == 0, done.err
    found = read_rows(tmp_path / "p.jsonl")
    for row, before in zip(found, stored, strict=True):
        assert row["predicted_label"] == before["predicted"]
        assert row["predicted_confidence"] == pytest.approx(
            before["probabilities"][before["predicted"]], abs=1e-5
        )
    one = json.loads(heedful("predict", old / name, stored[0]["text"], "--json").out)
    assert one["label"] == stored[0]["predicted"]


@pytest.mark.parametrize("name", ["full", "lora", "head", "pretrain", "search/runs/lr=0.02,epochs=8"])
def test_evaluate_gives_the_scores_that_were_stored(heedful: Command, old: Path, name: str) -> None:
    splits = json.loads((old / name / "results.json").read_text())["splits"]
    for split, stored in splits.items():
        done = heedful("evaluate", old / name, "--split", split, "--json")
        assert done.status == 0, done.err
        found = json.loads(done.out)
        found = found["splits"][split] if name == "pretrain" else found
        assert (found["metric"], found["n"]) == (stored["metric"], stored["n"])
        assert found["value"] == pytest.approx(stored["value"], rel=1e-5)
        assert found["loss"] == pytest.approx(stored["loss"], rel=1e-5)


def test_generate_writes_what_the_model_wrote_then(heedful: Command, old: Path) -> None:
    stored = json.loads((old / "generated.json").read_text())["texts"][0]
    done = heedful(
        "generate", old / "pretrain", stored["prompt"], "--temperature", 0, "--max-tokens", 8, "--json"
    )
    assert done.status == 0, done.err
    found = json.loads(done.out)["texts"][0]
    assert (found["text"], found["tokens"], found["stopped"]) == (stored["text"], 4, "stop")
    assert found["log_probability"] == pytest.approx(stored["log_probability"], rel=1e-5)


def test_report_shows_every_kind(heedful: Command, old: Path, tmp_path: Path) -> None:
    for number, names in enumerate([["full", "lora", "head", "search"], ["pretrain"]]):
        page, text = tmp_path / f"{number}.html", tmp_path / f"{number}.md"
        folders = [old / name for name in names]
        done = heedful("report", *folders, "--out", page, "--markdown", text, "--json")
        assert done.status == 0, done.err
        assert json.loads(done.out)["summary"]
        assert page.read_text().startswith("<!DOCTYPE html>")
    for name in ("full", "lora", "head"):
        test = json.loads((old / name / "results.json").read_text())["splits"]["test"]
        assert f"{test['value']:.3f}" in (tmp_path / "0.md").read_text()
    assert "0.920" in (tmp_path / "0.md").read_text()  # the best of the search


def test_study_show_tells_the_runs_and_the_answer(heedful: Command, old: Path) -> None:
    done = heedful("study", "show", old / "search", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert [run["state"] for run in found["runs"]] == ["finished"] * 4
    assert found["answer"]["finished"]
    assert "0.920" in heedful("study", "show", old / "search").out
    half = json.loads(heedful("study", "show", old / "half-search", "--json").out)
    assert [run["state"] == "finished" for run in half["runs"]] == [True, False, False, False]


@pytest.mark.parametrize("name", ["full", "lora", "head", "pretrain"])
def test_check_examines_it_again_and_a_finished_run_is_not_trained_again(
    heedful: Command, own: Path, name: str
) -> None:
    done = heedful("check", name, "--json")
    assert done.status in (0, 1), done.err  # 1: it was worse than a bag of words, or gave one answer
    again = {c["name"]: c["status"] for c in json.loads(done.out)["checks"] if c["again"]}
    assert again["reload"] == "passed"
    before = {
        p: p.read_bytes() for p in (own / name).rglob("*") if p.is_file() and "checkpoints" not in p.parts
    }
    done = heedful(*COMMANDS[name], "--out", name, "--resume")
    assert done.status == 0, done.err
    assert {p: p.read_bytes() for p in before} == before


@pytest.mark.parametrize("name", ["full", "lora", "pretrain"])
def test_a_half_finished_run_continues_and_ends_as_the_whole_one_did(
    heedful: Command, own: Path, name: str
) -> None:
    half = own / f"half-{name}"
    rows = (half / "metrics.jsonl").read_text()
    mark = rows.replace('"n": ', '"n":1', 1)  # a run that starts anew would write the row without it
    assert len(mark) == len(rows)
    (half / "metrics.jsonl").write_text(mark)
    done = heedful(*COMMANDS[name], "--out", half, "--resume")
    assert done.status == 0, done.err
    assert (half / "metrics.jsonl").read_text().startswith(mark)
    found, whole = read_rows(half / "metrics.jsonl"), read_rows(own / name / "metrics.jsonl")
    assert [(row["step"], row["split"]) for row in found] == [(row["step"], row["split"]) for row in whole]
    for row, other in zip(found[1:], whole[1:], strict=True):
        assert row["loss"] == pytest.approx(other["loss"], rel=CLOSE, abs=CLOSE)
    files = sorted(file.name for file in (own / name / "best").glob("*.safetensors"))
    assert files
    for file in files:
        weights, others = load_file(half / "best" / file), load_file(own / name / "best" / file)
        assert {key: array.shape for key, array in weights.items()} == {
            key: a.shape for key, a in others.items()
        }
        for key, array in weights.items():
            assert array == pytest.approx(others[key], rel=CLOSE, abs=CLOSE), key
    assert heedful("evaluate", half).status == 0


def test_a_half_finished_study_continues_and_answers_as_the_whole_one_did(
    heedful: Command, own: Path
) -> None:
    stored = (own / "half-search/runs/lr=0.001,epochs=4/results.json").read_bytes()
    begun = (own / "half-search/runs/lr=0.001,epochs=8/metrics.jsonl").read_text()
    done = heedful(*COMMANDS["half-search"], "--out", "half-search", "--json")
    assert done.status == 0, done.err
    assert (own / "half-search/runs/lr=0.001,epochs=4/results.json").read_bytes() == stored
    assert (own / "half-search/runs/lr=0.001,epochs=8/metrics.jsonl").read_text().startswith(begun)
    found, whole = json.loads(done.out), json.loads((own / "search/answer.json").read_text())
    assert found["finished"]
    assert found["facts"]["chosen"] == whole["facts"]["chosen"]
    for run in (own / "search/runs").iterdir():
        dev, other = (
            json.loads((own / study / "runs" / run.name / "results.json").read_text())["splits"]["dev"]
            for study in ("half-search", "search")
        )
        assert dev["loss"] == pytest.approx(other["loss"], rel=CLOSE, abs=CLOSE)
    again = heedful(*COMMANDS["search"], "--out", "search", "--json")
    assert again.status == 0, again.err
    assert json.loads(again.out)["facts"] == whole["facts"]


def test_british_option_names_are_read_from_stored_files(heedful: Command, own: Path) -> None:
    """The half-finished run has them in config.toml and optimiser.pt, the finished one in heedful.json."""
    config = own / "half-lora/config.toml"
    stored = config.read_text().replace('["rank=2"]', '["rank=2", "rank_stabilised=false"]')
    assert "rank_stabilised=false" in stored
    config.write_text(stored)
    assert len(list((own / "half-lora").glob("checkpoints/*/optimiser.pt"))) == 2
    assert '"rank_stabilised"' in (own / "lora/best/heedful.json").read_text()
    words = COMMANDS["lora"]
    after = words.index("rank=2") + 1
    words = [*words[:after], "rank_stabilized=false", *words[after:]]
    done = heedful(*words, "--out", "half-lora", "--resume")
    assert done.status == 0, done.err
    assert list((own / "half-lora").glob("checkpoints/*/optimizer.pt"))
    assert heedful("evaluate", "half-lora").status == 0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "--method-options",
            "rank_stabilised=true",
            '--method-options: unknown option of lora "rank_stabilised"; did you mean "rank_stabilized"?',
        ),
        (
            "--attention",
            "zero_after:unsafe=true,renormalise=true",
            'zero_after attention: unknown option of zero_after "renormalise"; did you mean "renormalize"?',
        ),
    ],
)
def test_british_option_names_are_refused_on_the_command_line(
    heedful: Command, old: Path, tmp_path: Path, option: str, value: str, message: str
) -> None:
    words = ("adapt", old / "bert", old / "task", "--method", "lora", "--precision", "float32", option, value)
    done = heedful(*words, "--out", tmp_path / "run")
    assert done.status == 2
    assert done.err.splitlines()[1:] == [f"heedful: {message}"]  # the first says what is being loaded


@pytest.mark.parametrize("name", ["lora", "pretrain"])
def test_a_configuration_makes_the_run_again(heedful: Command, own: Path, name: str) -> None:
    done = heedful("run", own / name / "config.toml", "--out", own / "again")
    assert done.status == 0, done.err
    found, whole = read_rows(own / "again/metrics.jsonl"), read_rows(own / name / "metrics.jsonl")
    assert [row["loss"] for row in found] == pytest.approx(
        [row["loss"] for row in whole], rel=CLOSE, abs=CLOSE
    )


@pytest.mark.parametrize("name", ["full", "pretrain"])
def test_an_old_run_is_a_model_to_train_further(heedful: Command, own: Path, name: str) -> None:
    further = {
        "full": ("adapt", "full", "task", "--max-len", 16),
        "pretrain": ("pretrain", "pretrain", "notes.txt"),
    }
    options = ("--steps", 2, "--threads", 1, "--precision", "float32", "--out", "further")
    done = heedful(*further[name], *options)
    assert done.status == 0, done.err
