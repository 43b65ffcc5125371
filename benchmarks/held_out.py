"""What held-out rows of a small file are worth: to select by repeated folds, and to be fitted to afterwards.

    python -m benchmarks.held_out sst2 --rows 300 --trials 200

Each trial draws training rows, scores three linear candidates by five folds once and repeatedly, and compares
with the accuracy of the candidates fitted to all training rows, on rows that were not drawn. Then they are
fitted to an eighth more rows, which is what dev adds to train where a file is split 80/10/10.
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
    parser.add_argument("task", nargs="?", default="sst2")
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
    # [trial, candidate], [trial, candidate, repetition] and [trial, candidate]
    truth, scores, refitted = (np.array(part) for part in zip(*trials, strict=True))
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

    gains = 100 * (refitted - truth).mean(1)
    error = gains.std(ddof=1) / np.sqrt(len(gains))
    print(f"fitted again to an eighth more rows: {gains.mean():+.2f} (standard error {error:.2f})")


def run_trial(
    features: dict[str, csr_matrix], labels: np.ndarray, order: np.ndarray, count: int, seed: int
) -> tuple[list[float], list[list[float]], list[float]]:
    """Return each candidate's true accuracy, its scores by five folds, one per pass, and what dev adds."""
    more = count + count // 8
    rows, others = order[:count], order[more : more + SCORED]
    truth, scores, refitted = [], [], []
    for kind, model in CANDIDATES.values():
        x = features[kind]
        model.fit(x[rows], labels[rows])
        truth.append(accuracy_score(labels[others], model.predict(x[others])))
        passes = (
            StratifiedKFold(FOLDS, shuffle=True, random_state=1000 * seed + n)
            for n in range(max(REPETITIONS))
        )
        scores.append([cross_val_score(model, x[rows], labels[rows], cv=cv).mean() for cv in passes])
        model.fit(x[order[:more]], labels[order[:more]])
        refitted.append(accuracy_score(labels[others], model.predict(x[others])))
    return truth, scores, refitted


if __name__ == "__main__":
    main()
