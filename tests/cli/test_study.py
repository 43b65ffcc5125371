"""`heedful study` as a new user meets it: the verdicts, the folder, stopping, looking on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.runs.directory import Run

FAST = ("--threads", 1, "--precision", "float32", "--max-len", 32)


def test_a_model_that_can_learn_passes_and_its_score_is_never_called_a_test_score(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    out = tmp_path / "study"
    command = ("study", "overfit", tiny_bert, tiny_task, "--lr", 0.01, "--dropout", 0, *FAST, "--out", out)
    done = heedful(*command)  # in a worker, as by default
    assert done.status == 0, done.err
    assert "PASS: all 10 examples are right" in done.out
    assert "it says nothing about new texts" in done.out
    assert "test" not in done.out.replace("tests", "").split("\n")[1]
    results = Run.open(out / "runs/overfit").read_results()
    assert results.splits == {}
    assert not list(out.rglob("predictions_*"))
    assert "1 of 1 runs done" in done.err
    again = heedful(*command, "--jobs", 0, "--json")  # nothing is left to do
    found = json.loads(again.out)
    assert found["facts"]["passed"]
    assert found["finished"]
    assert found["command"][:2] == ["study", "overfit"]
    shown = heedful("study", "show", out)
    assert "finished" in shown.out
    assert "PASS" in shown.out
    assert json.loads(heedful("study", "show", out, "--json").out)["runs"][0]["state"] == "finished"


def test_a_model_from_nothing_may_have_a_tokenizer_trained_for_the_task(
    heedful: Callable[..., Any], tiny_task: Path, tmp_path: Path
) -> None:
    done = heedful(
        "study", "overfit", "bert-tiny", tiny_task, "--tokenizer", "word", "--epochs", 1, *FAST, "--jobs", 0,
        "--out", tmp_path / "s",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "examples are right" in done.out


@pytest.mark.parametrize(("options", "cause"), [
    (["--lr", "1e-9"], "learning rate 1e-09 is most likely too low"),
    (["--lr", "1e-9", "--method", "head"], "--method head keeps the body frozen"),
    (["--lr", "1e-9", "--warmup", "500"], "Warm-up is as long as the run or longer"),
])  # fmt: skip
def test_a_model_that_cannot_learn_fails_with_the_likely_cause(
    heedful: Callable[..., Any],
    tiny_bert: Path,
    tiny_task: Path,
    tmp_path: Path,
    options: list[str],
    cause: str,
) -> None:
    done = heedful(
        "study", "overfit", tiny_bert, tiny_task, "--epochs", 2, "--examples", 4, *options, *FAST, "--jobs", 0,
        "--out", tmp_path / "s",
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "FAIL: " in done.out
    assert cause in done.out
    assert "a PASS needs 3 of each; --examples 6 or more may have them" in done.out


def test_two_examples_of_a_label_are_too_few_for_a_pass(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    done = heedful(
        "study", "overfit", tiny_bert, tiny_task, "--examples", 4, "--lr", 0.01, "--dropout", 0, *FAST,
        "--jobs", 0, "--json", "--out", tmp_path / "s",
    )  # fmt: skip
    assert done.status == 0, done.err
    found = json.loads(done.out)
    facts = found["facts"]
    assert (facts["right"], facts["verdict"], facts["passed"]) == (4, "none", False)
    assert found["summary"][0].startswith("NO VERDICT: all 4 examples are right")
    assert "--examples 6 or more may have them" in found["summary"][1]


def test_a_loss_that_overflows_is_a_fail_with_its_cause(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    done = heedful(
        "study", "overfit", tiny_bert, tiny_task, "--lr", "1e30", "--epochs", 3, *FAST, "--jobs", 0,
        "--out", tmp_path / "s", "--json",
    )  # fmt: skip
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert not found["facts"]["passed"]
    assert re.match(r"FAIL: the .* is no longer a number at step \d+\.$", found["summary"][0])
    assert found["summary"][1] == "The learning rate is too high: the loss overflowed."


def test_a_mistake_removes_no_folder_that_was_there(
    heedful: Callable[..., Any], tiny_bert: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine" / "inner").mkdir(parents=True)
    for here, out in (("mine", "s"), ("mine/inner", "."), (".", "mine/inner/s")):
        monkeypatch.chdir(tmp_path / here)
        done = heedful("study", "search", tiny_bert, "bolq", "--jobs", 0, "--out", out)
        assert (done.status, len(done.err.splitlines())) == (2, 1)
        assert 'unknown task "bolq"; did you mean "boolq"' in done.err
        assert [p.name for p in tmp_path.rglob("*")] == ["mine", "inner"]


def test_contradicting_labels_are_found(heedful: Callable[..., Any], tiny_bert: Path, tmp_path: Path) -> None:
    rows = [f"the room was warm,{'good' if i % 2 else 'bad'}" for i in range(4)]
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    done = heedful(
        "study", "overfit", tiny_bert, tmp_path, "--epochs", 1, "--examples", 4, *FAST, "--jobs", 0,
        "--out", tmp_path / "s",
    )  # fmt: skip
    assert "is among the examples with two labels" in done.out


def test_a_search_prints_its_cells_its_best_and_its_test_score(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path
) -> None:
    done = heedful(
        "study", "search", tiny_bert, tiny_task, "--method", "head", "--lr", "1e-3,1e-2", "--epochs", "1,2",
        *FAST, "--jobs", 0, "--out", tmp_path / "s",
    )  # fmt: skip
    assert done.status == 0, done.err
    for word in (
        "Best on dev",
        "On test, scored once",
        "95 % interval",
        "2 heads were trained on features computed once",
    ):
        assert word in done.out
    other = heedful("study", "search", tiny_bert, tiny_task, "--lr", "1e-3", "--out", tmp_path / "s")
    assert other.status == 2
    assert "was begun with epochs 1,2, now it is 3; the same options continue it" in other.err


@pytest.mark.parametrize(("words", "line"), [
    (["overfit", "MODEL", "no-such-task"], '"no-such-task" is no file, folder or named task here (boolq, '),
    (["overfit", "no/such/model", "TASK"], "no/such/model"),
    (["search", "MODEL", "TASK", "--method", "lorra"], 'did you mean "lora"'),
    (["overfit", "bert-tiny", "TASK"], "has no tokenizer; --tokenizer names one"),
    (["overfit", "MODEL", "TASK", "--tokenizer", "word"], "has a vocabulary already"),
    (["labels", "bert-tiny", "TASK", "--tokenizer", "word", "--sizes", "all"], "joint needs one (kinds that have it: bpe"),
    (["compare", "TASK"], "--models: is empty; give one or more names"),
    (["overfit", "MODEL", "TASK", "--jobs", "-1"], "--jobs -1: must be at least 0"),
    (["show", "."], "is not a study"),
    (["worker", "."], "is not a study"),
])  # fmt: skip
def test_a_mistake_gets_one_line_and_leaves_nothing(
    heedful: Callable[..., Any], tiny_bert: Path, tiny_task: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, words: list[str], line: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    named = [{"MODEL": str(tiny_bert), "TASK": str(tiny_task)}.get(word, word) for word in words]
    more = [] if words[0] in ("show", "worker") or "--jobs" in words else ["--jobs", "0"]
    done = heedful("study", *named, *more)
    assert done.status == 2
    assert line in done.err.splitlines()[-1]
    assert not list(tmp_path.iterdir())
