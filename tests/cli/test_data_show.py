"""`heedful data show`, as a person or a program meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "meals"
    folder.mkdir()
    for name, count in (("train", 60), ("dev", 20), ("test", 20)):
        rows = [
            f'"The {["awful", "great"][n % 2]} meal, number {n} of {name}.",{["bad", "good"][n % 2]}'
            for n in range(count)
        ]
        (folder / f"{name}.csv").write_text("text,label\n" + "\n".join(rows) + "\n")
    return folder


def test_a_person_sees_what_the_data_is_like(heedful: Callable[..., Any], task: Path) -> None:
    done = heedful("data", "show", task)
    assert (done.status, done.err) == (0, "")
    for part in (
        "60 rows (train.csv)",
        "text = text, label = label (by name)",
        "labels",
        "good",
        "30 (50.0%)",
        "bag of words",
        "100.0%",
        "found in both",
        "tokens and unique are without special tokens, lengths (from mean to max) with them",
    ):
        assert part in done.out
    assert done.out.count("The great meal, number") == 3


def test_a_program_gets_the_same_as_json(heedful: Callable[..., Any], task: Path) -> None:
    done = heedful("data", "show", task, "--json", "--batches", "--max-len", "8")
    facts = json.loads(done.out)
    assert facts["splits"]["train"]["label_counts"] == {"bad": 30, "good": 30}
    assert facts["baselines"]["test"] == {"chance": 0.5, "majority": 0.5, "bag_of_words": 1.0}
    assert facts["splits"]["dev"]["truncated"] == 1.0
    assert 0 <= facts["padding_waste"]["length-grouped"] < 1
    assert facts["shared"]["train and dev"] == {"rows": 0}
    assert facts["columns"] == {"text": "text", "label": "label", "selection": "by name"}


def test_without_minilm_words_are_counted_and_it_is_said(
    heedful: Callable[..., Any], task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    done = heedful("data", "show", task, "--json")
    facts = json.loads(done.out)
    assert facts["tokenizer"] == "words between white space (minilm is not installed)"
    assert facts["splits"]["dev"]["lengths"]["max"] == 7


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_a_histogram_is_drawn(heedful: Callable[..., Any], task: Path, tmp_path: Path, suffix: str) -> None:
    done = heedful("data", "show", task, "--figure", tmp_path / f"lengths.{suffix}")
    assert (done.status, done.err) == (0, "")
    assert (tmp_path / f"lengths.{suffix}").stat().st_size > 5000
    assert f"lengths.{suffix}" in done.out
    if suffix == "svg":
        assert "max_len 256" in (tmp_path / "lengths.svg").read_text()


def test_columns_and_split_are_options(heedful: Callable[..., Any], tmp_path: Path, task: Path) -> None:
    path = tmp_path / "raw.csv"
    path.write_text("".join(f"left number {n} here,right number {n} here,{n % 2}\n" for n in range(100)))
    done = heedful("data", "show", path)
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "--text-column" in done.err
    options = (
        "--text-column",
        "1",
        "--pair-column",
        "2",
        "--label-column",
        "3",
        "--split",
        "first",
        "--json",
    )
    facts = json.loads(heedful("data", "show", path, *options).out)
    assert [part["rows"] for part in facts["splits"].values()] == [80, 10, 10]
    assert "first texts" in facts["shared"]["train and dev"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["bolq"], 'heedful: unknown task "bolq"; did you mean "boolq"'),
        (["{task}", "--max-len", "0"], "heedful: --max-len 0: must be at least 1"),
        (["{task}", "--batches", "--batch-size", "0"], "heedful: --batch-size 0: must be at least 1"),
        (["{task}", "--label-column", "stars"], 'unknown column "stars"; there are label, text'),
        (["{task}", "--split", "last"], "last"),
        (["{task}", "--tokenizer", "./nowhere"], "heedful: "),
        (["{task}", "--figure", "{task}/train.csv/x.png"], "train.csv"),
        (["{task}", "--figure", "x.docx"], "heedful: x.docx"),
    ],
)
def test_a_mistake_is_one_line(
    heedful: Callable[..., Any], task: Path, arguments: list[str], line: str
) -> None:
    done = heedful("data", "show", *(argument.format(task=task) for argument in arguments))
    assert done.status == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    assert line in done.err


def test_control_characters_of_data_are_shown_never_sent(heedful: Callable[..., Any], task: Path) -> None:
    lines = (
        (task / "train.csv").read_text().replace("The great meal", "\x1b[31mThe [bold]great[/bold] meal\x07")
    )
    (task / "train.csv").write_text(lines)
    done = heedful("data", "show", task)
    assert done.status == 0
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
    assert r"\x1b[31mThe [bold]great[/bold] meal" in done.out


def test_help_has_examples(heedful: Callable[..., Any]) -> None:
    done = heedful("data", "show", "--help")
    assert done.status == 0
    assert "heedful data show world/boolq" in done.out
    assert "--label-column" in done.out
