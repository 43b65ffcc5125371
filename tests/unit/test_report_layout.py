"""What a report says of runs and studies, before it is drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.report import run_comparison
from heedful.report.charts.images import render_chart
from heedful.report.facts import load_facts
from heedful.report.layout import build_page
from heedful.report.page import Headline, Page
from heedful.report.sentences.comparisons import describe_comparisons
from heedful.report.sentences.runs import describe_checks
from heedful.runs import Figure, Table
from heedful.runs.answers import write_answer
from heedful.runs.directory import Run
from heedful.runs.schemas import Check
from heedful.runs.studies import Configuration, StudyFolder, StudyRecord
from heedful.statistics.comparison import Comparison, compare_all
from made_runs import HOSTILE, answer, write_answering_run, write_language_run, write_run, write_study


def page_of(*folders: Path) -> Page:
    return build_page(load_facts(folders))


def blocks(page: Page, kind: str) -> list[dict[str, Any]]:
    """All blocks of a kind, also those in parts that the reader opens."""
    found, left = [], [*page.lead, *page.blocks]
    while left:
        block = left.pop(0)
        left = [*block.get("blocks", []), *left]
        if block["type"] == kind:
            found.append(block)
    return found


def table(page: Page, column: str) -> list[dict[str, str]]:
    """The rows of the first table with this column, by the names of the columns."""
    for block in blocks(page, "table"):
        names = [c["name"] for c in block["columns"]]
        if column in names:
            return [dict(zip(names, (cell["text"] for cell in row), strict=True)) for row in block["rows"]]
    raise AssertionError(f"no table has a column {column!r}")


def values(chart: dict[str, Any]) -> list[dict[str, Any]]:
    """All rows of data in a chart."""
    found = list(chart.get("data", {}).get("values", []))
    for layer in chart.get("layer", []):
        found += values(layer)
    return found


def test_a_run_says_its_score_first_with_interval_and_baselines(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run"))
    split = json.loads((tmp_path / "run" / "results.json").read_text())["splits"]["test"]
    assert page.title == "minilm on sentences, full"
    low, high = split["ci95"]
    interval = f"{low:.3f} to {high:.3f}"
    assert page.summary[0] == (
        f"The accuracy on test is {split['value']:.3f} (95 % interval {interval}): "
        "it beats the best baseline, a bag of words (0.610)."
    )
    assert page.headline == Headline(
        page.summary[0], "good", f"{split['value']:.3f}", "accuracy on test",
        f"95 % interval {interval}, 80 examples", "test",
    )  # fmt: skip
    assert page.summary[1].startswith(f"On test the accuracy is {split['value']:.3f} (95 % interval ")
    assert page.summary[1].endswith("chance 0.500, most frequent label 0.520, bag of words 0.610.")
    assert "Dev selected epoch 3." in page.summary[3]
    last = page_of(write_run(tmp_path / "last", select="last"))
    assert "The last model was kept, from epoch" in last.summary[3]
    assert "770 of 22,713,986 parameters were trained in 75 s" in page.summary[3]
    assert page.sections == ["Scores", "Curves", "Labels", "Answers", "Checks", "How to reproduce it"]
    assert list(page.charts) == ["scores", "accuracy", "loss", "confusion", "confidence"]


def test_a_note_stands_in_the_title_of_the_page_and_of_every_figure(tmp_path: Path) -> None:
    note = "minilm stands in for bert-base-uncased"
    run = write_run(tmp_path / "run", note=note)
    folder = StudyFolder(tmp_path / "study")
    (folder.path / "runs").mkdir(parents=True)
    folder.write(StudyRecord("search", "which rate is best?", 0, {"run": {"note": note}}))
    folder.add([Configuration("a", {"lr": 1e-4}), Configuration("b", {"lr": 1e-3})])
    for seed, name in enumerate("ab"):
        write_run(folder.run(name), seed=seed, note=note)
    write_answer(folder.path, answer("word"))
    for folders in ([run], [folder.path], [run, write_run(tmp_path / "other", seed=3)]):
        page = page_of(*folders)
        drawn = [" ".join(chart["title"]["text"]) for chart in page.charts.values()]
        if len(folders) == 1:
            assert note in page.title
            assert all(note in title for title in drawn)
        assert sum(note in title for title in drawn) >= 4


def test_each_labels_scores_follow_from_the_confusion_matrix(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", words=("a", "b", "c"), n=90))
    cells = json.loads((tmp_path / "run" / "results.json").read_text())["splits"]["test"]["confusion"]
    rows = table(page, "precision")
    for i, row in enumerate(rows):
        assert row["examples"] == str(sum(cells[i]))
        assert row["recall"] == f"{cells[i][i] / sum(cells[i]):.4f}"
        assert row["precision"] == f"{cells[i][i] / sum(line[i] for line in cells):.4f}"
    shares = [row["value"] for row in values(page.charts["confusion"])]
    assert shares == pytest.approx([c / sum(line) for line in cells for c in line])


def test_wrong_answers_come_surest_first_with_their_confidence(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    rows = [
        json.loads(line) for line in (tmp_path / "run" / "predictions_test.jsonl").read_text().splitlines()
    ]
    wrong = {r["text"]: r["probabilities"][r["predicted"]] for r in rows if r["label"] != r["predicted"]}
    shown = table(page_of(tmp_path / "run"), "confidence")
    sure = [float(row["confidence"]) for row in shown]
    assert sure == sorted(wrong.values(), reverse=True)[: len(shown)]
    assert all(wrong[row["text"]] == pytest.approx(float(row["confidence"])) for row in shown)
    assert all(row["true"] != row["predicted"] for row in shown)


def test_a_fall_of_dev_is_noted_and_drawn_where_it_begins(tmp_path: Path) -> None:
    steady, fallen = page_of(write_run(tmp_path / "a")), page_of(write_run(tmp_path / "b", falls=True))
    assert blocks(steady, "note") == []
    assert [note["kind"] for note in blocks(fallen, "note")] == ["warning"]
    marked = [row for row in values(fallen.charts["accuracy"]) if row.get("label") == "dev falls from here"]
    assert marked
    assert {row["x"] for row in marked} == {3.0}
    assert not any("falls" in str(row.get("label")) for row in values(steady.charts["accuracy"]))


def test_of_equal_scores_the_dot_is_on_the_epoch_that_was_kept(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", falls=True)
    path = run / "metrics.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    dev = [row for row in rows if row["split"] == "dev"]
    dev[1]["value"] = dev[2]["value"] = max(row["value"] for row in dev)  # a tie, decided by the loss
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chart = page_of(run).charts["accuracy"]
    assert [row["x"] for row in values(chart) if row.get("best") and row["series"] == "dev"] == [3.0]


def test_each_curves_best_is_marked_and_dev_has_its_interval(tmp_path: Path) -> None:
    chart = page_of(write_run(tmp_path / "run", falls=True)).charts["accuracy"]
    best = {row["series"]: row["x"] for row in values(chart) if row.get("best")}
    assert best == {"train": 5.0, "dev": 3.0}
    for row in values(chart):
        if row.get("series") == "dev":
            assert row["low"] < row["y"] < row["high"]


def test_a_run_that_goes_on_is_reported_as_far_as_it_got(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", finished=False))
    assert "has not finished: it reached step 50 (epoch 5)" in page.summary[0]
    assert list(page.charts) == ["accuracy", "loss"]


def test_a_run_whose_test_was_not_scored_shows_dev_and_says_so(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", test=False))
    assert page.summary[0].startswith("The accuracy on dev is")
    assert page.summary[1].startswith("On dev the accuracy")
    assert "Test was not scored." in page.summary[2]
    assert "on dev are wrong" in next(b["caption"] for b in blocks(page, "table") if "wrong" in b["caption"])


def test_a_language_model_is_shown_by_step_with_its_sentences(tmp_path: Path) -> None:
    page = page_of(write_language_run(tmp_path / "run", texts=("an easy one", "a hard one")))
    assert page.title == "char-gpt on ptb, causal"
    within = "13.37 (95 % interval 12.90 to 13.90"
    baseline = "no baseline was measured to compare it with"
    assert page.summary[0] == f"The perplexity on dev is {within}): {baseline}."
    assert page.summary[1] == f"On dev the perplexity is {within}, 5,000 tokens)."
    curve = values(page.charts["perplexity"])
    assert max(row["x"] for row in curve if "series" in row) == 200
    assert [row["text"] for row in table(page, "unknown tokens")] == ["an easy one", "a hard one"]
    hardest = next(b for b in blocks(page, "table") if "hardest" in b["caption"])
    assert [row[0]["text"] for row in hardest["rows"]] == ["a hard one", "an easy one"]
    assert table(page, "bits per character")[0]["unknown rate"] == "0.01"


def test_written_answers_are_shown_right_and_wrong_with_confidence(tmp_path: Path) -> None:
    page = page_of(write_answering_run(tmp_path / "run"))
    captions = [b["caption"] for b in blocks(page, "table")]
    assert any(c.startswith("30 of 60 answers on dev are wrong") for c in captions)
    assert any(c.startswith("30 answers are right") for c in captions)
    assert table(page, "constant answer")[0]["exact match"] == "0.500"


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was compared: right or wrong of each arm's runs on the same examples."""
    calls: list[dict[str, Any]] = []

    def record(right: dict[str, Any]) -> list[Comparison]:
        calls.append(right)
        return compare_all(right)

    monkeypatch.setattr(run_comparison, "compare_all", record)
    return calls


