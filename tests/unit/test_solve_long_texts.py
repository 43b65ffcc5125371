"""What solve says about texts that the encoder does not read whole."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heedful.options.training import AdaptOptions
from heedful.solve.insight import LongTextScores, suggest_reading
from heedful.solve.long_texts import LongTextReader, divide_ids, measure_long_texts
from heedful.solve.probes import StatesProbe
from tiny import BAD, GOOD, PLAIN, make_model


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    """Texts of which half are long, and all of which say their label at their end."""
    folder, rng = tmp_path_factory.mktemp("long"), np.random.default_rng(0)
    rows = []
    for i in range(500):
        words = [*rng.choice(PLAIN, 100 if i % 4 < 2 else 5), *rng.choice(GOOD if i % 2 else BAD, 4)]
        rows.append(f"{' '.join(words)},{'yes' if i % 2 else 'no'}")
    (folder / "rows.csv").write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    model = make_model(folder / "model")
    return AdaptOptions(
        task=str(folder / "rows.csv"), model=str(model), threads=1, precision="float32", score_test=False
    )


def test_reading_the_end_of_long_texts_is_measured_and_recommended_if_it_helps(options: AdaptOptions) -> None:
    found = measure_long_texts(options, folds=5, seconds=60)
    assert found.max_len == 64
    assert found.share == pytest.approx(0.5, abs=0.05)
    assert found.scores is not None
    assert set(found.scores) == {"cut", "head-tail", "parts"}
    assert found.held_out > 400
    assert "head-tail" in found.better
    assert found.scores["head-tail"] > found.scores["cut"] + 0.1
    assert not found.open
    late = measure_long_texts(options, folds=5, seconds=0)
    assert late.scores is None
    assert late.open


def test_the_states_are_those_of_a_run_that_reads_so(options: AdaptOptions) -> None:
    probe = StatesProbe(options)
    reader, rows = LongTextReader(probe), np.arange(20)
    both = StatesProbe(replace(options, long_texts="head-tail"))
    long = rows[reader.find_long("dev", rows)]
    assert 0 < len(long) < len(rows)
    np.testing.assert_allclose(
        reader.read("head-tail", "dev", long), both.states["dev"][long], rtol=1e-4, atol=1e-5
    )
    short = rows[~reader.find_long("dev", rows)]  # one part, which is the whole text
    np.testing.assert_allclose(
        reader.read("parts", "dev", short), probe.states["dev"][short], rtol=1e-4, atol=1e-5
    )


def test_parts_have_all_tokens_and_the_special_ones_around_each() -> None:
    inner = list(range(10, 31))
    parts = divide_ids(([1, *inner, 2], [0] * 23), inner, 10)
    assert [part[0][0] for part in parts] == [part[0][-1] - 1 for part in parts] == [1, 1, 1]
    assert [i for ids, _ in parts for i in ids[1:-1]] == inner
    assert max(len(ids) for ids, _ in parts) <= 10
    assert divide_ids(([1, 5, 2], [0, 0, 0]), [5], 10) == [([1, 5, 2], [0, 0, 0])]


def test_what_is_said_about_long_texts() -> None:
    assert suggest_reading(LongTextScores(0.04, 256)) == []
    (unknown,) = suggest_reading(LongTextScores(0.38, 256))
    assert "38% of the texts are longer than the 256 tokens" in unknown.sentence
    assert "was not measured in the time" in unknown.sentence
    measured = LongTextScores(0.38, 256, "accuracy", 900, {"cut": 0.70, "head-tail": 0.74, "parts": 0.71})
    (undecided,) = suggest_reading(measured)
    assert undecided.gain == 0
    assert "no difference" in undecided.sentence
    (better,) = suggest_reading(replace(measured, better=("head-tail",)))
    assert better.gain == pytest.approx(0.04)
    assert better.sentence.endswith("held-out rows; --long-texts head-tail reads them so.")
