"""Labels for a text, a pair, and files of any size and content."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import heedful as package
from heedful.inference import files


@pytest.fixture(scope="module")
def pair_run(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    rows = [f"is the room warm {i},the room was {'warm' if i % 2 else 'cold'} {i},{i % 2}" for i in range(80)]
    (folder / "pairs.csv").write_text("\n".join(["question,passage,label", *rows]) + "\n")
    done = package.adapt(
        tiny_bert, folder / "pairs.csv", method="head", epochs=1, threads=1, precision="float32",
        max_len=32, out=folder / "run",
    )  # fmt: skip
    return done.folder


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_text_gets_a_label_and_its_probability(
    heedful: Callable[..., Any], run_of: Callable[[str], Path]
) -> None:
    done = heedful("predict", run_of("full"), "lovely warm fresh staff", "--json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert found["label"] == max(found["probabilities"], key=found["probabilities"].get) == "good"
    assert found["confidence"] == max(found["probabilities"].values())
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    assert "good" in heedful("predict", run_of("full"), "lovely warm fresh staff").out.splitlines()[0]


def test_an_unsure_model_says_so_on_the_command_line_and_in_python(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    run, text = run_of("full"), "lovely warm fresh staff"
    sure = package.predict(run, text).confidence
    above = f"{(1 + sure) / 2:.6f}"
    done = heedful("predict", run, text, "--min-confidence", above, "--json")
    assert done.status == 0, done.err
    facts = json.loads(done.out)
    assert (facts["label"], facts["confidence"]) == ("not sure", pytest.approx(sure))
    assert facts["threshold"] == float(above)
    assert "not sure" in heedful("predict", run, text, "--min-confidence", above).out
    (tmp_path / "in.csv").write_text(f"text\n{text}\n")
    heedful(
        "predict", run, "--in", tmp_path / "in.csv", "--out", tmp_path / "out.csv", "--min-confidence", above
    )
    [row] = read(tmp_path / "out.csv")
    assert row["label"] == "not sure"
    assert float(row["confidence"]) == pytest.approx(sure, abs=1e-5)
    [answer] = package.load(run).predict([text], min_confidence=float(above))
    assert answer.label == "not sure"
    assert package.predict(run, text, calibrate=True).label == "good"
    refused = heedful("predict", run, text, "--max-risk", "0.001")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert "cannot promise it" in refused.err


@pytest.mark.parametrize("text", ["", " \n"], ids=repr)
def test_an_empty_text_is_refused(
    text: str, heedful: Callable[..., Any], run_of: Callable[[str], Path], pair_run: Path
) -> None:
    for command in ((run_of("full"), text), (pair_run, "is it warm", text)):
        done = heedful("predict", *command)
        assert (done.status, done.err) == (2, "heedful: the text is empty: there is nothing to label\n")


@pytest.mark.parametrize("method", ["full", "head", "prompt"])
def test_predictions_are_those_that_the_run_recorded(run_of: Callable[[str], Path], method: str) -> None:
    run = run_of(method)
    rows = [json.loads(line) for line in (run / "predictions_dev.jsonl").read_text().splitlines()]
    answers = package.load(run).predict([row["text"] for row in rows])
    assert [a.label for a in answers] == [row["predicted"] for row in rows]
    for answer, row in zip(answers, rows, strict=True):
        assert answer.probabilities == pytest.approx(row["probabilities"], abs=1e-6)


def test_predict_proba_has_a_column_per_class(run_of: Callable[[str], Path]) -> None:
    predictor = package.load(run_of("full"))
    texts = ["lovely warm fresh staff", "cold and rude"]
    probabilities = predictor.predict_proba(texts)
    assert predictor.classes == predictor.labels
    assert probabilities.shape == (2, len(predictor.classes))
    for row, one in zip(probabilities.tolist(), predictor.predict(texts), strict=True):
        assert dict(zip(predictor.classes, row, strict=True)) == one.probabilities
    assert predictor.predict_proba([]).shape == (0, len(predictor.classes))


def test_a_model_of_pairs_takes_pairs_only(
    heedful: Callable[..., Any], pair_run: Path, run_of: Callable[[str], Path]
) -> None:
    done = heedful("predict", pair_run, "is the room warm", "the room was cold", "--json")
    assert json.loads(done.out)["label"] in ("0", "1")
    assert "labels pairs of texts" in heedful("predict", pair_run, "is the room warm").err
    assert "labels single texts, not pairs" in heedful("predict", run_of("full"), "a", "b").err


def test_a_file_of_pairs_is_read_by_its_columns(
    heedful: Callable[..., Any], pair_run: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("id,question,passage\n7,is it warm,the room was warm\n")
    assert heedful("predict", pair_run, "--in", tmp_path / "in.csv", "--out", tmp_path / "o.csv").status == 0
    [row] = read(tmp_path / "o.csv")
    (answer,) = package.load(pair_run).predict(["is it warm"], ["the room was warm"])
    assert row["label"] == answer.label
    assert float(row["confidence"]) == pytest.approx(answer.confidence, abs=1e-5)
    (tmp_path / "one.csv").write_text("id,question\n7,is it warm\n")
    done = heedful("predict", pair_run, "--in", tmp_path / "one.csv", "--out", tmp_path / "p.csv")
    assert done.status == 2
    assert not (tmp_path / "p.csv").exists()


HOSTILE = [
    '=cmd|" /C calc"!A0',
    'quotes "inside", commas',
    "two\nlines",
    "carriage\rreturn",
    "[bold red]markup[/]",
    "\x1b[31mescape \x07 codes",
    "<script>alert(1)</script>",
    "naïve café 🙂 \u202e right to left",
]


def test_hostile_cells_are_data(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    source, out = tmp_path / "in.csv", tmp_path / "out.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["id", "text", "note"])
        table.writerows([i, cell, cell] for i, cell in enumerate(HOSTILE))
    done = heedful("predict", run_of("full"), "--in", source, "--out", out, "--raw-cells")
    assert done.status == 0, done.err
    assert "\x1b" not in done.out
    rows = read(out)
    assert [row["text"] for row in rows] == HOSTILE
    assert [row["note"] for row in rows] == HOSTILE
    answers = package.load(run_of("full")).predict(HOSTILE)
    assert [row["label"] for row in rows] == [a.label for a in answers]


def test_a_spreadsheet_computes_no_cell_of_a_labeled_file(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    formulas = ['=cmd|" /C calc"!A0', "@SUM(1)", "+1+cmd|' /C calc'!A0", "-2+3", "\t=1", "\uff1d1+1", " =1+1"]
    plain = ["-5", "+49 30 1234", "-1.5e3", "-12,5 %", "-", "a = b", "fine"]
    cells = formulas + plain
    source = tmp_path / "in.csv"
    with source.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["text", "=note"])
        table.writerows(["warm room", cell] for cell in cells)
    for name, options in (("o.csv", ()), ("raw.csv", ("--raw-cells",)), ("o.jsonl", ())):
        done = heedful("predict", run_of("full"), "--in", source, "--out", tmp_path / name, *options)
        assert done.status == 0, done.err
        assert ("8 cells begin like a formula" in done.err) == (name == "o.csv")
    rows = read(tmp_path / "o.csv")
    assert [row["'=note"] for row in rows] == [*(f"'{cell}" for cell in formulas), *plain]
    assert [row["=note"] for row in read(tmp_path / "raw.csv")] == cells
    lines = (tmp_path / "o.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["=note"] for line in lines] == cells


def test_probabilities_have_a_column_per_label(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    texts = ["lovely warm fresh staff", "the room was dirty"]
    (tmp_path / "in.csv").write_text("text,probability_good\n" + "".join(f"{text},x\n" for text in texts))
    out = tmp_path / "o.csv"
    done = heedful(
        "predict", run_of("full"), "--in", tmp_path / "in.csv", "--out", out, "--probabilities", "--json"
    )
    assert done.status == 0, done.err
    new = ["label", "confidence", "probability_bad", "predicted_probability_good"]
    assert json.loads(done.out)["columns"] == new
    rows = read(out)
    assert list(rows[0]) == ["text", "probability_good", *new]
    for row, answer in zip(rows, package.load(run_of("full")).predict(texts), strict=True):
        shares = [float(row["probability_bad"]), float(row["predicted_probability_good"])]
        assert shares == pytest.approx([answer.probabilities["bad"], answer.probabilities["good"]], abs=1e-5)


def test_parquet_keeps_the_types_of_its_columns(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({
        "id": pa.array([1, None, 3], pa.int32()),
        "text": ["lovely warm staff", "", "the room was dirty"],
        "when": pa.array([0, 1, None], pa.timestamp("ms", tz="UTC")),
        "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
        "tags": [["=x"], [], None],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "in.parquet")
    out = tmp_path / "out.parquet"
    options = ("--probabilities", "--out", out)
    done = heedful("predict", run_of("full"), "--in", tmp_path / "in.parquet", *options)
    assert done.status == 0, done.err
    found = pq.read_table(out)
    assert found.select(table.column_names).equals(table)
    answers = package.load(run_of("full")).predict(["lovely warm staff", "the room was dirty"])
    wanted = [answers[0].label, None, answers[1].label]
    assert found["label"].to_pylist() == wanted
    assert (
        found.schema.field("confidence").type == found.schema.field("probability_good").type == pa.float64()
    )


def test_json_lines_become_columns_of_parquet_with_types(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = [
        {"text": "warm", "n": 1, "x": 1, "big": 2**60, "ok": True, "any": {"a": [1]}, "half": "\ud800"},
        {"text": "cold", "n": None, "x": 0.5, "big": 1, "ok": False, "any": 7, "late": 2**70},
    ]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("o.parquet", "o.csv"):
        done = heedful("predict", run_of("full"), "--in", tmp_path / "in.jsonl", "--out", tmp_path / name)
        assert done.status == 0, done.err
    found = pq.read_table(tmp_path / "o.parquet")
    types = {field.name: str(field.type) for field in found.schema}
    assert types == {
        "text": "string", "n": "int64", "x": "double", "big": "int64", "ok": "bool", "any": "string",
        "half": "string", "late": "string", "label": "string", "confidence": "double",
    }  # fmt: skip
    assert found["any"].to_pylist() == ['{"a": [1]}', "7"]
    assert found["big"].to_pylist() == [2**60, 1]
    assert found["late"].to_pylist() == [None, str(2**70)]


def test_numbers_and_late_keys_come_out_as_they_went_in(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    rows = [{"id": 123456789.0, "when": 1700000000.123, "text": "lovely warm staff"} for _ in range(250)]
    rows.append({**rows[0], "reply": "thanks", "label": "mine"})
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert heedful("predict", run_of("full"), "--in", source, "--out", out).status == 0
    found = read(out)
    assert {(row["id"], row["when"]) for row in found} == {("123456789.0", "1700000000.123")}
    assert list(found[0]) == [
        "id",
        "when",
        "text",
        "reply",
        "label",
        "predicted_label",
        "predicted_confidence",
    ]
    assert (found[-1]["reply"], found[-1]["label"], found[0]["reply"]) == ("thanks", "mine", "")


def test_the_first_line_of_a_text_is_a_text_and_a_trained_column_a_header(
    heedful: Callable[..., Any], tiny_bert: Path, tmp_path: Path
) -> None:
    lines = tmp_path / "answers.txt"
    lines.write_text("\n".join(["maybe", *["yes", "no"] * 10]) + "\n")
    task = tmp_path / "task.csv"
    rows = [f"{'warm' if i % 2 else 'cold'} room {i},{'gut' if i % 2 else 'schlecht'}" for i in range(80)]
    task.write_text("\n".join(["Rezension,Urteil", *rows]) + "\n")
    run = package.adapt(
        tiny_bert,
        task,
        method="head",
        epochs=1,
        threads=1,
        precision="float32",
        max_len=32,
        out=tmp_path / "r",
    ).folder
    assert heedful("predict", run, "--in", lines, "--out", tmp_path / "a.csv").status == 0
    assert len(read(tmp_path / "a.csv")) == 21
    (tmp_path / "new.csv").write_text("Nummer,Rezension\n1,warm room\n2,cold room\n")
    assert heedful("predict", run, "--in", tmp_path / "new.csv", "--out", tmp_path / "b.csv").status == 0
    assert [row["Rezension"] for row in read(tmp_path / "b.csv")] == ["warm room", "cold room"]


def test_a_text_without_tokens_gets_one_line(
    heedful: Callable[..., Any], tiny_task: Path, tmp_path: Path
) -> None:
    done = heedful(
        "adapt", "char-gpt", tiny_task, "--tokenizer", "char", "--model-options", "n_layers=1", "d_model=16",
        "n_heads=2", "d_ff=16", "--epochs", 1, "--train-rows", 32, "--threads", 1, "--precision", "float32",
        "--max-len", 32, "--out", tmp_path / "r",
    )  # fmt: skip
    assert done.status == 0, done.err
    empty = heedful("predict", tmp_path / "r", "")
    assert (empty.status, empty.err) == (2, "heedful: the text is empty: there is nothing to label\n")


def test_a_column_that_differs_in_case_alone_is_not_added() -> None:
    assert files.new_columns(["Text", "Label"]) == ("predicted_label", "predicted_confidence")
    assert files.new_columns(["Text", "stars"]) == ("label", "confidence")


def test_columns_that_are_there_keep_their_names(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tiny_task: Path, tmp_path: Path
) -> None:
    out = tmp_path / "labeled.csv"
    done = heedful("predict", run_of("full"), "--in", tiny_task, "--out", out, "--json")
    facts = json.loads(done.out)
    rows = read(out)
    assert facts["rows"] == len(rows) == 240 == sum(facts["counts"].values())
    assert list(rows[0]) == ["text", "label", "predicted_label", "predicted_confidence"]
    original = read(tiny_task)
    assert [row["label"] for row in rows] == [row["label"] for row in original]
    right = sum(row["label"] == row["predicted_label"] for row in rows)
    assert right > 200


def test_a_file_is_labeled_in_constant_memory(
    heedful: Callable[..., Any],
    run_of: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "CHUNK_ROWS", 8)
    held: list[int] = []
    plain = files.Labeler.label_rows
    monkeypatch.setattr(
        files.Labeler,
        "label_rows",
        lambda self, chunk, layout: held.append(len(chunk)) or plain(self, chunk, layout),
    )
    (tmp_path / "in.txt").write_text("".join(f"the room was warm {i}\n" for i in range(30)))
    done = heedful("predict", run_of("full"), "--in", tmp_path / "in.txt", "--out", tmp_path / "o.jsonl")
    assert done.status == 0, done.err
    assert held == [8, 8, 8, 6]
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert [row["1"] for row in rows] == [f"the room was warm {i}" for i in range(30)]


def test_long_rows_make_smaller_chunks() -> None:
    rows = ((["x" * 2**20], "x", None) for _ in range(20))
    assert [len(chunk) for chunk in files.chunks(rows)] == [8, 8, 4]


def test_a_row_that_is_wrong_is_found_before_anything_is_written(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("id,text\n1,fine\n2,\n")
    files = ("--in", tmp_path / "in.csv", "--out", tmp_path / "o.csv")
    done = heedful("predict", run_of("full"), *files, "--strict")
    assert done.status == 2
    assert "in.csv line 3: empty text" in done.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv"]


def test_a_row_without_a_text_is_written_without_a_label(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    (tmp_path / "in.csv").write_text("id,text\n1,fine\n2,\n3,poor\n")
    done = [
        heedful("predict", run_of("full"), "--in", tmp_path / "in.csv", "--out", tmp_path / name)
        for name in ("o.csv", "o.jsonl")
    ]
    assert [one.status for one in done] == [0, 0]
    assert "1 of 3 rows get no label, first line 3: empty text" in done[0].err
    lines = (tmp_path / "o.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines] == ["id", "1", "2", "3"]
    assert lines[2] == "2,,,"
    rows = [json.loads(line) for line in (tmp_path / "o.jsonl").read_text().splitlines()]
    assert rows[1] == {"id": "2", "text": "", "label": None, "confidence": None}
    assert all(row["label"] in ("good", "bad") for row in (rows[0], rows[2]))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_new_file_has_the_dialect_of_the_old_one(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path, encoding: str
) -> None:
    old, new = tmp_path / "in.csv", tmp_path / "o.csv"
    old.write_bytes("id;text\r\n1;süß, fine\r\n2;poor\r\n".encode(encoding))
    assert heedful("predict", run_of("full"), "--in", old, "--out", new).status == 0
    raw = new.read_bytes()
    lines = raw.decode(encoding).split("\r\n")
    assert lines[0] == "id;text;label;confidence"
    assert lines[1].startswith("1;süß, fine;")
    assert len(lines) == 4
    mark = {"utf-8-sig": b"\xef\xbb\xbf", "utf-16": b"\xff\xfe"}.get(encoding, b"id")
    assert raw.startswith(mark)
    assert heedful("predict", run_of("full"), "--in", old, "--out", tmp_path / "o.tsv").status == 0
    assert (tmp_path / "o.tsv").read_bytes().decode().splitlines()[0] == "id\ttext\tlabel\tconfidence"


def test_mistakes_get_one_line(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tiny_task: Path, tmp_path: Path
) -> None:
    run = run_of("full")
    assert "give one of them" in heedful("predict", run).err
    assert "belong together" in heedful("predict", run, "--in", tiny_task).err
    assert (
        ".csv, .tsv, .jsonl, .ndjson, .parquet"
        in heedful("predict", run, "--in", tiny_task, "--out", tmp_path / "o.xls").err
    )
    (tmp_path / "there.csv").write_text("mine")
    done = heedful("predict", run, "--in", tiny_task, "--out", tmp_path / "there.csv")
    assert "--overwrite replaces it" in done.err
    assert (tmp_path / "there.csv").read_text() == "mine"
    args = ("--in", tiny_task, "--out", tmp_path / "o.csv", "--text-column", "txt")
    assert 'did you mean "text"?' in heedful("predict", run, *args).err