def test_several_runs_are_compared_on_the_same_examples(
    tmp_path: Path, compared: list[dict[str, Any]]
) -> None:
    folders = [
        write_run(tmp_path / f"{name}", method=name, seed=s, right=0.6 + 0.2 * s)
        for s, name in enumerate("ab")
    ]
    page = page_of(*folders)
    assert page.title == "2 runs on sentences"
    verdict, best, further = page.summary[:3]
    assert best.startswith("b has the best accuracy on dev")
    (right,) = compared
    assert f"{verdict} {further}" == f"On test: {describe_comparisons(compare_all(right), 'accuracy')}"
    assert page.headline == Headline(verdict, "warning")
    assert (
        sum(right["b"][0]) / 80
        == json.loads((tmp_path / "b/results.json").read_text())["splits"]["test"]["value"]
    )
    rows = table(page, "method")
    assert [row["run"] for row in rows] == ["a", "b"]
    assert [row["method"] for row in rows] == ["a", "b"]
    assert {row["series"] for row in values(page.charts["dev"]) if "series" in row} == {"a", "b"}
    assert blocks(page, "details")[0]["title"].startswith("a: ")


def test_runs_that_differ_only_in_their_seed_are_one_arm(
    tmp_path: Path, compared: list[dict[str, Any]]
) -> None:
    folders = [write_run(tmp_path / f"{method}{i}", method=method, seed=i) for method in "ab" for i in (0, 1)]
    for folder, i in zip(folders, (0, 1, 0, 1), strict=True):
        config = folder / "config.toml"
        config.write_text(config.read_text() + f"seed = {i}\n")
    page_of(*folders)
    assert [(name, len(arm), len(arm[0])) for name, arm in compared[0].items()] == [
        ("method a", 2, 80),
        ("method b", 2, 80),
    ]
    seeds = page_of(*folders[:2])
    assert len(compared) == 1
    assert any(
        line.startswith("These 2 runs differ only in their seed: accuracy on test is")
        for line in seeds.summary
    )


