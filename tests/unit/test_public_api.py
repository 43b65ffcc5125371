"""`heedful.adapt` and `heedful.load`: the command line's options and defaults, from Python."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import UserError
from heedful.options.launch import TrainLaunchOptions
from heedful.options.training import AdaptOptions
from heedful.runs.config import load_run_config
from heedful.runs.directory import Run


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("task") / "notes.csv"
    rows = [f"{'warm sun' if i % 2 else 'cold rain'} today {i},{'yes' if i % 2 else 'no'}" for i in range(60)]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from heedful import checkpoints, models, text
    from heedful.models import PRESETS

    folder = tmp_path_factory.mktemp("model")
    tokenizer = text.train(
        ["warm sun cold rain today 0 1 2 3 4 5 6 7 8 9"] * 5, kind="wordpiece", vocab_size=80, sentinels=0
    )
    tokenizer.save(folder / "t")
    sizes = {"d_model": 32, "d_ff": 64, "d_head": 16, "max_len": 32, "n_layers": 1}
    config = PRESETS["bert-tiny"].config.replace(vocab_size=tokenizer.vocab_size, **sizes)
    return checkpoints.export(models.build(config), folder / "m", tokenizer=folder / "t")


def test_every_public_name_is_there() -> None:
    for name in heedful.__all__:
        assert getattr(heedful, name) is not None
        assert name in dir(heedful)
    for name in heedful.SUBPACKAGES:
        assert inspect.ismodule(getattr(heedful, name))
    with pytest.raises(AttributeError, match="no attribute 'adopt'"):
        heedful.adopt  # noqa: B018


def test_the_signature_shows_the_command_lines_options_and_defaults() -> None:
    shown = inspect.signature(heedful.adapt).parameters
    assert list(shown)[:3] == ["model", "task", "labels"]
    options = {
        f.name: f.default
        for f in (*fields(AdaptOptions), *fields(TrainLaunchOptions))
        if f.name not in ("model", "task")
    }
    assert {name: p.default for name, p in shown.items() if name in options} == options
    assert len(shown) == len(options) + 3


@pytest.mark.parametrize(("name", "study"), [
    ("search", "search"), ("compare", "compare"), ("labels", "labels"), ("optimizers", "optimizers"),
    ("overfit", "overfit"), ("knowledge", "knowledge"), ("attention_study", "attention"),
])  # fmt: skip
def test_a_study_has_the_options_of_its_command(name: str, study: str) -> None:
    from heedful.api.commands import FUNCTIONS
    from heedful.studies import STUDIES

    kind, signature = STUDIES[study], FUNCTIONS[name][1]
    groups = [kind.options] if kind.run_options is None else [kind.options, kind.run_options]
    assert list(signature.groups[:-1]) == groups
    assert signature.arguments == tuple(kind.arguments)
    shown = inspect.signature(getattr(heedful, name)).parameters
    for option in signature.options().values():
        assert option.name in kind.arguments or shown[option.name].default == option.default
    assert f"\n{option.name}\n" in getattr(heedful, name).__doc__


def test_functions_with_arguments_of_their_own_have_the_command_lines_defaults() -> None:
    from heedful.cli import data_show, evaluate, predict, report, selftest, tokenizer_train

    commands = {
        heedful.evaluate: evaluate.command, heedful.predict: predict.command, heedful.report: report.command,
        heedful.tokenizer.train: tokenizer_train.command, heedful.data.show: data_show.command,
        heedful.selftest: selftest.command,
    }  # fmt: skip
    for function, command in commands.items():
        ours, theirs = inspect.signature(function).parameters, inspect.signature(command).parameters
        shared = [n for n in ours if n in theirs and theirs[n].default is not inspect.Parameter.empty]
        assert {n: str(ours[n].default) for n in shared} == {n: str(theirs[n].default) for n in shared}
        missing = set(theirs) - set(ours) - {"json", "launch", "figure", "text", "pair", "source"}
        assert not missing, function


def test_the_written_signatures_are_current() -> None:
    script = Path(__file__).parents[2] / "scripts" / "write_api.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_adapt_and_load_work_together(model: Path, task: Path, tmp_path: Path) -> None:
    done = heedful.adapt(
        model, task, method="lora", method_options={"rank": 2}, epochs=3, lr=0.02, max_len=16, threads=1,
        precision="float32", out=tmp_path / "run",
    )  # fmt: skip
    assert done.folder == tmp_path / "run"
    assert done.results.method == "lora"
    assert set(done.results.splits) == {"dev", "test"}
    assert done.checks.checks
    assert done == heedful.RunResult(tmp_path / "run")
    assert done.config["method"] == "lora"
    table = done.predictions()
    assert table.num_rows == done.results.splits["test"].n
    assert {"text", "label", "predicted", "confidence", "p_no", "p_yes"} <= set(table.column_names)
    assert table.to_pandas()["confidence"].between(0.5, 1).all()
    assert done.metrics().column_names[:3] == ["step", "epoch", "split"]
    assert done.predict(["warm sun today"])[0].label in ("no", "yes")
    assert done.figure("loss")["title"]["text"] == ["Loss by epoch"]
    with pytest.raises(UserError, match='unknown figure "los"; did you mean "loss"'):
        done.figure("los")
    assert done.report().html == tmp_path / "run" / "report.html"
    page = heedful.report(done, out=tmp_path / "page.html")
    assert page.html.is_file()
    scored = heedful.evaluate(done, split="dev")
    assert scored.value == pytest.approx(done.results.splits["dev"].value)
    assert scored.recorded == {"dev": done.results.splits["dev"].value}
    assert heedful.predict(done, "warm sun today").label == done.predict(["warm sun today"])[0].label
    labeled = heedful.predict(done, task, out=tmp_path / "labeled.csv")
    assert labeled.rows == 60
    adapted = heedful.load(done.folder)
    assert adapted.labels == ["no", "yes"]
    first, second = adapted.predict(["warm sun today", "cold rain today"])
    assert first.label in adapted.labels
    assert first.confidence == max(first.probabilities.values())
    assert sum(second.probabilities.values()) == pytest.approx(1)
    assert adapted.predict([]) == []


def test_the_same_options_give_the_command_lines_run(
    model: Path, task: Path, tmp_path: Path, heedful: object
) -> None:
    import heedful as package

    package.adapt(model, task, epochs=1, max_len=16, threads=1, precision="float32", out=tmp_path / "a")
    options = ("--epochs", 1, "--max-len", 16, "--threads", 1, "--precision", "float32")
    assert heedful("adapt", model, task, *options, "--out", tmp_path / "b").status == 0  # type: ignore[operator]
    for name in ("metrics.jsonl", "config.toml", "predictions_test.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


@pytest.mark.parametrize(("options", "line"), [
    ({"epoch": 3}, 'heedful.adapt: unknown option "epoch"; did you mean "epochs"'),
    ({"epochs": "3"}, 'heedful.adapt: epochs "3": must be a whole number'),
    ({"out": 3}, "heedful.adapt: out 3: must be a path"),
    ({"head": "wide"}, 'heedful.adapt: head "wide": must be auto, linear or family'),
    ({"method": "lora", "method_options": {"rnk": 1}}, 'unknown option of lora "rnk"'),
    ({"learning_rate": 1e-3}, "heedful.adapt: learning_rate is called lr here"),
    ({"num_train_epochs": 1}, "heedful.adapt: num_train_epochs is called epochs here"),
    ({"per_device_train_batch_size": 8}, "heedful.adapt: per_device_train_batch_size is called batch_size here"),
    ({"warmup_ratio": 0.1}, "heedful.adapt: warmup_ratio is called warmup here"),
    ({"max_length": 64}, "heedful.adapt: max_length is called max_len here"),
    ({"bf16": True}, 'heedful.adapt: there is no bf16 here; use precision="bfloat16"'),
    ({"gpus": "1"}, "gpus belongs to on=slurm"),
])  # fmt: skip
def test_a_wrong_option_is_told_as_on_the_command_line(
    model: Path, task: Path, options: dict[str, object], line: str
) -> None:
    with pytest.raises(UserError) as told:
        heedful.adapt(model, task, **options)
    assert line in str(told.value)


def test_a_mistake_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="called lr"):
        heedful.pretrain("char-gpt", "notes.txt", learning_rate=1)


def test_a_study_returns_its_table_its_best_run_and_its_answer(
    model: Path, task: Path, tmp_path: Path
) -> None:
    study = heedful.search(
        model, task, method="head", lr=[0.01, 0.1], epochs=1, max_len=16, threads=1, precision="float32",
        jobs=0, out=tmp_path / "study",
    )  # fmt: skip
    assert study.finished
    assert study.answer.study == "search"
    table = study.table()
    assert {"run", "lr", "state", "dev"} <= set(table.columns)
    assert table.to_pandas()["lr"].tolist() == [0.01, 0.1]
    assert study.best is not None
    assert study.best.results.splits["dev"].value == max(
        row[table.columns.index("dev")] for row in table.rows
    )
    assert study.figures
    assert study.figure(study.figures[0])["title"]
    assert study.report(tmp_path / "study.html").html.is_file()
    for shown in (study, study.best, study.answer, table):
        html = shown._repr_html_()
        assert "<table" in html
        assert "<script" not in html
        assert "http" not in html.replace("http://www.w3.org", "")
    picture = study.figure(study.figures[0])._repr_mimebundle_()
    assert picture["image/svg+xml"].startswith("<svg")
    assert picture["image/png"].startswith("iVBOR")


def test_the_scripts_of_a_cluster_are_returned(model: Path, task: Path, tmp_path: Path) -> None:
    run = heedful.adapt(model, task, out=tmp_path / "r", on="slurm", dry_run=True, time_min=30)
    assert run.script.startswith("#!/bin/bash")
    assert not run.finished
    with pytest.raises(UserError, match="there is no such folder"):
        run.results  # noqa: B018
    study = heedful.search(model, task, out=tmp_path / "s", on="slurm", dry_run=True, lr=[0.1, 0.2])
    assert "--array" in study.script
    assert study.folder == tmp_path / "s"


def test_a_tokenizer_and_a_summary_of_data(task: Path, tmp_path: Path) -> None:
    trained = heedful.tokenizer.train(["warm sun", "cold rain"] * 9, kind="word", out=tmp_path / "words")
    assert heedful.text.load(tmp_path / "words").fingerprint == trained.fingerprint
    summary = heedful.data.show(task, tokenizer=tmp_path / "words")
    assert summary.labels == ["no", "yes"]
    assert summary.baselines["dev"]["bag_of_words"] >= 0.5
    assert "bag of words" in summary._repr_html_()
    assert summary.figure()["title"]


def test_what_is_no_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a run"):
        heedful.load(tmp_path)


def test_asking_for_adapt_does_not_import_torch() -> None:
    code = "import sys, heedful; heedful.adapt; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.long
def test_the_reference_is_current() -> None:
    script = Path(__file__).parents[2] / "scripts" / "api_reference.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_table_of_texts_is_labeled_row_by_row(model: Path, task: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    run = heedful.adapt(
        model, task, epochs=1, max_len=16, threads=1, precision="float32", method="head", out=tmp_path / "run"
    )
    loaded = heedful.load(run)
    frame = pandas.DataFrame({"number": range(5), "text": [f"warm sun today {i}" for i in range(5)]})
    expected = loaded.predict_proba(frame["text"])
    assert expected.shape == (5, 2)
    assert (loaded.predict_proba(frame) == expected).all()  # before: one row per column, of random memory
    assert (loaded.predict_proba(frame[["text"]].to_dict("list")) == expected).all()
    assert (loaded.predict_proba(pandas.DataFrame({"other": frame["text"]})) == expected).all()
    with pytest.raises(UserError, match='the table has number, body, but not "text"'):
        loaded.predict(frame.rename(columns={"text": "body"}))
    with pytest.raises(UserError, match="row 0 is int"):
        loaded.predict(frame["number"])
    with pytest.raises(UserError, match="5 texts but 2 second texts"):
        loaded.predict(frame, ["a", "b"])


def test_a_prompt_is_as_long_as_the_texts_unless_it_is_told(
    model: Path, task: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "heedful")
    options: dict[str, Any] = {
        "method": "prompt",
        "epochs": 1,
        "max_len": 16,
        "threads": 1,
        "precision": "float32",
    }
    run = heedful.adapt(model, task, out=tmp_path / "run", **options)
    assert run.config["method_options"] == ["length=8"]  # texts of a few words, and eight at least
    assert "the prompt has length=8: the median text has" in caplog.text
    assert len(run.predict(["warm sun"])) == 1
    # The same command goes on with what was chosen.
    (run.folder / "results.json").unlink()
    again = heedful.adapt(model, task, out=tmp_path / "run", resume=True, **options)
    assert again.results.splits == run.results.splits
    given = heedful.adapt(model, task, out=tmp_path / "given", method_options={"length": 3}, **options)
    assert given.config["method_options"] == ["length=3"]
    # A run of an older version does not say its length.
    config = run.folder / "config.toml"
    config.write_text(config.read_text().replace('["length=8"]', "[]"))
    assert load_run_config(run.folder).method_options == ("length=128",)  # type: ignore[union-attr]
    assert Run.open(run.folder).read_config()["adapt"]["method_options"] == ["length=128"]


@pytest.mark.parametrize(("rows", "where"), [
    (["a", "b"], "the data row 1: one column only"),
    ({"train": {"text": ["a", "b"] * 9, "label": ["x", "y"] * 9}, "test": {"text": ["c"], "label": ["z"]}},
     'test of the data row 1: label "z" is not in train'),
])  # fmt: skip
def test_messages_about_data_in_memory_do_not_name_its_copy(rows: Any, where: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"^{where}"):
        heedful.adapt("tfidf", rows, out=tmp_path / "run")
