"""An average of the best candidates: its members, their weights, and whether it is worth its cost.

The weights are chosen on held-out predictions, and a score of the average on the same rows would be too high.
It is therefore compared by cross-fitting: the held-out rows are divided into parts, and for each part members
and weights are chosen on the other parts alone. The weights in use are chosen on all held-out rows.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from heedful.evaluation.decision_threshold import predict_held_out
from heedful.logs import notice
from heedful.options.model_names import ENSEMBLE
from heedful.options.solve import Prefer
from heedful.runs.directory import Run
from heedful.runs.studies import StudyFolder
from heedful.solve.answer import count_common_folds, fold_names, read_held_out
from heedful.solve.candidates import SETUP_SECONDS, Candidate, Speed
from heedful.solve.choice import Cost, ScoredCandidate, ScoredCandidates, choose
from heedful.solve.plan import describe_lack
from heedful.solve.run_maker import RunMaker
from heedful.solve.state import SolveState

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
MOST_MEMBERS = 3
LEAST_WEIGHT = 0.05
"""A member with a smaller weight is not worth its cost."""
LEAST_GAIN = 0.002
"""A further member must lower the mean log loss by this much."""
LEAST_ROWS = 100
"""With fewer held-out rows, weights are not worth choosing."""
PARTS = 5
"""Number of parts for the cross-fitting."""
ROUNDS, PRECISION = 200, 1e-5
TINY = 1e-12


@dataclass(frozen=True)
class Blend:
    """An average of candidates."""

    weights: dict[str, float]
    """The weight of each member; they sum to 1."""
    probabilities: Floats
    """Probabilities of the held-out rows `[n, classes]`, cross-fitted."""
    labels: tuple[str, ...]
    """Names of the classes."""

    @property
    def predicted(self) -> npt.NDArray[np.object_]:
        return np.array([self.labels[best] for best in self.probabilities.argmax(1)], dtype=object)


def make_candidate(name: str, weights: Mapping[str, float], candidates: Sequence[Candidate]) -> Candidate:
    """Return the average as a candidate that is done; it is never planned."""
    titles = {candidate.name: candidate.title for candidate in candidates}
    members = [f"{titles.get(member, member)} ({weight:.2f})" for member, weight in weights.items()]
    title = f"average of {', '.join(members[:-1])} and {members[-1]}"
    return Candidate(name, title, {}, lambda facts, speed: 0.0, evaluates=False)


def blend_candidates(folder: StudyFolder, names: Sequence[str], folds: int) -> Blend | None:
    """Choose members and weights by the held-out predictions of candidates; None if one alone is as good."""
    if len(names) < 2:
        return None
    label_names = Run.open(folder.run(names[0])).read_results().labels or ()
    rows = read_held_out(folder, names[0], folds)
    labels = np.array([label_names.index(str(row.label)) for row in rows])
    tables = [
        [[row.probabilities[label] for label in label_names] for row in read_held_out(folder, name, folds)]
        for name in names
    ]
    blend = blend_probabilities(np.array(tables, np.float64), labels)
    if blend is None:
        return None
    weights, probabilities = blend
    members = {name: round(float(w), 4) for name, w in zip(names, weights, strict=True) if w > 0}
    heaviest_first = sorted(members, key=lambda name: -members[name])
    return Blend({name: members[name] for name in heaviest_first}, probabilities, tuple(label_names))


def blend_probabilities(tables: Floats, labels: Ints) -> tuple[Floats, Floats] | None:
    """Choose weights for probabilities `[models, n, classes]`; None if one model alone is as good.

    Returns
    -------
    weights
        `[models]`, chosen on all rows; zero for a model that is no member.
    probabilities
        `[n, classes]`; those of each row are averaged with weights that were chosen without it.

    """
    likelihoods = tables[:, np.arange(len(labels)), labels].T
    if len(labels) < LEAST_ROWS or (weights := choose_weights(likelihoods)).max() == 1:
        return None
    # The parts do not depend on the labels, so that nothing of a row's label reaches its probabilities.
    parts = np.random.default_rng(0).permutation(len(labels)) % PARTS
    blended = np.empty(tables.shape[1:])
    for part in range(PARTS):
        held_out = parts == part
        blended[held_out] = np.tensordot(choose_weights(likelihoods[~held_out]), tables[:, held_out], 1)
    return weights, blended


def choose_weights(likelihoods: Floats) -> Floats:
    """Return the weights `[models]` of at most `MOST_MEMBERS` models, by the log loss of their average.

    `likelihoods` are the probabilities of the true labels `[n, models]`. The best model comes first; then, as
    long as it helps, the one that lowers the loss most together with those that are members.
    """
    likelihoods = np.maximum(likelihoods, TINY)
    members = [int(mean_loss(likelihoods).argmin())]
    loss = float(mean_loss(likelihoods)[members[0]])
    while len(members) < min(MOST_MEMBERS, likelihoods.shape[1]):
        others = [model for model in range(likelihoods.shape[1]) if model not in members]
        losses = [average_loss(likelihoods[:, [*members, other]]) for other in others]
        if min(losses) > loss - LEAST_GAIN:
            break
        loss = min(losses)
        members.append(others[losses.index(loss)])
    fitted = fit_weights(likelihoods[:, members])
    while fitted.min() < LEAST_WEIGHT:
        members.pop(int(fitted.argmin()))
        fitted = fit_weights(likelihoods[:, members])
    weights = np.zeros(likelihoods.shape[1])
    weights[members] = fitted
    return weights


def mean_loss(likelihoods: Floats) -> Floats:
    return np.asarray(-np.log(likelihoods).mean(0))


def average_loss(likelihoods: Floats) -> float:
    return float(mean_loss(likelihoods @ fit_weights(likelihoods)))


def fit_weights(likelihoods: Floats) -> Floats:
    """Return the weights with the lowest log loss of the average.

    The loss is convex, and the steps are those of expectation maximization: each lowers it, and the weights
    stay positive and sum to 1.
    """
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    for _ in range(ROUNDS):
        shares = weights * likelihoods
        new = (shares / shares.sum(1, keepdims=True)).mean(0)
        if np.abs(new - weights).max() < PRECISION:
            break
        weights = new
    return weights


def add_costs(costs: Mapping[str, Cost], members: Sequence[str], folds: int) -> Cost:
    """Return what an average takes: as much as its members together."""
    parts = [costs[name] for name in members]
    return Cost(
        seconds=sum(one.seconds for one in parts),
        ms_per_text=sum(one.ms_per_text for one in parts),
        megabytes=sum(one.megabytes for one in parts),
        disk_megabytes=sum(one.disk_megabytes for one in parts),
        folds=folds,
    )


def explain_unworthy(scored: ScoredCandidates, name: str, prefer: Prefer | None) -> str:
    """Return why an average is not worth its cost; empty if it is.

    It must be shown to be better than the best other candidate, or be better by a standard error of the
    difference, and it must be what the preference chooses, in view of its cost.
    """
    metric = scored.metric
    values = {c.name: metric.sort_key(scored.value(c.name))[0] for c in scored.candidates}
    best = max((other for other in values if other != name), key=lambda other: values[other])
    comparison = replace(
        metric.paired_test(
            scored.targets,
            [scored.outputs[name]],
            [scored.outputs[best]],
            names=(name, best),
        ),
        higher_is_better=metric.higher_is_better,
    )
    gain, error = values[name] - values[best], math.sqrt(comparison.example_variance)
    if gain > 0 and (comparison.differs or gain >= error) and choose(scored, prefer).chosen == name:
        return ""
    scores = f"{scored.value(name):.3f} on held-out rows against {scored.value(best):.3f} of {best}"
    return f"is not worth its cost ({scores})"


def name_ensemble(ensembles: Mapping[str, object]) -> str:
    """Return the name of the next average: another one is made if there are other candidates later."""
    return f"{ENSEMBLE}-{len(ensembles) + 1}" if ensembles else ENSEMBLE


def make_ensemble(
    runs: RunMaker, candidates: Sequence[Candidate], scored: ScoredCandidates, usable: SolveState
) -> Candidate | None:
    """Average the best candidates in a run, and note its cost; None if it is not made."""
    state = runs.state
    finished = [c for c in candidates if c.name in usable.costs and c.name in state.costs]
    singles = [c.name for c in finished if not c.baseline and c.name not in state.ensembles]
    folds = count_common_folds(usable)
    blend = blend_candidates(runs.folder, singles, folds)
    if blend is None and len(singles) > 1:
        few = f"there are fewer than {LEAST_ROWS} held-out rows"
        state.left_out[ENSEMBLE] = f"one candidate alone is as good, or {few}"
    if blend is None or blend.weights in state.ensembles.values():
        return None
    name = name_ensemble(state.ensembles)
    candidate = make_candidate(name, blend.weights, candidates)
    cost = add_costs(usable.costs, list(blend.weights), folds)
    probabilities = blend.probabilities if scored.metric.reads == "probabilities" else None
    predicted = blend.predicted
    if probabilities is None:  # by a threshold of its own, as the candidates
        numbers = predict_held_out(scored.metric, scored.targets, blend.probabilities)
        predicted = np.array(blend.labels, dtype=object)[numbers]
    average = ScoredCandidate(name, candidate.title, predicted, cost, probabilities=probabilities)
    compared = replace(scored, candidates=(*scored.candidates, average))
    members = [c for c in candidates if c.name in blend.weights]
    reason = explain_unworthy(compared, name, runs.options.prefer) or explain_unready(runs, members, folds)
    if reason:
        state.left_out[ENSEMBLE] = reason
        return None
    notice(f"{name}: {candidate.title}")
    for run in (name, *fold_names(name, folds)):  # of a command that was ended half way
        shutil.rmtree(runs.folder.run(run), ignore_errors=True)
    options = runs.make_run_options({"model": ENSEMBLE, "out": runs.folder.run(name)})
    wanted = {"options": options, "candidates": singles, "folds": folds}
    answer = runs.ask_in_time(runs.left, name, do="ensemble", **wanted)
    if "error" in answer:
        state.left_out[ENSEMBLE] = str(answer["error"])
        notice(f"{name}: {answer['error']}")
        return None
    state.ensembles[name] = blend.weights
    seconds, megabytes = cost.seconds + answer["seconds"], answer["disk_megabytes"]
    state.costs[name] = replace(cost, seconds=seconds, disk_megabytes=megabytes)
    notice(f"{name}: {scored.metric.title} {compared.value(name):.3f} on {scored.held_out}")
    return candidate


def explain_unready(runs: RunMaker, members: Sequence[Candidate], folds: int) -> str:
    """Return why an average cannot be made now: time or weights are missing. Empty if it can."""
    budget, encoders = runs.budget, [c for c in members if c.encoder]
    forward = (budget.speed or Speed()).forward_row
    more_test = 1.2 * budget.facts.test * forward * max(0, len(encoders) - 1)
    needed = budget.slowness * (SETUP_SECONDS + folds + more_test)
    if needed > runs.left:
        return describe_lack(needed, runs.left)
    for member in members:
        if not (runs.has_weights(member.name) or runs.restore_weights(member.name)):
            return f"the weights of {member.name} were removed by an earlier command"
    return ""