def test_runs_on_other_examples_are_not_compared(tmp_path: Path, compared: list[dict[str, Any]]) -> None:
    folders = [write_run(tmp_path / "a", n=80), write_run(tmp_path / "b", n=60)]
    assert page_of(*folders).title == "2 runs on sentences"
    assert compared == []


def test_overlaid_runs_share_one_axis_of_epochs(tmp_path: Path) -> None:
    short, long = write_run(tmp_path / "short", epochs=1, method="a"), write_run(tmp_path / "long", epochs=6)
    chart = page_of(short, long).charts["dev"]
    places = {row["series"]: row["x"] for row in values(chart) if "series" in row and row.get("best")}
    assert places["short"] == 1.0
    assert places["long"] <= 6
    many = write_run(tmp_path / "many", epochs=40)
    assert page_of(short, many).charts["dev"]["layer"][-1]["encoding"]["x"]["axis"]["title"] == "step"


def test_a_baseline_is_drawn_only_where_all_runs_have_the_same(tmp_path: Path) -> None:
    few, all_rows = write_run(tmp_path / "few"), write_run(tmp_path / "all", seed=1)
    found = json.loads((few / "results.json").read_text())
    for split in found["splits"].values():
        split["baselines"]["bag_of_words"] = 0.31
    found["splits"]["test"]["baselines"]["majority"] = 0.55
    (few / "results.json").write_text(json.dumps(found))
    other = json.loads((all_rows / "results.json").read_text())
    other["splits"]["test"]["baselines"]["majority"] = 0.55
    (all_rows / "results.json").write_text(json.dumps(other))
    for folders in ((few, all_rows), (all_rows, few)):
        page = page_of(*folders)
        drawn = {
            row["label"]: row["x"]
            for row in values(page.charts["scores"])
            if "reason" not in row and "label" in row
        }
        assert drawn == {"chance, test": 0.5, "most frequent label, test": 0.55}
        curves = " ".join(str(row.get("label", "")) for row in values(page.charts["dev"]))
        assert "most frequent label" in curves
        assert "bag of words" not in curves
        rows = {row["run"]: row for row in table(page, "test accuracy")}
        assert {name: row["test, bag of words"] for name, row in rows.items()} == {
            "few": "0.31",
            "all": "0.61",
        }


