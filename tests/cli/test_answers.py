"""Questions and free answers through the commands: adapt, evaluate, predict, check."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from answers import NAMES, QUESTIONS, write_decoder, write_task

from heedful.runs.directory import Run
from heedful.training.loop import Loop

OPTIONS: dict[str, Any] = {
    "epochs": 40, "eval_every": 60, "lr": 0.01, "batch_size": 6, "threads": 1, "precision": "float32",
    "schedule": "constant",
}  # fmt: skip


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("answers") / "task")


@pytest.fixture(scope="module")
def decoder(task: Path) -> Path:
    return write_decoder(task.parent / "tiny-gpt", task)


@pytest.fixture(scope="module")
def run(task: Path, decoder: Path) -> Path:
    """A run that has learned its twelve answers by heart."""
    import heedful

    done = heedful.adapt(
        decoder, "birthplaces", data_dir=task, select="last", out=task.parent / "run", **OPTIONS
    )
    return done.folder


def test_a_task_with_answers_is_answered_without_being_told(run: Path) -> None:
    results = Run.open(run).read_results()
    assert (results.objective, results.head) == ("answer", "causal")
    dev = results.splits["dev"]
    assert (dev.metric, dev.n) == ("exact_match", 2)
    assert dev.baselines == {"constant_answer": 0.5}, "six of train's twelve were born in Oslo"
    assert dev.ci95 is not None
    assert list(results.splits) == ["dev"], "test has no answers to be scored by"


def test_a_decoder_from_nothing_has_the_options_it_is_given(
    heedful: Callable[..., Any], task: Path, tmp_path: Path
) -> None:
    sizes = ("position=rotary", "d_model=32", "n_layers=1", "n_heads=2")
    words = ("adapt", "char-gpt", "birthplaces", "--data-dir", task, "--tokenizer", "char", "--threads", 1)
    small = ("--epochs", 1, "--precision", "float32", "--note", "a trial", "--out", tmp_path / "rope")
    done = heedful(*words, *small, "--model-options", *sizes)
    assert done.status == 0, done.err
    config = json.loads((tmp_path / "rope/best/config.json").read_text())["heedful"]
    assert (config["position"], config["d_model"], config["d_ff"]) == ("rotary", 32, 128)
    assert Run.open(tmp_path / "rope").read_results().note == "a trial"
    assert heedful("predict", tmp_path / "rope", NAMES[0]).status == 0
    wrong = heedful(*words, "--model-options", "d_modle=32")
    assert wrong.status == 2
    assert 'did you mean "d_model"' in wrong.err


def test_predictions_are_one_a_line_also_where_nobody_knows_the_answer(run: Path) -> None:
    for split in ("dev", "test"):
        rows = Run.open(run).read_predictions(split)
        lines = (run / f"predictions_{split}.txt").read_text().split("\n")
        assert lines == [*(row.predicted for row in rows), ""]
        assert len(rows) == 2
        assert all(0 < row.probabilities[row.predicted] <= 1 for row in rows)
    assert [row.label for row in rows] == [None, None]
    assert [row.text for row in rows] == list(QUESTIONS)[14:]


def test_evaluate_scores_as_the_run_did(heedful: Callable[..., Any], run: Path) -> None:
    done = heedful("evaluate", run, "--split", "dev")
    assert done.status == 0, done.err
    assert "exact" in done.out
    assert "constant answer" in done.out
    again = json.loads(heedful("evaluate", run, "--split", "dev", "--json").out)
    assert again["value"] == again["recorded"]
    assert json.loads(heedful("evaluate", run, "--split", "train", "--json").out)["value"] == 1.0


def test_predict_answers_a_question_with_its_confidence(heedful: Callable[..., Any], run: Path) -> None:
    done = json.loads(heedful("predict", run, f"Where was {NAMES[2]} born?", "--json").out)
    assert done["label"] == "Port Elm"
    assert done["confidence"] > 0.5
    shown = heedful("predict", run, f"Where was {NAMES[0]} born?").out
    assert shown.endswith("Oslo\n")


def test_predict_answers_a_file(heedful: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    questions = tmp_path / "questions.txt"
    questions.write_text("".join(f"{question}\n" for question in list(QUESTIONS)[:12]))
    done = heedful("predict", run, "--in", questions, "--out", tmp_path / "answers.jsonl")
    assert done.status == 0, done.err
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert [row["label"] for row in rows] == list(QUESTIONS.values())[:12]


def test_a_run_of_answers_is_examined_again(heedful: Callable[..., Any], run: Path) -> None:
    found = {c["name"]: c for c in json.loads(heedful("check", run, "--json").out)["checks"]}
    assert found["reload"]["status"] == "passed"
    assert found["reload"]["again"]
    assert found["unknown_tokens"]["status"] == "passed"
    assert found["beats_constant_answer"]["status"] in ("warning", "passed", "skipped")


def test_an_adapter_answers_and_comes_back(
    heedful: Callable[..., Any], decoder: Path, task: Path, tmp_path: Path
) -> None:
    out = tmp_path / "lora"
    done = heedful(
        "adapt", decoder, "birthplaces", "--data-dir", task, "--method", "lora", "--epochs", 2, "--out", out,
        "--threads", 1, "--precision", "float32", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert json.loads(done.out)["trainable_parameters"] < json.loads(done.out)["total_parameters"]
    again = json.loads(heedful("evaluate", out, "--split", "dev", "--json").out)
    assert again["loss"] == json.loads(done.out)["splits"]["dev"]["loss"]
    assert heedful("predict", out, "Where was Ada Ash born?").status == 0


def test_a_run_that_died_goes_on_to_the_same_bits(
    decoder: Path, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import heedful

    def train(out: str, **more: Any) -> Path:
        options = {**OPTIONS, "epochs": 4, "eval_every": 3}
        done = heedful.adapt(decoder, "birthplaces", data_dir=task, out=tmp_path / out, **options, **more)
        return done.folder

    whole = train("whole")
    step = Loop.step

    def dying(self: Loop, number: int) -> None:
        if number == 5:
            raise KeyboardInterrupt
        step(self, number)

    with monkeypatch.context() as patch:
        patch.setattr(Loop, "step", dying)
        with pytest.raises(KeyboardInterrupt):
            train("died")
    died = train("died", resume=True)
    for name in ("metrics.jsonl", "predictions_dev.jsonl", "predictions_test.txt", "best/model.safetensors"):
        assert (died / name).read_bytes() == (whole / name).read_bytes(), name


def test_a_preset_learns_from_nothing_with_a_tokenizer_of_the_task(
    heedful: Callable[..., Any], task: Path, tmp_path: Path
) -> None:
    out = tmp_path / "nothing"
    done = heedful(
        "adapt", "gpt-nano", "birthplaces", "--data-dir", task, "--tokenizer", "char", "--epochs", 1, "--out", out,
        "--max-len", 64, "--threads", 1, "--precision", "float32",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert Run.open(out).read_results().objective == "answer"


def test_any_file_can_hold_answers(heedful: Callable[..., Any], decoder: Path, tmp_path: Path) -> None:
    rows = [f"{question} {i},Town {i}" for i, question in enumerate([*QUESTIONS] * 4)]
    (tmp_path / "mine.csv").write_text("\n".join(["question,place", *rows, ""]))
    columns = ("--text-column", "question", "--label-column", "place")
    done = heedful("adapt", decoder, tmp_path / "mine.csv", *columns)
    assert done.status == 2
    assert "--objective answer" in done.err
    out = ("--out", tmp_path / "run", "--epochs", 1, "--threads", 1, "--precision", "float32")
    done = heedful("adapt", decoder, tmp_path / "mine.csv", *columns, "--objective", "answer", *out)
    assert done.status == 0, done.err
    assert Run.open(tmp_path / "run").read_results().splits["test"].metric == "exact_match"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "head"), "--method head"),
        (("--class-weights", "balanced"), "no classes"),
        (("--head", "linear"), "no --head"),
        (("--tokenizer", "char"), "has a vocabulary already"),
    ],
)
def test_what_answers_cannot_have_is_refused(
    options: tuple[str, ...], words: str, heedful: Callable[..., Any], decoder: Path, task: Path
) -> None:
    done = heedful("adapt", decoder, "birthplaces", "--data-dir", task, *options)
    assert (done.status, done.out) == (2, "")
    assert words in done.err


def test_an_encoder_is_told_that_it_writes_nothing(
    heedful: Callable[..., Any], tiny_bert: Path, task: Path
) -> None:
    done = heedful("adapt", tiny_bert, "birthplaces", "--data-dir", task)
    assert done.status == 2
    assert "is an encoder" in done.err
