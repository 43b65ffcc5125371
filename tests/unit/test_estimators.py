"""`heedful.TextClassifier` behaves as scikit-learn's estimators do."""

from __future__ import annotations

import gc
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import heedful
from heedful.errors import UserError
from tiny import make_model, sentence

QUICK: dict[str, Any] = {
    "epochs": 2, "lr": 0.01, "batch_size": 16, "max_len": 16, "threads": 1, "precision": "float32",
    "train_eval_rows": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def data() -> tuple[list[str], list[str]]:
    rng = random.Random(0)
    return [f"{sentence(rng, bool(i % 2))} {i}" for i in range(60)], [
        "good" if i % 2 else "bad" for i in range(60)
    ]


@pytest.fixture(scope="module")
def classifier(model: Path, data: tuple[list[str], list[str]]) -> heedful.TextClassifier:
    return heedful.TextClassifier(model, **{**QUICK, "epochs": 8}).fit(*data)


def test_it_learns_and_predicts_its_own_labels(
    classifier: heedful.TextClassifier, data: tuple[list[str], list[str]]
) -> None:
    texts, labels = data
    assert classifier.classes_.tolist() == ["bad", "good"]
    assert classifier.score(texts, labels) > 0.9
    probabilities = classifier.predict_proba(texts)
    assert probabilities.shape == (60, 2)
    assert np.allclose(probabilities.sum(1), 1)
    assert (classifier.classes_[probabilities.argmax(1)] == classifier.predict(texts)).all()
    assert classifier.predict(texts[:1]).tolist() == classifier.predict(texts).tolist()[:1]
    assert classifier.run_.results.method == "full"


@pytest.mark.parametrize("labels", [[3, -1], [True, False], ["no", "yes, please"], [0.0, 1.0], ["", "nan"]])
def test_labels_of_every_type_come_back_as_they_were(
    model: Path, data: tuple[list[str], list[str]], labels: list[Any]
) -> None:
    y = np.array([labels[i % 2] for i in range(60)])
    predicted = heedful.TextClassifier(model, "head", **QUICK).fit(data[0], y).predict(data[0])
    assert predicted.dtype == y.dtype
    assert set(predicted.tolist()) <= set(labels)


def test_texts_may_be_a_list_an_array_a_series_or_one_column(
    classifier: heedful.TextClassifier, data: tuple[list[str], list[str]]
) -> None:
    pandas = pytest.importorskip("pandas")
    texts = data[0][:5]
    expected = classifier.predict_proba(texts)
    for same in (tuple(texts), np.array(texts), np.array(texts, object), pandas.Series(texts), pandas.DataFrame({"t": texts}),
                 np.array(texts)[:, None]):  # fmt: skip
        assert (classifier.predict_proba(same) == expected).all()
    assert classifier.predict_proba([]).shape == (0, 2)


def test_pairs_are_two_columns(model: Path, data: tuple[list[str], list[str]]) -> None:
    pandas = pytest.importorskip("pandas")
    first, labels = data
    second = [text[::-1] for text in first]
    pairs = list(zip(first, second, strict=True))
    fitted = heedful.TextClassifier(model, "head", **QUICK).fit(pairs, labels)
    expected = fitted.predict_proba(pairs)
    assert (fitted.predict_proba(np.array(pairs)) == expected).all()
    assert (fitted.predict_proba(pandas.DataFrame({"a": first, "b": second})) == expected).all()
    assert not np.allclose(fitted.predict_proba(first), expected)


@pytest.mark.parametrize(("texts", "line"), [
    ("one text", "takes a list of texts"),
    ([1.5, 2.5], "row 0 is float"),
    (["a", None], "row 1 is NoneType"),
    ({"a": ["x"], "b": ["y"], "c": ["z"]}, "X has 3 columns"),
])  # fmt: skip
def test_what_is_no_text_is_refused(classifier: heedful.TextClassifier, texts: Any, line: str) -> None:
    with pytest.raises(ValueError, match=line):
        classifier.predict(texts)


def test_y_is_checked(model: Path) -> None:
    estimator = heedful.TextClassifier(model, **QUICK)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        estimator.fit(["a", "b"], ["x"])
    with pytest.raises(ValueError, match="one class"):
        estimator.fit(["a", "b"], ["x", "x"])
    with pytest.raises(ValueError, match="y has a missing value"):
        estimator.fit(["a", "b"], [1.0, float("nan")])
    with pytest.raises(ValueError, match="Unknown label type"):
        estimator.fit(["a", "b", "c"], [0.1, 0.2, 0.3])
    with pytest.raises(NotFittedError, match="call fit"):
        estimator.predict(["a"])


def test_fit_changes_no_parameter_and_a_refit_forgets(model: Path, data: tuple[list[str], list[str]]) -> None:
    estimator = heedful.TextClassifier(model, "head", method_options={}, **QUICK)
    before = estimator.get_params()
    first = estimator.fit(data[0], data[1])
    assert first is estimator
    assert estimator.get_params() == before
    folder, bits = estimator.run_.folder, estimator.predict_proba(data[0])
    estimator.fit(data[0][:40], [i % 3 for i in range(40)])
    assert estimator.classes_.tolist() == [0, 1, 2]
    assert estimator.predict_proba(data[0]).shape == (60, 3)
    assert not folder.exists()
    estimator.fit(*data)
    assert (estimator.predict_proba(data[0]) == bits).all()  # the same bits as the first time


def test_clone_has_the_parameters_and_nothing_learned(classifier: heedful.TextClassifier) -> None:
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(["a"])


def test_a_part_is_held_out_by_content(model: Path) -> None:
    rng = random.Random(1)
    texts = [f"{sentence(rng, bool(i % 2))} {i}" for i in range(400)]
    labels = [i % 2 for i in range(400)]
    estimator = heedful.TextClassifier(model, "head", **QUICK).fit(texts, labels)
    assert 20 <= estimator.dev_rows_ <= 60
    held_out = {row["text"] for row in estimator.run_.predictions("dev").to_pylist()}
    order = rng.sample(range(400), 400)
    estimator.fit([texts[i] for i in order], [labels[i] for i in order])
    assert {row["text"] for row in estimator.run_.predictions("dev").to_pylist()} == held_out
    estimator.set_params(dev_share=0.0).fit(texts, labels)
    assert estimator.dev_rows_ == 0
    assert not estimator.run_.results.splits
    with pytest.raises(ValueError, match="dev_share 2"):
        estimator.set_params(dev_share=2).fit(texts, labels)


def test_few_rows_are_all_trained_on(classifier: heedful.TextClassifier) -> None:
    assert classifier.dev_rows_ == 0


def test_the_temporary_folder_goes_with_the_estimator(
    model: Path, data: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    estimator = heedful.TextClassifier(model, "head", **QUICK).fit(*data)
    folder = estimator.run_.folder
    assert (folder / "best").is_dir()
    del estimator
    gc.collect()
    assert not folder.exists()
    assert not folder.parent.exists()
    kept = heedful.TextClassifier(model, "head", out=tmp_path / "kept", **QUICK).fit(*data)
    assert kept.run_.folder == tmp_path / "kept" / "run"
    kept.fit(*data)
    del kept
    gc.collect()
    assert (tmp_path / "kept" / "run" / "results.json").is_file()


def test_a_fit_that_fails_leaves_nothing(
    model: Path, data: tuple[list[str], list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UserError, match="epochs 0"):
        heedful.TextClassifier(model, epochs=0).fit(*data)
    with pytest.raises(UserError, match="unknown method"):
        heedful.TextClassifier(model, "hed").fit(*data)
    assert not list(tmp_path.iterdir())


def test_a_pickle_needs_no_folder(
    classifier: heedful.TextClassifier, data: tuple[list[str], list[str]]
) -> None:
    copy = pickle.loads(pickle.dumps(classifier))
    assert copy.run_.folder != classifier.run_.folder
    assert (copy.predict_proba(data[0]) == classifier.predict_proba(data[0])).all()
    assert copy.get_params() == classifier.get_params()


def test_save_and_load(
    classifier: heedful.TextClassifier, data: tuple[list[str], list[str]], tmp_path: Path
) -> None:
    folder = classifier.save(tmp_path / "saved")
    again = heedful.load(folder)
    assert isinstance(again, heedful.TextClassifier)
    assert again.classes_.dtype == classifier.classes_.dtype
    assert (again.predict(data[0]) == classifier.predict(data[0])).all()
    assert heedful.RunResult(folder).predict(data[0][:1])[0].label in ("good", "bad")  # it is a run, too
    with pytest.raises(UserError, match="is not empty"):
        classifier.save(folder)
    classifier.save(folder, overwrite=True)
    again.save(folder, overwrite=True)  # onto the folder that it reads from
    assert (heedful.load(folder).predict(data[0]) == classifier.predict(data[0])).all()


def test_save_replaces_nothing_but_saved_estimators(
    classifier: heedful.TextClassifier, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="has other files than a saved estimator"):
        classifier.save(tmp_path / "other", overwrite=True)
    assert (tmp_path / "other" / "thesis.txt").read_text() == "years of work"
    with pytest.raises(UserError, match="is a file; name a folder"):
        classifier.save(tmp_path / "other" / "thesis.txt", overwrite=True)


def test_it_works_in_a_pipeline_and_in_cross_validation(
    model: Path, data: tuple[list[str], list[str]]
) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    pipeline = Pipeline([("lower", lower), ("label", heedful.TextClassifier(model, "head", **QUICK))])
    assert len(cross_val_score(pipeline, *data, cv=2)) == 2


@pytest.mark.long
def test_grid_search_in_two_processes(model: Path, data: tuple[list[str], list[str]]) -> None:
    grid = {"method": ["head", "full"], "epochs": np.array([1, 2])}
    search = GridSearchCV(
        heedful.TextClassifier(model, **{**QUICK, "epochs": 1}), grid, cv=2, n_jobs=2, error_score="raise"
    )
    search.fit(np.array(data[0]), data[1])
    assert search.best_params_["method"] in ("head", "full")
    assert set(search.predict(data[0])) <= {"good", "bad"}


@pytest.mark.parametrize(("name", "line"), [
    ("learning_rate", "TextClassifier: learning_rate is called lr here"),
    ("num_labels", "TextClassifier: there is no num_labels here; the labels are counted"),
    ("num_train_epochs", "TextClassifier: num_train_epochs is called epochs here"),
    ("random_state", "TextClassifier: random_state is called seed here"),
    ("epoch", 'TextClassifier: unknown option "epoch"; did you mean "epochs"'),
])  # fmt: skip
def test_a_name_of_others_is_answered_with_ours(name: str, line: str) -> None:
    with pytest.raises(UserError, match=line):
        heedful.TextClassifier(**{name: 1})