def test_a_failed_run_is_reported_with_its_reason(tmp_path: Path) -> None:
    lost = write_run(tmp_path / "lost", finished=False)
    (lost / "failed.json").write_text(json.dumps({"reason": "the loss became NaN"}))
    page = page_of(lost)
    assert page.summary[0] == "This run failed: the loss became NaN."
    assert "--resume" not in " ".join(page.summary)
    both = page_of(lost, write_run(tmp_path / "well", seed=1))
    assert any("lost has no result (failed: the loss became NaN)" in line for line in both.summary)
    assert "the loss became NaN" in json.dumps(both.charts["scores"])


def test_unfinished_and_finished_runs_on_own_data_are_compared(tmp_path: Path) -> None:
    done, going = write_run(tmp_path / "done"), write_run(tmp_path / "going", seed=1, finished=False)
    elsewhere = write_run(tmp_path / "elsewhere", seed=2)
    for run, place in ((done, "/data/mine"), (going, "/data/mine"), (elsewhere, "/other/mine")):
        told = (run / "config.toml").read_text()
        (run / "config.toml").write_text(told.replace('task = "sentences"', f'task = "{place}"'))
    assert [row["run"] for row in table(page_of(done, going), "dev accuracy")] == ["done", "going"]
    assert "Comparison" not in " ".join(page_of(done, elsewhere).sections)


