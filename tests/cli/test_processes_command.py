"""`--processes 2`: the same run, told once."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import heedful as package
from heedful.errors import UserError

TEXT = "the cat sat on the mat and saw the old dog run past a red house while it rained all day"
OPTIONS = ["--steps", "6", "--batch-size", "4", "--block", "32", "--dropout", "0", "--lr", "1e-3", "--precision",
           "float32", "--model-options", "n_layers=1", "d_model=16", "n_heads=2"]  # fmt: skip


def test_two_processes_make_the_run_of_one_and_tell_it_once(
    heedful: Callable[..., Any], tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    options = [*OPTIONS, "--dev", text]
    text.write_text("".join(" ".join(TEXT.split()[i % 9 :: 1 + i % 3]) + "\n" for i in range(45)))
    one = heedful("pretrain", "char-gpt", text, *options, "--threads", 1, "--out", tmp_path / "one", "--json")
    assert one.status == 0, one.err
    two = heedful(
        "pretrain", "char-gpt", text, *options, "--processes", 2, "--out", tmp_path / "two", "--json"
    )
    assert two.status == 0, two.err
    alone, together = json.loads(one.out), json.loads(two.out)
    assert together["splits"]["dev"]["value"] == pytest.approx(alone["splits"]["dev"]["value"], rel=1e-4)
    assert together["folder"] == str(tmp_path / "two")
    config = tomllib.loads((tmp_path / "two" / "config.toml").read_text())["pretrain"]
    assert config["processes"] == 2
    assert config["threads"] >= 1
    assert tomllib.loads((tmp_path / "one" / "config.toml").read_text())["pretrain"]["processes"] == 1
    again = heedful("pretrain", "char-gpt", text, *options, "--out", tmp_path / "two", "--resume", "--json")
    assert json.loads(again.out) == together  # a finished run gives its results again


def test_a_mistake_is_told_in_one_line_before_or_after_the_start(
    heedful: Callable[..., Any], tmp_path: Path, tiny_bert: Path
) -> None:
    done = heedful("adapt", tiny_bert, "task", "--processes", 2, "--max-len", 1)
    assert (done.status, done.err) == (2, "heedful: --max-len 1: must be at least 4\n")
    with pytest.raises(UserError, match="no-such-task"):
        package.adapt(tiny_bert, "no-such-task", processes=2, out=tmp_path / "run", precision="float32")
    assert not (tmp_path / "run").exists()
