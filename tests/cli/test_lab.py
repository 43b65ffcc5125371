"""`heedful lab` as a person calls it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny
from heedful.lab.base import TOPICS

Run = Callable[..., Any]


def test_lab_lists_its_topics_without_torch(heedful: Run) -> None:
    listed = json.loads(heedful("lab", "--json").out)
    assert [t["topic"] for t in listed] == list(TOPICS)
    for topic in TOPICS.values():
        assert topic.about in heedful("lab").out
    code = "import sys; from heedful.cli import main; main(['lab']); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("name", TOPICS)
def test_a_topics_help_explains_its_own_options(heedful: Run, name: str) -> None:
    done = heedful("lab", name, "--help")
    assert done.status == 0
    for part in ("Usage: heedful lab", "--figure", "--json", f"heedful lab {name}"):
        assert part in done.out


def test_a_topic_prints_claim_construction_and_numbers(heedful: Run) -> None:
    done = heedful("lab", "argmax", "--steps", 0)
    assert done.status == 0
    for part in ("argmax: ", "scale = 1", "(3, 2, -4)", "exactly 0", "passed: "):
        assert part in done.out


def test_json_holds_the_same_numbers(heedful: Run) -> None:
    facts = json.loads(heedful("lab", "argmax", "--steps", 0, "--json").out)
    assert facts["passed"] is True
    assert facts["results"]["output"] == [3, 2, -4]
    assert facts["results"]["scores"] == [3, 1, 1, -3]


def test_own_vectors_come_from_files_or_the_line(heedful: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "keys.npy", [[0, 1], [1, 0]])
    done = heedful(
        *("lab", "argmax", "--steps", 0, "--keys", tmp_path / "keys.npy", "--values", "5,6;7,8"),
        *("--query", "-1,0", "--json"),
    )
    assert json.loads(done.out)["results"]["output"] == [5, 6]


@pytest.mark.parametrize("ending", ["png", "svg", "pdf", "html"])
def test_a_figure_is_written_in_the_form_of_its_ending(heedful: Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"figure.{ending}"
    done = heedful("lab", "argmax", "--steps", 0, "--figure", path)
    assert done.status == 0
    assert f"figure: {path}" in done.out
    start = {"png": b"\x89PNG", "svg": b"<svg", "pdf": b"%PDF", "html": b"<!DOCTYPE html>"}[ending]
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize(("arguments", "line"), [
    (["argmx"], 'unknown topic "argmx"; did you mean "argmax"?'),
    (["argmax", "--figure", "x.bmp"], "a figure ends in"),
    (["argmax", "--keys", "nowhere.npy"], "--keys: there is no file nowhere.npy"),
    (["argmax", "--query", "1,a"], '--query: "1,a" is no .npy file and no numbers'),
    (["argmax", "--query", "1,2"], "query: vectors of 2 components; 3 are needed"),
    (["argmax", "--values", "1,2;3,4"], "values: 2 vectors; 4 are needed"),
    (["argmax", "--qury", "1"], "unknown option --qury; did you mean --query?"),
])  # fmt: skip
def test_a_mistake_gets_one_line_and_status_two(heedful: Run, arguments: list[str], line: str) -> None:
    done = heedful("lab", *arguments)
    assert (done.status, done.out) == (2, "")
    assert done.err.count("\n") == 1
    assert line in done.err


def test_all_runs_every_topic_and_fails_if_one_fails(
    heedful: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from heedful.cli import lab
    from heedful.lab.base import Finding, Topic, at_most

    @dataclass(frozen=True)
    class Nothing:
        pass

    figure = {"title": {"text": ["t"]}, "mark": "bar", "data": {"values": []}}
    values = {"good": 1, "bad": 3}

    def load(self: Topic) -> Callable[[], Finding[Nothing]]:
        return lambda: Finding(self.name, "c", (), (at_most("x", values[self.name], 2),), Nothing(), figure)

    monkeypatch.setattr(Topic, "load", load)
    monkeypatch.setattr(lab, "TOPICS", {"good": Topic("good", "a")})
    done = heedful("lab", "all", "--figures", tmp_path, "--form", "svg")
    assert (done.status, "1 of 1" in done.out) == (0, True)
    assert (tmp_path / "lab-good.svg").exists()
    monkeypatch.setattr(lab, "TOPICS", {name: Topic(name, "a") for name in values})
    done = heedful("lab", "all")
    assert done.status == 1
    assert "x: 3, at most 2" in done.out
    assert [f["passed"] for f in json.loads(heedful("lab", "all", "--json").out)] == [True, False]


def test_all_says_which_topic_could_not_run_and_why(heedful: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from heedful.cli import lab
    from heedful.errors import UserError
    from heedful.lab.base import Topic

    def load(self: Topic) -> Callable[[], None]:
        raise UserError("minilm is not installed")

    monkeypatch.setattr(Topic, "load", load)
    monkeypatch.setattr(lab, "TOPICS", {"heads": Topic("heads", "a")})
    done = heedful("lab", "all")
    assert (done.status, "not run" in done.out, "minilm is not installed" in done.out) == (0, True, True)
    assert json.loads(heedful("lab", "all", "--json").out) == [
        {"topic": "heads", "not_run": "minilm is not installed"}
    ]


def test_heads_takes_its_text_as_it_stands(heedful: Run, tmp_path: Path) -> None:
    model = tiny.make_model(tmp_path / "model")
    done = heedful(
        "lab", "heads", "a <b>fine</b> film", "--model", model, "--figure", tmp_path / "heads.html"
    )
    assert done.status == 0, done.err
    assert "film" in done.out
    assert "<b>fine" not in (tmp_path / "heads.html").read_text(encoding="utf-8")
    done = heedful("lab", "heads", "", "--model", model)
    assert (done.status, done.err) == (2, "heedful: the text is empty\n")
