"""What is given, in a person's own file or on the command line, is taken as it is or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.mark.parametrize("value", ["4.5", "0.1", '"4.5"', "-1.5"])
def test_a_fraction_is_no_whole_number_in_a_file(heedful: Callable[..., Any], value: str) -> None:
    Path("heedful.toml").write_text(f"[adapt]\nbatch_size = {value}\n")
    done = heedful("adapt", "no-model", "no-task")
    number = value.strip('"')
    wanted = f'heedful: heedful.toml: batch-size "{number}": must be a whole number\n'
    assert (done.status, done.err) == (2, wanted)


@pytest.mark.parametrize("option", ["--epochs", "--patience", "--train-rows"])
def test_a_fraction_is_no_whole_number_on_the_command_line(heedful: Callable[..., Any], option: str) -> None:
    done = heedful("adapt", "no-model", "no-task", option, "2.5")
    assert (done.status, done.err) == (
        2,
        f'heedful: {option} "2.5": must be a whole number\n',
    )


def test_a_table_of_several_commands_has_tables_of_its_own(heedful: Callable[..., Any]) -> None:
    Path("heedful.toml").write_text("[study]\njobs = 4\n")
    done = heedful("study", "search", "no-model", "no-task")
    assert (done.status, done.err) == (
        2,
        "heedful: heedful.toml: [study] jobs: study has several commands; write it below [study.COMMAND]\n",
    )
    Path("heedful.toml").write_text("[study.serach]\njobs = 4\n")
    refused = heedful("study", "search", "no-model", "no-task").err
    assert refused == 'heedful: heedful.toml: unknown table of study "serach"; did you mean "search"?\n'
    Path("heedful.toml").write_text("[study.search]\njobs = -4\n")
    assert (
        "heedful.toml: jobs -4: must be at least 0" in heedful("study", "search", "no-model", "no-task").err
    )


def test_commands_below_a_command_refuse_fractions_too(heedful: Callable[..., Any]) -> None:
    done = heedful("tokenizer", "train", "no-corpus", "--vocab-size", "99.5")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert '--vocab-size "99.5": must be a whole number' in done.err


def test_whole_numbers_and_fractions_stand_where_they_belong(heedful: Callable[..., Any]) -> None:
    Path("heedful.toml").write_text("[adapt]\nbatch_size = 4\nepochs = 2.0\nlr = 0.5\nwarmup = 1.5\n")
    refused = heedful("adapt", "no-model", "no-task", "--dropout", "0.25").err
    assert '"no-task" is no file, folder or named task here (boolq, ' in refused
