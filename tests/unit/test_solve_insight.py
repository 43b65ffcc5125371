from __future__ import annotations

from pathlib import Path

import numpy as np

from heedful.data.tasks import load_task
from heedful.runs.schemas import Prediction
from heedful.solve.insight import describe_curve, examine_data, examine_labels, list_rows_to_label
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
    return Prediction(str(i), label, "a", {"a": share, "b": 1 - share, "c": 0.0}, f"text {i}")


def test_suspicious_rows_are_listed_though_a_label_has_no_held_out_row() -> None:
    rows = [predict_row(i, "a", 0.95) for i in range(20)] + [predict_row(i, "b", 0.05) for i in range(20, 40)]
    rows.append(predict_row(40, "b", 0.99))
    (table,) = examine_labels(rows, ("a", "b", "c")).tables
    assert [cells[:3] for cells in table.rows] == [("text 40", "b", "a")]


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


def test_rows_to_label_are_listed_with_their_number_in_the_file() -> None:
    table = list_rows_to_label(
        ["sure", "torn", "torn too"], [[0.9, 0.1], [0.5, 0.5], [0.6, 0.4]], np.eye(3), 2
    )
    assert table.rows == ((2, "torn", 0.0), (3, "torn too", 0.2))
