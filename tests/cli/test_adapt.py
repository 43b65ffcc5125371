"""`heedful adapt` as a new user meets it: the run directory, the last lines, the mistakes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import heedful as package
from heedful.runs.directory import Run
from heedful.runs.toml import read_toml

FAST = ("--threads", 1, "--precision", "float32", "--max-len", 32)


def test_a_run_leaves_everything_and_prints_scores_beside_baselines(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = heedful("adapt", tiny_bert, tiny_task, "--epochs", 6, "--lr", 0.01, *FAST, "--out", out)
    assert done.status == 0, done.err
    for word in (
        "dev",
        "test",
        "95 % interval",
        "chance",
        "majority",
        "bag of words",
        f"run: {out}",
        "checks: ",
    ):
        assert word in done.out
    for name in (
        "config.toml", "env.json", "metrics.jsonl", "timing.jsonl", "checks.json", "results.json",
        "predictions_dev.jsonl", "predictions_test.jsonl", "bag_of_words_dev.jsonl", "bag_of_words_test.jsonl",
        "best/model.safetensors", "best/tokenizer.json",
        "best/config.json", "best/README.md",
    ):  # fmt: skip
        assert (out / name).is_file(), name
    results = Run.open(out).read_results()
    assert results.splits["test"].value is not None
    assert results.splits["test"].value > 0.9  # two words decide the label
    assert results.labels == ("bad", "good")
    words = package.adapt("tfidf", tiny_task, out=tmp_path / "words")
    for split, result in results.splits.items():
        bag, own = (
            Run.open(out).read_predictions(split, by="bag_of_words"),
            words.run.read_predictions(split),
        )
        assert [(row.id, row.label, row.predicted) for row in bag] == [
            (row.id, row.label, row.predicted) for row in own
        ]
        assert (result.baselines or {})["bag_of_words"] == words.results.splits[split].value
    assert package.load(out).predict(["lovely"])  # no file of the bag of words is in the way
    assert set(package.results.RunResult(out).predictions("test").column("text").to_pylist()) != {None}


def test_json_is_the_whole_of_stdout(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    options = ("--method", "head", "--epochs", 1, *FAST, "--out", tmp_path / "run", "--json")
    found = json.loads(heedful("adapt", tiny_bert, tiny_task, *options).out)
    assert found.pop("folder") == str(tmp_path / "run")
    assert found == json.loads((tmp_path / "run/results.json").read_text())
    assert found["trainable_parameters"] == 2 * 32 + 2


def test_a_run_fits_its_bag_of_words_once_and_a_finished_run_is_shown_again_as_it_was(
    heedful: Callable[..., Any],
    tiny_bert: Path,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from heedful.evaluation.baselines import TfidfModel

    fitted: list[int] = []
    fit = TfidfModel.fit
    monkeypatch.setattr(
        TfidfModel, "fit", lambda *given, **options: fitted.append(len(given[2])) or fit(*given, **options)
    )
    command = (
        "adapt",
        tiny_bert,
        tiny_task,
        "--method",
        "head",
        "--epochs",
        1,
        *FAST,
        "--out",
        tmp_path / "run",
    )
    first = heedful(*command, "--train-rows", 100)
    assert fitted == [100]  # from the rows that the model has learned from
    assert "trained 66 of " in first.out
    assert "parameters (2 d + 2 = 66) in " in first.out
    again = heedful(*command, "--train-rows", 100, "--resume")
    assert (again.status, again.out) == (0, first.out)


def test_without_out_runs_have_names_of_their_own(
    heedful: Callable[..., Any],
    tiny_bert: Path,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert heedful("adapt", tiny_bert, tiny_task, "--method", "head", "--epochs", 1, *FAST).status == 0
    assert sorted(p.name for p in Path("runs").iterdir()) == [
        "reviews-tiny-bert-head-s0",
        "reviews-tiny-bert-head-s0-2",
    ]


def test_the_same_command_with_resume_goes_on_with_the_last_run(
    heedful: Callable[..., Any],
    tiny_bert: Path,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("adapt", tiny_bert, tiny_task, "--epochs", 2, *FAST)
    first = heedful(*command, "--lr", "1e-3")
    last = heedful(*command)
    again = heedful(*command, "--resume")
    assert (again.status, again.out) == (0, last.out)
    assert last.out != first.out
    assert len(list(Path("runs").iterdir())) == 2
    other = heedful(*command, "--lr", "1e-3", "--resume")
    assert other.status == 2
    assert "runs/reviews-tiny-bert-full-s0-2" in other.err


def test_a_relative_path_in_a_configuration_is_written_whole(
    heedful: Callable[..., Any],
    tiny_bert: Path,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tiny_task.parent)
    done = heedful(
        "adapt", tiny_bert, tiny_task.name, "--method", "head", "--epochs", 1, *FAST, "--out", tmp_path / "r"
    )
    assert done.status == 0, done.err
    assert read_toml(tmp_path / "r/config.toml")["adapt"]["task"] == str(tiny_task)
    monkeypatch.chdir(tmp_path)
    assert heedful("evaluate", "r").status == 0


@pytest.mark.parametrize("method", ["lora", "bitfit", "head"])
def test_a_model_from_nothing_is_kept_whole_whatever_the_method(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path, method: str
) -> None:
    out = tmp_path / "run"
    done = heedful(
        "adapt", "bert-tiny", tiny_task, "--tokenizer", tiny_bert, "--method", method, "--epochs", 1, *FAST,
        "--out", out,
    )  # fmt: skip
    assert done.status == 0, done.err
    found = {check.name: check.status for check in Run.open(out).read_checks().checks}
    assert found["reload"] == "passed"


@pytest.mark.parametrize("options", [
    ["--objective", "joint", "--method", "lora"],
    ["--objective", "joint", "--method", "bitfit"],
    ["--attention", "performer:features=16", "--method", "lora"],
    ["--attention", "performer:features=16", "--method", "head"],
], ids=" ".join)  # fmt: skip
def test_the_best_model_is_the_one_that_was_scored(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path, options: list[str]
) -> None:
    done = heedful("adapt", tiny_bert, tiny_task, *options, "--epochs", 1, *FAST, "--out", tmp_path / "r")
    assert done.status == 0, done.err
    run = Run.open(tmp_path / "r")
    assert {c.name: c.status for c in run.read_checks().checks}["reload"] == "passed"
    found = [(p.text, p.predicted, p.probabilities) for p in run.read_predictions("dev")]
    answers = package.load(tmp_path / "r").predict([str(text) for text, _, _ in found])
    for answer, (_, label, probabilities) in zip(answers, found, strict=True):
        assert answer.label == label
        assert answer.probabilities == pytest.approx(probabilities, abs=1e-5)


def test_a_bert_without_a_pooler_is_kept_without_one(
    heedful: Callable[..., Any], tiny_task: Path, tmp_path: Path
) -> None:
    done = heedful(
        "pretrain", "bert-tiny", tiny_task, "--objective", "masked", "--tokenizer", "wordpiece", "--vocab-size",
        200, "--steps", 2, "--block", 32, "--threads", 1, "--precision", "float32", "--out", tmp_path / "e",
    )  # fmt: skip
    assert done.status == 0, done.err
    done = heedful(
        "adapt", tmp_path / "e", tiny_task, "--head", "linear", "--epochs", 1, *FAST, "--out", tmp_path / "r"
    )
    assert done.status == 0, done.err
    found = {check.name: check.status for check in Run.open(tmp_path / "r").read_checks().checks}
    assert found["reload"] == "passed"
    refused = heedful("export", tmp_path / "r", tmp_path / "x")
    assert "has a pooler, and would draw one at random" in refused.err + refused.out


@pytest.mark.parametrize(("options", "line"), [
    (["--method", "lorra"], 'unknown method "lorra"; did you mean "lora"?'),
    (["--epochs", "0"], "--epochs 0: must be at least 1"),
    (["--lr", "0"], "--lr 0: must be above 0"),
    (["--method", "lora", "--method-options", "rnk=2"], '--method-options: unknown option of lora "rnk"; did you mean "rank"?'),
    (["--method", "lora", "--method-options", "rank=two"], '--method-options rank "two": must be a whole number'),
    (["--resume"], "--resume: there is no runs/reviews-tiny-bert-full-s0 to go on with; --out names the run"),
    (["--unlabeled", "none.txt"], "--unlabeled belongs to --objective joint"),
    (["--mlm-weight", "1"], "--mlm-weight belongs to --objective joint"),
    (["--objective", "joint", "--mlm-first", "-3"], "--mlm-first -3: must be at least 0"),
    (["--objective", "joint", "--mlm-rate", "1"], "--mlm-rate 1: must be above 0 and below 1"),
    (["--answer-loss", "all"], "--answer-loss belongs to --objective answer"),
    (["--clip", "-1"], "--clip -1: must be at least 0"),
    (["--weight-decay", "-0.1"], "--weight-decay -0.1: must be at least 0"),
    (["--train-eval-rows", "-1"], "--train-eval-rows -1: must be at least 0"),
    (["--eval-every", "0"], "--eval-every 0: must be at least 1"),
    (["--token-budget", "0"], "--token-budget 0: must be at least 1"),
    (["--label-smoothing", "1.5"], "--label-smoothing 1.5: must be at least 0 and below 1"),
    (["--tokenizer", "minilm"], "tokens and the model embeddings of"),
    (["--device", "tpu"], "is one of auto, cpu, cuda"),
    (["--optimizer", "adam"], 'did you mean "adamw"'),
    (["--schedule", "liner"], 'did you mean "linear"'),
])  # fmt: skip
def test_a_mistake_gets_one_line_and_leaves_no_run(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, options: list[str], line: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    done = heedful("adapt", tiny_bert, tiny_task, *FAST, *options)
    assert done.status == 2
    assert line in done.err
    assert not list(Path().rglob("results.json"))


def test_a_misspelled_preset_is_told_its_name(heedful: Callable[..., Any], tiny_task: Path) -> None:
    done = heedful("adapt", "bert-tinny", tiny_task, *FAST)
    assert done.status == 2
    assert 'unknown model "bert-tinny"; did you mean "bert-tiny"?' in done.err


@pytest.mark.parametrize("method", ["prompt", "prefix"])
def test_a_method_that_needs_a_pretrained_model_says_so(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, method: str
) -> None:
    done = heedful("adapt", "bert-tiny", tiny_task, "--tokenizer", tiny_bert, "--method", method, *FAST)
    assert done.status == 2
    assert f"--method {method} needs a pretrained model; bert-tiny starts from nothing" in done.err


def test_a_folder_that_is_not_empty_is_refused_before_anything_is_loaded(
    heedful: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    done = heedful("adapt", "no/such/model", "no-such-task", "--out", tmp_path)
    assert done.status == 2
    assert "is not empty" in done.err
