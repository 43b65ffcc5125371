import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union

from heedful.linear import tfidf
from heedful.linear.model import TfidfModel
from heedful.linear.tfidf import WORD, fit_tfidf

EXACT = {"solver": "newton-cg", "tol": 1e-10, "max_iter": 1000}
WORDS = [
    "a", "I", "not", "good", "BAD", "film", "film's", "plot", "naïve", "straße", "İstanbul", "3.5", "ok!",
    "http://x.org/?q=1", "très", "映画は良い", "나쁜", "...",
]  # fmt: skip


def texts(n: int = 120, seed: int = 0) -> tuple[list[str], np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    rows = [" \t".join(rng.choice(WORDS[label * 3 :], 6)) for label in labels]
    return [*rows[:-2], "", "\u3000 "], labels


def union(min_df: int = 1):
    return make_union(
        TfidfVectorizer(token_pattern=WORD.pattern, ngram_range=(1, 2), sublinear_tf=True, min_df=min_df),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=min_df),
    )


def test_the_model_equals_the_pipeline_of_sklearn(tmp_path: Path) -> None:
    train, labels = texts()
    other, _ = texts(50, seed=1)
    other.append("never seen \u2603")
    TfidfModel.fit(train, None, labels, ["x", "y", "z"], strengths=[10.0], tolerance=1e-14).save(tmp_path)
    model = TfidfModel.load(tmp_path)
    pipeline = make_pipeline(union(), LogisticRegression(C=10.0, **EXACT)).fit(train, labels)
    assert np.abs(model.features.transform(other) - pipeline[0].transform(other)).max() < 1e-12
    assert np.abs(model.probabilities(other) - pipeline.predict_proba(other)).max() < 1e-6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["linear.json", "model.safetensors"]


def test_the_second_texts_of_pairs_have_features_of_their_own(tmp_path: Path) -> None:
    first, labels = texts()
    second = texts(seed=2)[0]
    features, matrix = fit_tfidf(first, second, 3)
    theirs = np.hstack([union().fit_transform(side).toarray() for side in (first, second)])
    assert np.abs(matrix - theirs).max() < 1e-12
    assert np.abs(features.transform(first, second) - theirs).max() < 1e-12
    model = TfidfModel.fit(first, second, labels, ["x", "y", "z"])
    model.save(tmp_path)
    swapped = TfidfModel.load(tmp_path).probabilities(second, first)
    assert np.abs(swapped - model.probabilities(first, second)).max() > 0.01


def test_rare_terms_and_terms_beyond_the_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    train, _ = texts()
    monkeypatch.setattr(tfidf, "MANY_ROWS", 100)
    assert np.abs(fit_tfidf(train, None, 3)[1] - union(min_df=2).fit_transform(train)).max() < 1e-12
    monkeypatch.setattr(tfidf, "MOST_TERMS", 20)
    words, characters = fit_tfidf(train, None, 3)[0].blocks
    assert len(words.terms) == len(characters.terms) == 20
    assert "a" in words.terms or "film" in words.terms


def test_fitting_imports_neither_sklearn_nor_torch() -> None:
    code = (
        "import sys, numpy; from heedful.linear.model import TfidfModel\n"
        "model = TfidfModel.fit(['good', 'bad'] * 20, None, numpy.array([1, 0] * 20), ['no', 'yes'])\n"
        "print(model.probabilities(['good']).argmax(), {'sklearn', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.stdout == "1 set()\n", done.stderr


@pytest.mark.parametrize("rows", [20, 2_000])
def test_texts_without_a_term_are_answered_with_the_shares_of_the_labels(rows: int) -> None:
    model = TfidfModel.fit([""] * rows, None, np.arange(rows) % 4 // 3, ["often", "rarely"])
    assert model.probabilities(["", "new"]) == pytest.approx(np.array([[0.75, 0.25]] * 2), abs=0.02)
