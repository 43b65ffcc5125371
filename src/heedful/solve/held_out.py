"""What candidates predicted on rows that they were not trained on: dev, and folds of train."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.evaluation.metrics import ACCURACY, Array, find_metric
from heedful.runs.directory import Run
from heedful.runs.schemas import Prediction
from heedful.runs.studies import StudyFolder
from heedful.solve.candidates import Candidate, DataFacts
from heedful.solve.choice import ScoredCandidate, ScoredCandidates, label_array
from heedful.solve.expectations import expect_scores, is_like_accuracy
from heedful.solve.state import SolveState


class Answers(NamedTuple):
    """The right and the predicted answers of rows, as metrics take them; labels alone are still names."""

    targets: Array
    predicted: Array
    probabilities: npt.NDArray[np.float64] | None
    """The probabilities of the labels `[rows, labels]`; None for numbers."""


def fold_names(name: str, folds: int) -> list[str]:
    """Return the names of the runs that hold out a fold of train each."""
    return [f"{name}-fold{number}" for number in range(1, folds + 1)]


def count_common_folds(state: SolveState) -> int:
    """Return the number of folds that all finished candidates were scored on."""
    return min((cost.folds for cost in state.costs.values()), default=0)


def read_held_out(folder: StudyFolder, name: str, folds: int) -> list[Prediction]:
    """Read the predictions of a candidate on rows that its runs did not train on: dev, then each fold."""
    runs = [Run.open(folder.run(run)) for run in (name, *fold_names(name, folds))]
    return [row for run in runs for row in run.read_predictions("dev")]


def read_answers(rows: Sequence[Prediction], names: Sequence[str]) -> Answers:
    """Return the answers in rows of predictions; `names` are those of the labels."""
    if rows and rows[0].value is not None:
        pairs = np.array([(row.value, row.predicted_value) for row in rows], np.float64)
        return Answers(pairs[:, 0], pairs[:, 1], None)
    probabilities = np.array([[row.probabilities[name] for name in names] for row in rows], np.float64)
    if rows and rows[0].labels is not None:
        truth, predicted = (
            np.array([[name in found for name in names] for found in sets], np.uint8)
            for sets in ([r.labels or () for r in rows], [r.predicted_labels or () for r in rows])
        )
        return Answers(truth, predicted, probabilities)
    labels = label_array([r.label for r in rows]), label_array([r.predicted for r in rows])
    return Answers(*labels, probabilities)


def score_candidates(
    folder: StudyFolder, candidates: Sequence[Candidate], state: SolveState, facts: DataFacts
) -> ScoredCandidates:
    """Read the finished candidates with their predictions of dev and, if there are any, of the folds."""
    scored, folds = [], count_common_folds(state)
    targets: Any = label_array([])
    names, metric = tuple[str, ...](), ACCURACY
    for candidate in candidates:
        if candidate.name not in state.costs:
            continue
        rows = read_held_out(folder, candidate.name, folds)
        results = Run.open(folder.run(candidate.name)).read_results()
        names = tuple(results.labels or ())
        metric = find_metric(results.splits["dev"].metric, names)
        targets, predicted, probabilities = read_answers(rows, names)
        cost, baseline = state.costs[candidate.name], candidate.baseline
        read = probabilities if metric.reads == "probabilities" else None
        scored.append(ScoredCandidate(candidate.name, candidate.title, predicted, cost, baseline, read))
    held_out = f"dev and {folds} fold{'s' * (folds > 1)}" if folds else "dev"
    # The expectations are about the accuracy of single labels.
    known = facts.kind == "label" and is_like_accuracy(metric)
    prior = expect_scores((c.name for c in scored), facts) if known else None
    return ScoredCandidates(tuple(scored), targets, metric, held_out, prior, names)
