"""Texts longer than --max-len: head and tail through training, evaluation, prediction, export and resume."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.evaluation.checks import truncation
from heedful.inference.loading import load_run
from heedful.options.training import AdaptOptions
from heedful.runs.directory import Run
from heedful.training.rescore import evaluate_split
from heedful.training.train import train_run


def write_rows(path: Path, n: int) -> Path:
    """Write texts of forty words whose last word is their label."""
    rng = np.random.default_rng(0)
    words = [" ".join(rng.choice(["sun", "rain", "wind", "sea"], 40)) for _ in range(n)]
    rows = [f"{text} {'good' if i % 2 else 'bad'},{i % 2}" for i, text in enumerate(words)]
    path.write_text("\n".join(["text,label", *rows]) + "\n")
    return path


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    data = write_rows(tmp_path_factory.mktemp("long") / "rows.csv", 200)
    return AdaptOptions(
        model="bert-tiny", task=str(data), tokenizer="word", max_len=12, epochs=15, lr=1e-2, batch_size=16,
        threads=1, precision="float32", model_options=("n_layers=1", "d_model=16", "n_heads=2", "d_ff=32"),
    )  # fmt: skip


def test_a_label_in_the_last_word_is_learned_and_predicted(options: AdaptOptions, tmp_path: Path) -> None:
    cut = train_run(replace(options, epochs=1, out=tmp_path / "cut"))
    (finding,) = [check for check in cut.checks.checks if check.name == "truncation"]
    assert finding.status == "warning"
    assert finding.message.endswith("; --long-texts head-tail also reads their ends.")

    both = train_run(replace(options, long_texts="head-tail", out=tmp_path / "both"))
    assert cut.results.splits["test"].value < 0.9 < both.results.splits["test"].value  # type: ignore[operator]
    assert Run.open(both.folder).read_config()["adapt"]["long_texts"] == "head-tail"
    (finding,) = [check for check in both.checks.checks if check.name == "truncation"]
    assert "from their middle" in finding.message
    again = evaluate_split(both.folder, "test")
    assert (again.value, again.loss) == (
        both.results.splits["test"].value,
        pytest.approx(both.results.splits["test"].loss),
    )
    predictor, stored = load_run(both.folder, device="cpu"), Run.open(both.folder).read_predictions("test")
    predicted = predictor.predict([str(row.text) for row in stored])
    assert [one.label for one in predicted] == [row.predicted for row in stored]
    assert [one.probabilities for one in predicted] == [pytest.approx(row.probabilities) for row in stored]
    (both.folder / "results.json").unlink()
    with pytest.raises(UserError, match="was begun with --long-texts head-tail, now it is cut"):
        train_run(replace(options, out=both.folder, resume=True))


def test_answers_have_no_such_choice(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--long-texts belongs to --objective classify"):
        train_run(AdaptOptions(model="char-gpt", task="world/birthplaces", long_texts="head-tail"))


def test_the_check_names_the_option_only_where_it_exists() -> None:
    lengths = [100] * 10
    assert "--long-texts" not in truncation(lengths, 50).message
    assert "--long-texts" in truncation(lengths, 50, long_texts="cut").message
    assert truncation(lengths, 50, long_texts="head-tail").status == "warning"
    assert truncation(lengths, 200, long_texts="cut").status == "passed"
