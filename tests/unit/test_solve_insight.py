from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from heedful.data.tasks import load_task
from heedful.data.unlabeled import Pool, UnlabeledRow, collect_unlabeled
from heedful.errors import UserError
from heedful.runs.schemas import Prediction
from heedful.solve.insight import describe_curve, examine_data, examine_labels, list_rows_to_label
from heedful.solve.insight.findings import Help, rank_helps
from heedful.solve.insight.label_next import list_useful_rows, rank_rows
from heedful.statistics.learning_curve import fit_share_curve
from heedful.text import load

WORDS = [
    "river",
    "stone",
    "cloud",
    "paper",
    "music",
    "garden",
    "window",
    "letter",
    "winter",
    "bridge",
    "candle",
]


def write_task(folder: Path, *, german: bool = False) -> Path:
    """Write a task of which dev has copies of train, and train has a word that gives a label away."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    texts = [" ".join(rng.choice(WORDS, 12)) for _ in range(260)]
    if german:
        texts = [
            f"Das Essen war leider kalt und die Bedienung unfreundlich beim Besuch Nummer {i}"
            for i in range(260)
        ]
    train = [
        f"{text} reuters,news" if i % 4 == 0 else f"{text},{'news' if i % 2 else 'talk'}"
        for i, text in enumerate(texts[:200])
    ]
    dev = [f"{text},{'news' if i % 2 else 'talk'}" for i, text in enumerate(texts[200:])]
    dev[3], dev[4] = f"well {texts[1]},news", f"{texts[3].upper()}!,talk"
    (folder / "train.csv").write_text("\n".join(["text,label", *train]) + "\n")
    (folder / "dev.csv").write_text("\n".join(["text,label", *dev]) + "\n")
    return folder


def test_the_data_is_examined_without_a_model(tmp_path: Path) -> None:
    insight = examine_data(load_task(str(write_task(tmp_path / "task"))), load("minilm"))
    [note] = insight.notes
    assert note.text.startswith("2 of dev's 60 rows (3.3%) are nearly the same as a row of train")
    shared, words = insight.tables
    assert {row[0] for row in shared.rows} == {1.0, shared.rows[1][0]}
    assert words.rows == (("reuters", "news", "50 of 50"),)


def test_texts_in_another_language_are_a_warning(tmp_path: Path) -> None:
    notes = examine_data(load_task(str(write_task(tmp_path / "task", german=True))), load("minilm")).notes
    assert any("100% of train's texts" in note.text and "--model" in note.text for note in notes)


def predict_row(i: int, label: str, share: float) -> Prediction:
    return Prediction(
        str(i), label, "a" if share > 0.5 else "b", {"a": share, "b": 1 - share, "c": 0.0}, f"text {i}"
    )


def test_suspicious_rows_are_listed_though_a_label_has_no_held_out_row() -> None:
    rows = [predict_row(i, "a", 0.95) for i in range(20)] + [predict_row(i, "b", 0.05) for i in range(20, 40)]
    rows.append(predict_row(40, "b", 0.99))
    insight = examine_labels(rows, ("a", "b", "c"))
    (table,), (correction,) = insight.tables, insight.helps
    assert [cells[:3] for cells in table.rows] == [("text 40", "b", "a")]
    assert correction.gain == pytest.approx(1 / 41)
    assert "1 suspicious of the 41 held-out rows" in correction.sentence
    assert "accuracy 1.00 instead of 0.98" in correction.sentence


def test_what_helps_most_is_said_first() -> None:
    lines = rank_helps([Help(0.0, "none"), Help(0.01, "some"), Help(0.03, "more"), Help(0.0, "no room")])
    assert lines == ["What would help most, by the gain to expect:", "  more", "  some", "  none"]
    assert rank_helps([Help(0.0, "none")])[0] == "What would help is not shown:"
    assert rank_helps([]) == []


def test_no_row_is_listed_by_a_model_that_doubts_many_or_is_not_shown_to_be_useful() -> None:
    rows = [predict_row(i, "ab"[i % 2], share) for i, share in enumerate([0.9, 0.9, 0.1, 0.1] * 10)]
    insight = examine_labels(rows, ("a", "b", "c"))
    assert not insight.tables
    assert "the model doubts 20 of 40 held-out ones" in insight.notes[0].text
    sure = [predict_row(0, "b", 0.99)] + [
        predict_row(i, "ab"[i % 2], 0.95 - 0.9 * (i % 2)) for i in range(20)
    ]
    assert examine_labels(sure, ("a", "b", "c")).tables
    insight = examine_labels(sure, ("a", "b", "c"), useful=False)
    assert not insight.tables
    assert "not shown to be better than the most frequent label" in insight.notes[0].text


def test_the_curve_is_a_sentence_that_says_when_it_cannot_be_told() -> None:
    sizes = np.array([100, 200, 400, 800])
    rng = np.random.default_rng(0)
    difficulty = rng.random((4000, 1))
    rising = describe_curve(fit_share_curve(sizes, difficulty < [0.6, 0.68, 0.74, 0.78]))
    assert rising.startswith("twice the labels would give an accuracy of about 0.8")
    assert "hardly help" in describe_curve(fit_share_curve(sizes, difficulty < np.full(4, 0.8)))
    few = rng.random((25, 4)) < [0.6, 0.7, 0.65, 0.7]
    assert "cannot be told" in describe_curve(fit_share_curve(sizes, few))


def test_rows_to_label_are_ranked_and_written_whole(tmp_path: Path) -> None:
    sure = [UnlabeledRow("more.csv", i, f"sure {i}, and rather long: {'word ' * 40}") for i in range(60)]
    torn = [UnlabeledRow("more.csv", 60 + i, "torn" if i < 2 else f"torn {WORDS[i]}") for i in range(8)]
    pool = Pool((*sure, *torn), 100)
    probabilities = [[0.9, 0.1]] * len(sure) + [[0.5, 0.5], [0.51, 0.49], *[[0.6, 0.4]] * 6]
    found = list_useful_rows("head", "", pool, ["a", "b"], probabilities, tmp_path / "next.csv")
    assert len(found.rows) == 50
    assert [(row.row, row.text, row.margin) for row in found.rows[:1]] == [(60, "torn", 0.0)]
    table = list_rows_to_label(found)
    assert table.rows[0] == (60, "torn", "a", 0.0)
    assert "chosen from 68 of 100 without a label" in table.title
    written = (tmp_path / "next.csv").read_text().splitlines()
    assert written[:2] == ["file,row,text,predicted,margin", "more.csv,60,torn,a,0.0"]
    assert len(written) == 69
    few = [UnlabeledRow("more.csv", i, f"text {'abcd'[i // 30]} number {i}") for i in range(120)]
    margins = np.linspace(0, 0.9, 120)
    ranked = rank_rows(few, np.stack([0.5 + margins / 2, 0.5 - margins / 2], 1))
    assert set(ranked[:50]) == set(range(50))  # different rows that the model is sure about are not useful
    copy = next(i for i, row in enumerate(rank_rows(pool.rows, probabilities)) if row == 61)
    assert copy >= 8  # its copy and all different uncertain rows come before it


@pytest.mark.parametrize("header", ["text,label", "text,pair,label"])
def test_rows_without_a_label_change_no_split_and_are_the_pool(tmp_path: Path, header: str) -> None:
    second = "the second," if "pair" in header else ""
    labeled = [f"a text {i},{second}{'ab'[i % 2]}" for i in range(100)]
    empty = [f"a new text {i // 2},{second}" for i in range(20)] + [f"a text 3,{second}", f",{second}a"]
    for name, rows in {"with": [*labeled[:50], *empty, *labeled[50:]], "without": labeled}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")
    task, other = (load_task(str(tmp_path / f"{name}.csv")) for name in ("with", "without"))
    for name, split in task.splits.items():
        assert list(split.texts) == list(other.splits[name].texts)
    pool = collect_unlabeled(task, None, 100)
    assert pool.total == 10  # each text once, without the one that is labeled elsewhere
    assert {row.text for row in pool.rows} == {f"a new text {i}" for i in range(10)}
    assert min(row.row for row in pool.rows) == 52
    assert not collect_unlabeled(other, None, 100).rows

    (tmp_path / "more.csv").write_text(
        f"{header.removesuffix(',label')}\none more,{second}\n".replace(",\n", "\n")
    )
    more = collect_unlabeled(other, tmp_path / "more.csv", 100)
    assert [(row.file, row.row, row.text) for row in more.rows] == [("more.csv", 2, "one more")]
    assert collect_unlabeled(task, tmp_path / "more.csv", 5).total == 11
    assert len(collect_unlabeled(task, tmp_path / "more.csv", 5).rows) == 5
    if second:
        (tmp_path / "single.txt").write_text("one text\n")
        with pytest.raises(UserError, match="pairs of texts"):
            collect_unlabeled(other, tmp_path / "single.txt", 5)


def test_a_row_is_either_trained_on_or_in_the_pool_whatever_stands_for_a_missing_label(
    tmp_path: Path,
) -> None:
    labels = ["a", "b"] * 20 + ["nan", "NaN", " nan ", "", "none", "null"]
    rows = [f"text {i},{label}" for i, label in enumerate(labels)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    task = load_task(str(tmp_path / "rows.csv"))
    labeled = {text for split in task.splits.values() for text in split.texts}
    unlabeled = {row.text for row in collect_unlabeled(task, None, 100).rows}
    assert unlabeled == {f"text {i}" for i in range(40, 44)}
    assert labeled == {f"text {i}" for i in range(46)} - unlabeled

    typed = [json.dumps({"text": f"text {i}", "label": label or None}) for i, label in enumerate(labels)]
    (tmp_path / "rows.jsonl").write_text("\n".join(typed) + "\n")
    task = load_task(str(tmp_path / "rows.jsonl"))
    assert [row.text for row in collect_unlabeled(task, None, 100).rows] == ["text 43"]  # "nan" is a name
