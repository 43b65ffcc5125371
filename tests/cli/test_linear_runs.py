"""`heedful adapt tfidf`: a linear model of words, in a run like any other."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful as package
from heedful.errors import UserError
from heedful.evaluation.metrics import find_metric
from heedful.inference.predictor import LinearPredictor
from heedful.linear.folders import is_linear
from heedful.linear.model import TfidfModel
from heedful.solve.candidates import CANDIDATES
from heedful.studies.shared.scores import read_predictions
from heedful.training.machine import notice_once


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_task: Path) -> Path:
    return package.adapt("tfidf", tiny_task, out=tmp_path_factory.mktemp("linear") / "run").folder


def test_a_run_has_the_files_of_every_run(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    assert (results["model"], results["method"], results["loads_with"]) == ("tfidf", "logistic", "heedful")
    dev = results["splits"]["dev"]
    assert dev["value"] > 0.9
    assert dev["ci95"][0] < dev["value"] <= dev["ci95"][1]
    assert dev["baselines"].keys() == {"chance", "majority"}  # it is the bag of words of other runs
    assert not list(run.glob("bag_of_words_*"))
    checks = {c["name"]: c["status"] for c in json.loads((run / "checks.json").read_text())["checks"]}
    assert checks["reload"] == "passed"
    assert "beats_bag_of_words" not in checks
    assert {p.name for p in (run / "best").iterdir()} == {"linear.json", "model.safetensors"}
    assert [json.loads(row)["split"] for row in (run / "metrics.jsonl").read_text().splitlines()] == [
        "train_eval",
        "dev",
    ]
    assert {"env.json", "timing.jsonl", "predictions_test.jsonl"} <= {p.name for p in run.iterdir()}


def test_predictions_are_those_that_the_run_recorded(run: Path) -> None:
    rows = [json.loads(line) for line in (run / "predictions_dev.jsonl").read_text().splitlines()]
    predictor = package.load(run)
    assert isinstance(predictor, LinearPredictor)
    probabilities = predictor.predict_proba([row["text"] for row in rows])
    recorded = [[row["probabilities"][name] for name in predictor.classes] for row in rows]
    assert np.array_equal(probabilities, recorded)
    assert [one.label for one in predictor.predict([rows[0]["text"]])] == [rows[0]["predicted"]]


def test_evaluate_check_report_and_file_take_it(
    run: Path, tiny_task: Path, tmp_path: Path, heedful: Callable[..., Any]
) -> None:
    recorded = json.loads((run / "results.json").read_text())["splits"]
    for split in ("dev", "test"):
        assert package.evaluate(run, split=split).splits[split].value == recorded[split]["value"]
    assert package.evaluate(run, data=tiny_task).splits["data"].n == 240
    done = heedful("check", run)
    assert done.status == 0, done.err
    assert "reload" in done.out
    assert heedful("report", run, "--out", tmp_path / "report.html").status == 0
    counts = package.predict(run, tiny_task, out=tmp_path / "labeled.csv").counts
    assert sum(counts.values()) == 240


def test_export_copies_the_folder_and_predict_takes_it(
    run: Path, tmp_path: Path, heedful: Callable[..., Any]
) -> None:
    done = heedful("export", run, tmp_path / "model")
    assert done.status == 0, done.err
    assert {p.name for p in (tmp_path / "model").iterdir()} == {"linear.json", "model.safetensors"}
    texts = ["lovely warm staff", "awful cold room"]
    answers = package.load(tmp_path / "model").predict(texts)
    assert (
        [a.label for a in answers] == [a.label for a in package.load(run).predict(texts)] == ["good", "bad"]
    )
    merged = heedful("export", run, tmp_path / "merged", "--merge")
    assert (merged.status, merged.err) == (
        2,
        "heedful: --merge is for adapters; a linear model of words has no base model\n",
    )


def test_predicting_imports_neither_sklearn_nor_torch(run: Path) -> None:
    code = (
        "import sys; from heedful.cli import main\n"
        f"try: main(['predict', {str(run)!r}, 'lovely warm staff'])\n"
        "finally: print({'sklearn', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "good" in done.stdout.splitlines()[0], done.stderr
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_finished_run_is_resumed_and_repeated(
    run: Path, tiny_task: Path, tmp_path: Path, heedful: Callable[..., Any]
) -> None:
    before = (run / "results.json").stat().st_mtime_ns
    assert heedful("adapt", "tfidf", tiny_task, "--out", run, "--resume").status == 0
    assert (run / "results.json").stat().st_mtime_ns == before
    assert heedful("run", run / "config.toml", "--set", f"out={tmp_path / 'again'}").status == 0
    first, second = (TfidfModel.load(folder / "best") for folder in (run, tmp_path / "again"))
    assert np.array_equal(first.linear.weight, second.linear.weight)


@pytest.mark.parametrize(
    ("option", "value"), [("method", "lora"), ("lr", 0.1), ("epochs", 3), ("max_len", 64), ("device", "cuda"), ("processes", 2)]
)  # fmt: skip
def test_options_of_networks_are_refused(tiny_task: Path, tmp_path: Path, option: str, value: Any) -> None:
    message = f"^tfidf is fitted to the words of the texts, without a network or steps; leave {option} away$"
    with pytest.raises(package.UserError, match=message):
        package.adapt("tfidf", tiny_task, out=tmp_path / "run", **{option: value})
    assert not (tmp_path / "run").exists()


def test_rows_are_chosen_as_for_networks_and_estimators_take_it(tiny_task: Path, tmp_path: Path) -> None:
    done = package.adapt(
        "tfidf", tiny_task, train_rows=20, score_dev=False, score_test=False, out=tmp_path / "run"
    )
    assert done.results.splits == {}
    assert done.results.examples_per_second * done.results.seconds == pytest.approx(20)
    texts = ["lovely warm", "awful rude", "kind fresh", "cold dirty"] * 10
    classifier = package.TextClassifier("tfidf").fit(texts, [1, 0, 1, 0] * 10)
    assert classifier.predict(["kind warm", "cold awful"]).tolist() == [1, 0]


def test_the_most_frequent_label_is_a_run_too(tmp_path: Path, heedful: Callable[..., Any]) -> None:
    labels = ["ham"] * 90 + ["spam"] * 30
    texts = [f"message {number}" for number in range(120)]
    data = {"train": (texts[::2], labels[::2]), "dev": (texts[1::2], labels[1::2])}
    run = package.adapt("majority", data, out=tmp_path / "run")
    assert run.results.splits["dev"].value == 0.75
    assert run.results.splits["dev"].baselines is None
    names = {check.name for check in run.checks.checks}
    assert "reload" in names
    assert not names & {"collapse", "beats_bag_of_words"}  # it is a baseline itself
    done = heedful("export", run.folder, tmp_path / "model")
    assert done.status == 0, done.err
    for folder in (run.folder, tmp_path / "model"):
        answer = package.load(folder).predict(["anything"])[0]
        assert answer.label == "ham"
        assert answer.probabilities == pytest.approx({"ham": 0.75, "spam": 0.25})
    assert package.evaluate(run.folder, split="dev").value == 0.75
    with pytest.raises(package.UserError, match=r"majority counts the labels of train.* class.weights away"):
        package.adapt("majority", data, class_weights="balanced")


def test_free_answers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(
        package.UserError, match="tfidf gives labels or numbers; world/birthplaces asks for free answers"
    ):
        package.adapt("tfidf", "world/birthplaces", out=tmp_path / "run")


@pytest.mark.parametrize("name", ["tfidf", "majority"])
def test_a_folder_of_the_same_name_is_another_model(
    name: str,
    tiny_task: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).mkdir()
    notice_once.cache_clear()
    with caplog.at_level("INFO", "heedful"):
        run = package.adapt(name, tiny_task.resolve(), out=tmp_path / "run").folder
    assert f"{name}: is the linear model of this name; for the folder, write ./{name}" in caplog.messages
    assert package.evaluate(run, split="dev").splits["dev"].n
    with pytest.raises(UserError, match="has no tokenizer"):
        package.adapt(f"./{name}", tiny_task.resolve(), out=tmp_path / "other")
    (tmp_path / "ensemble").mkdir()
    with pytest.raises(UserError, match=r"average of runs.*write \./ensemble"):
        package.adapt("ensemble", tiny_task.resolve(), out=tmp_path / "other")


def test_candidates_without_an_encoder_never_mean_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = [one.settings["model"] for one in CANDIDATES if not one.encoder]
    assert names
    for name in names:
        (tmp_path / name).mkdir()
        assert is_linear(name)


def write_kinds(folder: Path) -> None:
    rng = np.random.default_rng(0)
    sets, numbers, stars = ["text,label"], ["text,score"], ["text,stars"]
    for i in range(240):
        noise = " ".join(rng.choice(["the", "a", "so", "and"], 3))
        chosen = [name for name in ("joy", "love", "fear") if rng.random() < 0.4]
        sets.append(f"{' '.join(chosen)} {noise} {i},{'|'.join(chosen)}")
        number, star = rng.random() * 5, rng.integers(1, 5)
        numbers.append(f"{'good ' * round(number)}{noise} {i},{number:.3f}")
        stars.append(f"star{star} {noise} {i},{star}")
    for name, rows in (("sets", sets), ("numbers", numbers), ("stars", stars)):
        (folder / f"{name}.csv").write_text("\n".join(rows))


@pytest.mark.parametrize(
    ("name", "options", "metric", "constants"),
    [
        ("sets", {}, "micro_f1", {"majority", "every_label"}),
        ("numbers", {}, "pearson", {"train_mean"}),
        ("stars", {"kind": "ordered"}, "accuracy", {"chance", "majority", "median_class"}),
    ],
)
def test_each_kind_of_answers_has_a_linear_model(
    name: str, options: dict[str, Any], metric: str, constants: set[str], tmp_path: Path
) -> None:
    write_kinds(tmp_path)
    run = package.adapt("tfidf", tmp_path / f"{name}.csv", **options, out=tmp_path / "run")
    test = run.results.splits["test"]
    assert test.metric == metric
    assert test.value > 0.9
    assert test.baselines.keys() == constants
    assert package.evaluate(run.folder, split="test").splits["test"].value == test.value
    least = package.adapt("majority", tmp_path / f"{name}.csv", **options, out=tmp_path / "least").results
    assert least.splits["test"].value < 0.8
    model = TfidfModel.load(run.folder / "best")
    if name == "sets":
        assert len(model.thresholds) == 3
        assert least.splits["test"].value > 0.3  # thresholds are tuned: one constant set, not the empty one


def test_studies_compare_runs_of_each_kind_by_their_metric(tmp_path: Path) -> None:
    write_kinds(tmp_path)
    for name, refused in (("sets", "any number of labels|several labels"), ("numbers", "a number per text")):
        runs = [
            package.adapt(model, tmp_path / f"{name}.csv", out=tmp_path / f"{name}-{model}").folder
            for model in ("tfidf", "majority")
        ]
        results = [json.loads((run / "results.json").read_text()) for run in runs]
        labels = tuple(results[0]["labels"] or ())
        metric = find_metric(results[0]["splits"]["test"]["metric"], labels)
        pairs = [read_predictions(run / "predictions_test.jsonl", 0, metric.reads, labels) for run in runs]
        assert np.array_equal(pairs[0][0], pairs[1][0])
        assert metric.compute(*pairs[0]) == results[0]["splits"]["test"]["value"]
        assert metric.p_value(pairs[0][0], pairs[0][1], pairs[1][1]) < 0.05
        with pytest.raises(package.UserError, match="needs one label per text"):
            package.overfit("minilm", tmp_path / f"{name}.csv", out=tmp_path / "study")
        with pytest.raises(package.UserError, match=refused):
            package.labels("minilm", tmp_path / f"{name}.csv", sizes="20,all", out=tmp_path / "study")
