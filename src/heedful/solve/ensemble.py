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
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.evaluation.decision_threshold import predict_held_out
from heedful.evaluation.metrics import Metric
from heedful.logs import notice
from heedful.options.model_names import ENSEMBLE
from heedful.options.solve import Prefer
from heedful.runs.directory import Run
from heedful.runs.studies import StudyFolder
from heedful.solve.average_loss import LogLoss, Loss, SquaredLoss
from heedful.solve.candidates import SETUP_SECONDS, Candidate, Speed
from heedful.solve.choice import Cost, ScoredCandidate, ScoredCandidates, choose
from heedful.solve.held_out import count_common_folds, fold_names, read_answers, read_held_out
from heedful.solve.plan import describe_lack
from heedful.solve.run_maker import RunMaker
from heedful.solve.state import SolveState
from heedful.statistics.thresholds import cross_fit, find_goal

Floats = npt.NDArray[np.float64]
MOST_MEMBERS = 3
LEAST_WEIGHT = 0.05
"""A member with a smaller weight is not worth its cost."""
LEAST_GAIN = 0.002
"""A further member must lower the mean log loss by this much; of numbers, half the log squared error."""
LEAST_ROWS = 100
"""With fewer held-out rows, weights are not worth choosing."""
PARTS = 5
"""Number of parts for the cross-fitting."""


@dataclass(frozen=True)
class Blend:
    """An average of candidates."""

    weights: dict[str, float]
    """The weight of each member; they sum to 1."""
    probabilities: Floats
    """Probabilities of the held-out rows `[n, classes]`, or numbers `[n]`, cross-fitted."""
    labels: tuple[str, ...]
    """Names of the classes."""
    targets: npt.NDArray[Any]
    """The right answers: names of labels, one 0 or 1 per label, or numbers."""

    def predict(self, metric: Metric) -> npt.NDArray[Any]:
        """Return the predicted answers; the thresholds of several labels are cross-fitted for the metric."""
        if self.probabilities.ndim == 1:
            return self.probabilities
        if self.targets.ndim == 2:
            return cross_fit(self.probabilities, self.targets, find_goal(metric.name))
        numbers = np.array([self.labels.index(label) for label in self.targets], np.int64)
        best = predict_held_out(metric, numbers, self.probabilities)  # by a threshold of its own, if any
        return np.array(self.labels, dtype=object)[best]


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
    answers = [read_answers(read_held_out(folder, name, folds), label_names) for name in names]
    targets = answers[0].targets
    tables = [one.predicted if one.probabilities is None else one.probabilities for one in answers]
    numbers = targets
    if targets.dtype == object:
        numbers = np.array([label_names.index(label) for label in targets])
    blend = blend_outputs(np.array(tables, np.float64), numbers)
    if blend is None:
        return None
    weights, probabilities = blend
    members = {name: round(float(w), 4) for name, w in zip(names, weights, strict=True) if w > 0}
    heaviest_first = sorted(members, key=lambda name: -members[name])
    return Blend({name: members[name] for name in heaviest_first}, probabilities, tuple(label_names), targets)


def make_loss(tables: Floats, targets: npt.NDArray[Any]) -> Loss:
    """Return what the weights of an average minimize on some rows."""
    if tables.ndim == 2:
        return SquaredLoss(tables.T, targets)
    if targets.ndim == 2:  # each label of each row is an example of its own
        of_truth = np.where(targets == 1, tables, 1 - tables)
        return LogLoss(of_truth.reshape(len(tables), -1).T)
    return LogLoss(tables[:, np.arange(len(targets)), targets].T)


def blend_outputs(tables: Floats, targets: npt.NDArray[Any]) -> tuple[Floats, Floats] | None:
    """Choose weights for probabilities `[models, n, classes]` or numbers `[models, n]`.

    `targets` are the numbers of the labels, one 0 or 1 per label, or numbers. None if one model alone is as
    good.

    Returns
    -------
    weights
        `[models]`, chosen on all rows; zero for a model that is no member.
    outputs
        `[n, classes]` or `[n]`; those of each row are averaged with weights that were chosen without it.

    """
    n = len(targets)
    if n < LEAST_ROWS or (weights := choose_weights(make_loss(tables, targets))).max() == 1:
        return None
    # The parts do not depend on the labels, so that nothing of a row's label reaches its probabilities.
    parts = np.random.default_rng(0).permutation(n) % PARTS
    blended = np.empty(tables.shape[1:])
    for part in range(PARTS):
        held_out = parts == part
        chosen = choose_weights(make_loss(tables[:, ~held_out], targets[~held_out]))
        blended[held_out] = np.tensordot(chosen, tables[:, held_out], 1)
    return weights, blended


def choose_weights(loss: Loss) -> Floats:
    """Return the weights `[models]` of at most `MOST_MEMBERS` models, by the loss of their average.

    The best model comes first; then, as long as it helps, the one that lowers the loss most together with
    those that are members.
    """
    models = range(loss.n_models)
    members = [min(models, key=lambda model: loss.measure([model]))]
    value = loss.measure(members)
    while len(members) < min(MOST_MEMBERS, loss.n_models):
        losses = {model: loss.measure([*members, model]) for model in models if model not in members}
        best = min(losses, key=lambda model: losses[model])
        if losses[best] > value - LEAST_GAIN:
            break
        value = losses[best]
        members.append(best)
    fitted = loss.fit(members)
    while fitted.min() < LEAST_WEIGHT:
        members.pop(int(fitted.argmin()))
        fitted = loss.fit(members)
    weights = np.zeros(loss.n_models)
    weights[members] = fitted
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
    predicted = blend.predict(scored.metric)
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
    answer = runs.ask_in_time(name, partial(runs.process.ask, runs.left), do="ensemble", **wanted)
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
