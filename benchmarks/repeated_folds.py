"""What a second pass of five folds, cut by another seed, adds to the first when a candidate is selected.

    python benchmarks/repeated_folds.py sst2 --rows 300 --trials 100

Each trial draws rows, scores three linear candidates by five folds once and repeatedly, and compares with the
accuracy of the candidates fitted to all drawn rows, on the rows that were not drawn.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import MultinomialNB

from heedful.data import load_task

FOLDS, REPETITIONS, SCORED, POOL = 5, (1, 2, 5), 5000, 20_000
CANDIDATES = {
    "words": ("words", OneVsRestClassifier(LogisticRegression(C=10, solver="liblinear"))),
    "characters": ("characters", OneVsRestClassifier(LogisticRegression(C=10, solver="liblinear"))),
    "naive Bayes": ("words", MultinomialNB(alpha=0.3)),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--trials", type=int, default=100)
    arguments = parser.parse_args()
    train = load_task(arguments.task).splits["train"]
    assert train.labels is not None
    rng = np.random.default_rng(0)
    pool = np.sort(rng.permutation(len(train))[:POOL])
    texts, labels = [train.texts[int(row)] for row in pool], train.labels[pool]
    features = {
        "words": TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True).fit_transform(texts),
        "characters": TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 4), min_df=2, sublinear_tf=True)
        .fit_transform(texts),
    }  # fmt: skip
    trials = [
        run_trial(features, labels, rng.permutation(len(labels)), arguments.rows, seed)
        for seed in range(arguments.trials)
    ]
    truth, scores = (np.array(part) for part in zip(*trials, strict=True))  # [trial, candidate, repetition]
    print(f"{arguments.task}, {arguments.rows} rows, {arguments.trials} trials; accuracy in points")
    print("passes  error of a score  of a difference  best chosen  lost by the choice")
    for count in REPETITIONS:
        mean = scores[:, :, :count].mean(2)
        error = np.sqrt(np.mean((mean - truth) ** 2))
        differences = (mean[:, :1] - mean[:, 1:]) - (truth[:, :1] - truth[:, 1:])
        chosen = np.take_along_axis(truth, mean.argmax(1)[:, None], 1)[:, 0]
        lost = truth.max(1) - chosen
        print(
            f"{count:6}  {100 * error:16.2f}  {100 * np.sqrt(np.mean(differences**2)):15.2f}"
            f"  {np.mean(lost == 0):11.0%}  {100 * lost.mean():18.2f}"
        )


def run_trial(
    features: dict[str, csr_matrix], labels: np.ndarray, order: np.ndarray, count: int, seed: int
) -> tuple[list[float], list[list[float]]]:
    """Return the true accuracy of each candidate, and its scores by five folds, one per pass."""
    rows, others = order[:count], order[count : count + SCORED]
    truth, scores = [], []
    for kind, model in CANDIDATES.values():
        x = features[kind]
        model.fit(x[rows], labels[rows])
        truth.append(accuracy_score(labels[others], model.predict(x[others])))
        passes = (
            StratifiedKFold(FOLDS, shuffle=True, random_state=1000 * seed + n)
            for n in range(max(REPETITIONS))
        )
        scores.append([cross_val_score(model, x[rows], labels[rows], cv=cv).mean() for cv in passes])
    return truth, scores


if __name__ == "__main__":
    main()