def test_an_unfinished_run_that_writes_is_scored_by_exact_match(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", finished=False, objective="answer"))
    assert "Exact match by epoch" in json.dumps(page.charts["exact-match"]["title"])
    labels = page_of(write_run(tmp_path / "labels", finished=False, objective="text2text"))
    assert "Accuracy by epoch" in json.dumps(labels.charts["accuracy"]["title"])


def test_a_confusion_matrix_has_counts_in_its_hovers_and_no_stars(tmp_path: Path) -> None:
    chart = page_of(write_run(tmp_path / "run")).charts["confusion"]
    subtitle = ["number of examples; the color is their share of the true label"]
    assert chart["title"]["subtitle"] == subtitle
    assert all(row["detail"].endswith(" of 40") and "note" not in row for row in chart["data"]["values"])
    counts = [int(row["exact"]) for row in chart["data"]["values"]]
    assert counts == [round(40 * row["value"]) for row in chart["data"]["values"]]
    assert sum(counts) == 80
    many = page_of(write_run(tmp_path / "many", words=[f"label {i}" for i in range(70)], n=700))
    confused = {row["line"] for row in many.charts["confusion"]["data"]["values"]}
    assert len(confused) == 12
    assert table(many, "predicted label")[0]["true label"] in confused
    assert table(many, "predicted label")[0]["true label"].startswith("label")


def test_what_a_study_was_told_keeps_its_parts_apart(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path / "study")
    (folder.path / "runs").mkdir(parents=True)
    options = {"run": {"lr": 1e-4, "max_len": 64}, "pretrain": {"lr": 0.03}, "seeds": 2}
    folder.write(StudyRecord("knowledge", "what is known?", 0, options, command=("study", "knowledge")))
    write_answer(folder.path, answer("word"))
    facts = dict(blocks(page_of(folder.path), "facts")[-1]["facts"])
    assert facts["lr"] == "0.0001"
    assert facts["pretrain: lr"] == "0.03"
    assert facts["max len"] == "64"


def test_paper_shows_what_a_reader_would_open(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run"))
    assert page.html({}).count("<details") == page.html({}).count(" open>")


def test_shares_that_differ_by_chance_do_not_fill_an_axis(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, seed=i, right=0.6 + i / 1000) for i, name in enumerate("ab")]
    for folder in folders:
        found = json.loads((folder / "results.json").read_text())
        for split in found["splits"].values():
            split["baselines"] = None
        (folder / "results.json").write_text(json.dumps(found))
    chart = page_of(*folders).charts["dev"]
    low, high = next(layer["encoding"]["y"]["scale"]["domain"] for layer in chart["layer"])
    assert high - low >= 0.2
    assert 0 <= low < high <= 1


def test_runs_of_different_tasks_are_not_drawn_on_one_axis(tmp_path: Path) -> None:
    page = page_of(
        write_run(tmp_path / "a"), write_run(tmp_path / "b", seed=1), write_language_run(tmp_path / "c")
    )
    assert page.sections == ["Comparison: sentences", "Each run"]
    assert {row["series"] for row in values(page.charts["sentences-dev"]) if "series" in row} == {"a", "b"}
    assert any(line.startswith("c: On dev the perplexity") for line in page.summary)


def test_a_page_of_studies_and_runs_says_in_words_what_each_found(tmp_path: Path) -> None:
    page = page_of(write_study(tmp_path / "study"), write_run(tmp_path / "a"))
    assert any(line.endswith("The best is word.") for line in page.summary)
    assert any(line.startswith("a: On test the accuracy is ") for line in page.summary)
    assert not any("?:" in line for line in page.summary)


def test_a_check_that_found_something_is_not_told_by_the_name_of_what_it_hoped_for() -> None:
    lost = Check("beats_bag_of_words", "warning", "No better than a bag of words.")
    said = describe_checks([lost, Check("collapse", "passed", "Both labels are predicted.")])
    assert said == "Checks: 1 caution (not shown to beat a bag of words), 1 fine."


def test_runs_with_the_same_folder_name_are_told_apart(tmp_path: Path) -> None:
    page = page_of(
        write_run(tmp_path / "x" / "run"), write_run(tmp_path / "y" / "run"), tmp_path / "x" / "run"
    )
    assert [row["run"] for row in table(page, "test accuracy")] == ["x/run", "y/run"]


def test_a_study_shows_its_answer_and_every_figure_draws(tmp_path: Path) -> None:
    page = page_of(write_study(tmp_path / "study"))
    assert page.summary == ["The best is word.", "It stands out."]
    assert list(page.charts) == ["curves", "bars", "cost", "heat", "heats", "lengths"]
    for chart in page.charts.values():
        assert render_chart(chart, ".svg").startswith(b"<svg")
    assert any(row.get("note") == "word" and row.get("value") is None for row in values(page.charts["heat"]))
    assert any(row.get("reason") == "word" and row["failed"] for row in values(page.charts["bars"]))
    assert blocks(page, "code")[0]["text"] == "heedful study search minilm word --out elsewhere"


def test_a_study_names_the_runs_that_failed_and_shows_the_selected_one(tmp_path: Path) -> None:
    record = StudyRecord(
        "search", "which rate is best?", 0, {"lr": "1e-4,1e-3", "run": {"task": "sentences"}}
    )
    folder = StudyFolder(tmp_path / "study")
    (folder.path / "runs").mkdir(parents=True)
    folder.write(record)
    folder.add([Configuration(name, {"lr": lr}) for name, lr in (("a", 1e-4), ("b", 1e-3), ("c", 1e-2))])
    write_run(folder.run("a"), right=0.6)
    write_run(folder.run("b"), right=0.9)
    folder.fail("c", "does not fit in memory")
    page = page_of(folder.path)
    assert page.summary == ["This study has no answer yet: 3 of 3 runs have ended."]
    assert table(page, "reason") == [{"run": "c", "state": "failed", "reason": "does not fit in memory"}]
    titles = [b["title"] for b in blocks(page, "details")]
    assert any(title.startswith("In full: b, ") for title in titles)


@pytest.mark.parametrize(
    ("figure", "told"),
    [
        (
            Figure("f", "lines", {"a": [[1, 2]]}, {"x_titel": "x"}),
            'unknown option "x_titel"; did you mean "x_title"',
        ),
        (
            Figure("f", "lines", [1, 2], {"x_title": "x", "y_title": "y"}),
            "do not fit a figure of kind lines",
        ),
        (Figure("f", "bars", [{"value": 1}], {"y_title": "y"}), "do not fit a figure of kind bars"),
        (Figure("f", "heat_map", [[1]], {"x_labels": ["a", "b"], "y_labels": ["c"]}), "1 x 2 labels"),
        (Figure("f", "lines", {"a": [[1, "x"]]}, {"x_title": "x", "y_title": "y"}), "do not fit a figure"),
    ],
)
def test_a_stored_figure_that_cannot_be_drawn_is_named(tmp_path: Path, figure: Figure, told: str) -> None:
    write_study(tmp_path / "study", figures=(figure,))
    with pytest.raises(UserError, match=told):
        page_of(tmp_path / "study")


def test_a_stored_table_must_fit_its_columns(tmp_path: Path) -> None:
    write_study(tmp_path / "study", tables=(Table(("a", "b"), ((1,),)),))
    with pytest.raises(UserError, match=r"answer\.json: a table with 2 columns"):
        page_of(tmp_path / "study")


def test_what_is_neither_a_run_nor_a_study_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is neither a run nor a study"):
        load_facts([tmp_path])
    with pytest.raises(UserError, match="there is no such folder"):
        load_facts([tmp_path / "nowhere"])


def test_studies_and_runs_stand_on_one_page_under_names_of_their_own(tmp_path: Path) -> None:
    page = page_of(write_study(tmp_path / "one"), write_study(tmp_path / "two"), write_run(tmp_path / "run"))
    assert page.title == "2 studies and 1 run"
    assert {"one-curves", "two-curves"} < set(page.charts)
    assert len(page.charts) == 12 + 5


def test_text_from_data_never_changes_what_elements_a_page_has(tmp_path: Path) -> None:
    from test_report_page import Reader

    def tags(folder: Path, words: list[str]) -> list[str]:
        write_run(folder / "run", words=words, texts=words, task=words[0], falls=True)
        write_language_run(folder / "language", texts=words)
        write_answering_run(folder / "answers", answers=words[:2])
        write_study(folder / "study", words[0])
        found = []
        for name in ("run", "language", "answers", "study"):
            found += Reader(page_of(folder / name).html()).tags
        return found

    harmless = [f"word{i}" for i in range(len(HOSTILE))]
    assert tags(tmp_path / "hostile", HOSTILE) == tags(tmp_path / "harmless", harmless)


@pytest.mark.parametrize(
    ("task", "labels", "title"),
    [
        ("/home/me/reviews.csv", ("no", "yes"), "reviews"),
        ("files/reviews.jsonl.gz", ("no", "yes"), "reviews"),
        ("world/reviews", ("no", "yes"), "world/reviews"),
        ("/cache/memory/3f2a/data", ("no", "yes"), "texts labeled no or yes"),
        ("/cache/memory/3f2a/data.parquet", [f"label {i}" for i in range(6)], "texts with 6 labels"),
    ],
)
def test_a_title_has_no_path_and_names_data_of_python_by_its_labels(
    tmp_path: Path, task: str, labels: list[str], title: str
) -> None:
    assert page_of(write_run(tmp_path / "run", task=task, words=labels)).title == f"minilm on {title}, full"


def test_baselines_are_in_every_comparison_of_runs(tmp_path: Path) -> None:
    page = page_of(*(write_run(tmp_path / name, seed=i) for i, name in enumerate("ab")))
    for name in ("scores", "dev", "cost"):
        labels = ", ".join(str(row.get("label", "")) for row in values(page.charts[name]))
        for baseline in ("chance", "most frequent label", "bag of words"):
            assert baseline in labels, (name, baseline)


def test_what_a_check_found_has_its_severity_in_a_word(tmp_path: Path) -> None:
    page = page_of(write_run(tmp_path / "run", falls=True))
    top, whole = blocks(page, "findings")
    assert [(row["kind"], row["word"], row["name"]) for row in whole["findings"]] == [
        ("warning", "caution", "Dev falls while train rises"),
        ("good", "fine", "Tokenizer fits"),
        ("plain", "not checked", "Shared parts"),
    ]
    assert top["findings"] == whole["findings"][:1]
    assert top["more"] == "1 other check is fine."


@pytest.mark.parametrize(
    ("value", "low", "baseline", "kind", "words"),
    [
        (0.7, 0.65, 0.6, "good", "it beats a bag of words (0.600)"),
        (0.7, 0.55, 0.6, "warning", "not shown to beat a bag of words (0.600), which is inside the interval"),
        (0.5, 0.45, 0.6, "bad", "a bag of words (0.600) is better"),
    ],
)
def test_the_verdict_says_whether_the_best_baseline_is_beaten(
    tmp_path: Path, value: float, low: float, baseline: float, kind: str, words: str
) -> None:
    folder = write_run(tmp_path / "run")
    stored = json.loads((folder / "results.json").read_text())
    stored["splits"]["test"] |= {
        "value": value, "ci95": [low, value + 0.05], "baselines": {"bag_of_words": baseline},
    }  # fmt: skip
    (folder / "results.json").write_text(json.dumps(stored))
    headline = page_of(folder).headline
    assert headline is not None
    assert headline.kind == kind
    assert headline.verdict.endswith(f"{words}.")


@pytest.mark.parametrize(
    ("split", "status", "kind", "words"),
    [
        ("dev", "passed", "good", "it beats a bag of words (0.600)"),  # though 0.6 is inside the interval
        ("dev", "warning", "warning", "not shown to beat a bag of words (0.600) on the same examples"),
        ("test", "warning", "warning", "but on dev it is not shown to beat a baseline"),
    ],
)
def test_the_verdict_agrees_with_the_check_that_compares_examples(
    tmp_path: Path, split: str, status: str, kind: str, words: str
) -> None:
    folder = write_run(tmp_path / "run")
    stored = json.loads((folder / "results.json").read_text())
    low = 0.55 if split == "dev" else 0.65
    score = {**stored["splits"]["dev"], "value": 0.7, "ci95": [low, 0.75], "baselines": {"bag_of_words": 0.6}}
    stored["splits"] = {split: score}
    (folder / "results.json").write_text(json.dumps(stored))
    checks = json.loads((folder / "checks.json").read_text())
    checks["checks"] = [{"name": "beats_bag_of_words", "status": status, "message": "compared"}]
    (folder / "checks.json").write_text(json.dumps(checks))
    headline = page_of(folder).headline
    assert headline is not None
    assert headline.kind == kind
    assert headline.verdict.endswith(f"{words}.")


@pytest.mark.parametrize(
    ("lost", "kind", "words"),
    [
        (8, "good", "it beats a bag of words (0.600)"),
        (4, "warning", "not shown to beat a bag of words (0.600) on the same examples"),
    ],
)
def test_the_verdict_compares_the_stored_answers_of_the_bag_of_words(
    tmp_path: Path, lost: int, kind: str, words: str
) -> None:
    folder = write_run(tmp_path / "run")
    run = Run(folder)
    answers = run.read_predictions("test")
    right = [answer for answer in answers if answer.predicted == answer.label]
    wrong = {answer.id for answer in right[:lost]}
    bag = [replace(answer, predicted="?") if answer.id in wrong else answer for answer in answers]
    run.write_predictions("test", bag, by="bag_of_words")
    stored = json.loads((folder / "results.json").read_text())
    stored["splits"]["test"] |= {"value": 0.7, "ci95": [0.55, 0.75], "baselines": {"bag_of_words": 0.6}}
    (folder / "results.json").write_text(json.dumps(stored))
    headline = page_of(
        folder
    ).headline  # 0.6 is inside the interval, but the answers are of the same examples
    assert headline is not None
    assert (headline.kind, headline.verdict.endswith(f"{words}.")) == (kind, True)


def test_a_study_has_no_path_in_its_title_and_one_sentence_first(tmp_path: Path) -> None:
    best = "On test: full is best on these examples: its accuracy is higher than that of head, beyond chance."
    more = "A single run per arm does not show how much the seed matters."
    but = "But none is shown to be better than always giving the most frequent label."
    study = write_study(
        tmp_path / "s",
        title="Which is best on /home/me/reviews.csv?",
        summary=(f"{best} {more} {but}", "Next."),
    )
    page = page_of(study)
    assert page.title == "Which is best on reviews?"
    assert page.headline == Headline(f"{best} {but}")
    assert page.summary == [f"{best} {but}", more, "Next."]
