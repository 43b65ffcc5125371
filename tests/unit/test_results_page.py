"""docs/results.md: rows come from files that runs and studies wrote, and what is missing is said."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from heedful.runs import Answer, Note, Table, write_answer, write_json
from heedful.runs.schemas import Results, SplitResult

ROOT = Path(__file__).parents[2]
HOSTILE = "</td><script>x</script> | `a` *b*"


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a docs folder of its own."""
    spec = importlib.util.spec_from_file_location("results_page", ROOT / "scripts" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    here = tmp_path / "docs" / "results"
    here.mkdir(parents=True)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "HERE", here)
    return module


def answered(finished: bool = True) -> Answer:
    return Answer(
        study="compare",
        title="Which is best?",
        summary=("On test: full is better than head.", "A second sentence."),
        finished=finished,
        notes=(Note("head collapsed", "warning"), Note("A second sentence.")),
        tables=(
            Table(
                ("arm", "learning rate", "test accuracy", "95 % interval", "trained", "dev perplexity"),
                (
                    ("full", 5e-5, 0.81234, "0.790 to 0.830", 22713986, 123.456),
                    (HOSTILE, None, None, "", 7, None),
                ),
                "what each reached",
            ),
            Table(("a", "b"), (("second", 1.0),), ""),
        ),
        command=("study", "compare", "boolq"),
    )


def index(*rows: dict[str, Any], form: str = "studies") -> dict[str, Any]:
    return {"title": "T", "text": "t", "section": [{"title": "S", "form": form, "row": list(rows)}]}


def study_row(**more: Any) -> dict[str, Any]:
    return {"label": "BoolQ", "runs": ["own"], "command": "heedful study compare boolq --lr 1e-4", **more}


def test_a_study_shows_its_answer_its_tables_and_its_command(results: ModuleType, tmp_path: Path) -> None:
    write_answer(tmp_path / "own", answered())
    assert results.main(["collect", str(tmp_path / "own")]) == 0
    text = results.page(index(study_row()))
    assert "### BoolQ\n\nOn test: full is better than head. A second sentence.\n\n> head collapsed" in text
    assert text.count("A second sentence.") == 1
    assert "| full | 5e-05 | 0.812 | 0.790 to 0.830 | 22,713,986 | 123.5 |" in text
    assert "| --- | ---: | ---: | --- | ---: | ---: |" in text
    assert "```\nheedful study compare boolq --lr 1e-4\n```" in text
    assert "| second | 1.000 |" in text
    assert "Not measured yet" not in text


def test_text_from_data_stays_text(results: ModuleType, tmp_path: Path) -> None:
    write_answer(tmp_path / "own", answered())
    results.collect(tmp_path / "own")
    text = results.page(index(study_row()))
    assert "<script>" not in text
    (line,) = [line for line in text.splitlines() if "script" in line]
    assert len(re.findall(r"(?<!\\)\|", line)) == 7, "a bar in a text begins no cell"


def test_a_row_says_how_many_tables_of_its_study_are_shown(results: ModuleType, tmp_path: Path) -> None:
    write_answer(tmp_path / "own", answered())
    results.collect(tmp_path / "own")
    assert "second" in results.page(index(study_row()))
    one = results.page(index(study_row(tables=1)))
    assert "0.790 to 0.830" in one
    assert "| second" not in one
    assert "| --- |" not in results.page(index(study_row(tables=0)))


def test_a_study_that_is_not_finished_is_not_taken(
    results: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_answer(tmp_path / "own", answered(finished=False))
    write_answer(tmp_path / "other", answered())
    assert results.main(["collect", str(tmp_path / "own"), str(tmp_path / "other")]) == 1
    assert "own: the study is not finished" in capsys.readouterr().err
    assert not results.is_measured("own")
    assert results.is_measured("other")
    assert "Not measured yet: BoolQ." in results.page(index(study_row()))


def test_a_language_model_has_its_bits_and_its_unknown_tokens_beside_its_perplexity(
    results: ModuleType, tmp_path: Path
) -> None:
    def split(value: float, bits: float) -> SplitResult:
        interval = (value - 1, value + 1)
        return SplitResult("perplexity", value, 100, interval, bits_per_character=bits, unknown_rate=0.0123)

    made = Results(
        task="ptb", model="gpt-micro", method="full", head=None, seed=0, trainable_parameters=9,
        splits={"dev": split(80.5, 1.9), "test": split(79.25, 1.875)}, total_parameters=1234567, seconds=90.0,
    )  # fmt: skip
    write_json(tmp_path / "ptb" / "results.json", made)
    assert results.main(["collect", str(tmp_path / "ptb")]) == 0
    row = {"label": "ptb, subwords", "runs": ["ptb"], "command": "heedful pretrain gpt-micro ptb"}
    text = results.page(index(row, form="perplexity"))
    assert (
        "| ptb, subwords | 1,234,567 | **80.50** (79.50 to 81.50) | **79.25** (78.25 to 80.25) | 1.875 | 1.2% |"
        " 1.5 |"
    ) in text


def test_missing_gives_commands_that_leave_what_their_rows_are_read_from(results: ModuleType) -> None:
    rows = [
        study_row(),
        {"label": "seeds", "runs": ["a-s0", "a-s1"], "command": "heedful adapt m t --seed 0   # and 1"},
        {
            "label": "two steps",
            "runs": ["b"],
            "command": "heedful pretrain m c --out runs/b-reading\nheedful adapt runs/b-reading t",
        },
    ]
    write_json(results.HERE / "a-s0" / "results.json", {})
    lines = results.missing(index(*rows)).splitlines()
    assert [line for line in lines if line.startswith("heedful")] == [
        "heedful study compare boolq --lr 1e-4 --out studies/own",
        "heedful adapt m t --seed 1 --out runs/a-s1 --resume",
        "heedful pretrain m c --out runs/b-reading --resume",
        "heedful adapt runs/b-reading t --out runs/b --resume",
    ]
    assert "python scripts/results.py collect studies/own runs/a-s1 runs/b" in lines


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"runs": ["a", "b"], "command": "heedful adapt m t --seed 0"}, "name each -sSEED"),
        ({"runs": ["a"], "command": "heedful adapt m t --out runs/other"}, "must be named a"),
    ],
)
def test_a_row_whose_command_would_leave_something_else_is_refused(
    results: ModuleType, row: dict[str, Any], told: str
) -> None:
    with pytest.raises(SystemExit, match=told):
        results.missing(index({"label": "x", **row}))


def test_the_real_index_is_whole(results: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tomllib.loads((ROOT / "docs" / "results" / "index.toml").read_text("utf-8"))
    names = [name for s in real["section"] for row in s.get("row", []) for name in row["runs"]]
    assert len(names) == len(set(names))
    made = re.findall(r"--out (?:runs|studies)/(\S+)", results.missing(real))
    assert set(names) <= set(made)
    monkeypatch.setattr(results, "HERE", ROOT / "docs" / "results")
    shown = results.page(real)
    for row in (row for s in real["section"] for row in s.get("row", [])):
        assert row["label"] in shown
    for path in (ROOT / "docs" / "results").glob("*/answer.json"):
        assert json.loads(path.read_text("utf-8"))["finished"]
