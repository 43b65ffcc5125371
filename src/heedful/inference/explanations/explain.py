"""Explains one answer of a model by the words of its text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from heedful.errors import UserError, unknown
from heedful.inference.explanations import linear, occlusion
from heedful.inference.explanations.deletion import RANDOM_ORDERS, run_deletion_test
from heedful.inference.explanations.result import Explanation, WordEffect
from heedful.inference.explanations.target import choose_target
from heedful.inference.explanations.words import TextWords
from heedful.inference.files import Labeler
from heedful.inference.loading import load_run
from heedful.inference.predictor import Floats, LinearPredictor, Predictor
from heedful.options.types import ExplanationMethod
from heedful.progress import ProgressBar, progress

if TYPE_CHECKING:
    from heedful.inference.network_predictors import LogitPredictor

ROWS = 32
"""Texts that are labeled between two steps of the progress."""


def explain(
    predictor: Predictor,
    text: str,
    pair: str | None = None,
    *,
    label: str | None = None,
    against: str | None = None,
    method: ExplanationMethod | None = None,
    orders: int = RANDOM_ORDERS,
    seed: int = 0,
) -> Explanation:
    """Explain the answer to one text, or pair of texts, that has the form that the model was trained on.

    Parameters
    ----------
    predictor
        Any model that labels texts or gives numbers.
    text, pair
        What it labels.
    label
        The label to explain. By default the predicted one.
    against
        The label that it is compared with. By default the most probable other one.
    method
        exact for linear models, gradients (integrated gradients) for networks, or occlusion for any model.
        By default the first of these that is possible.
    orders
        Number of random orders of the deletion test; 0 for no test.
    seed
        Seed of these orders.

    """
    if not predictor.labels and predictor.kind != "number":
        raise UserError("this model answers in free text; only labels and numbers can be explained")
    words = TextWords(text, pair)
    if not len(words):
        raise UserError("the text is empty: there is nothing to explain")
    chosen = choose_method(predictor, method)
    with progress("explaining (texts)") as bar:
        answers = Answers(predictor, words, bar)
        row = answers.whole
        target = choose_target(predictor, row[0], label, against)
        baseline: float | None = None
        error: float | None = None
        points: int | None = None
        unread, together = 0, 1
        if chosen == "exact":
            contributions, baseline = linear.contribute(predictor.model, words, target)
        elif chosen == "gradients":
            from heedful.inference.explanations.gradients import integrate_gradients

            integral = integrate_gradients(as_logit_predictor(predictor), words, target)
            contributions, baseline = integral.contributions, integral.baseline
            points, unread = integral.points, len(words) - integral.read
            if (bag := predictor.model.words) is not None:
                more, start = linear.contribute(bag, words, target)
                contributions, baseline = contributions + more, baseline + start
        else:
            contributions, together = occlusion.occlude(words, lambda sets: target.score(answers.rows(sets)))
        score = float(target.score(row)[0])
        if baseline is not None:
            error = float(contributions.sum()) - (score - baseline)
        names = predictor.labels
        named = None if target.kind == "number" else names[target.label]
        deletion = None
        if orders:
            deletion = run_deletion_test(
                contributions,
                lambda sets: target.value(answers.rows(sets)),
                name="the number" if named is None else "the probability",
                orders=orders,
                seed=seed,
            )
    return Explanation(
        text=text,
        pair=pair,
        kind=predictor.kind,
        label=named,
        against=None if target.against is None else names[target.against],
        value=float(target.value(row)[0]),
        score=score,
        method=chosen,
        words=tuple(
            WordEffect(word.text, word.side, word.start, word.end, float(effect))
            for word, effect in zip(words.words, contributions, strict=True)
        ),
        baseline=baseline,
        error=error,
        unread=unread,
        together=together,
        points=points,
        deletion=deletion,
    )


def explain_run(
    run: Path, text: str, pair: str | None = None, *, device: str = "auto", **options: Any
) -> Explanation:
    """Load a run, and explain its answer to a text, which is prepared as the texts of its task are."""
    labeler = Labeler(run, load_run(run, device=device))
    return explain(labeler.predictor, *labeler.prepare_text(text, pair), **options)


class Answers:
    """What a model answers to a text without some of its words."""

    def __init__(self, predictor: Predictor, words: TextWords, bar: ProgressBar) -> None:
        self.predictor, self.words, self.bar = predictor, words, bar

    @cached_property
    def whole(self) -> Floats:
        """The row of the whole text."""
        return self.compute([()])

    def rows(self, removed: Sequence[Collection[int]]) -> Floats:
        """Return the rows of probabilities, or the numbers, without each of some sets of words."""
        different = [one for one in removed if len(one)]
        rows = iter(self.compute(different)) if different else iter(())
        return np.stack([next(rows) if len(one) else self.whole[0] for one in removed])

    def compute(self, removed: Sequence[Collection[int]]) -> Floats:
        parts = []
        for start in range(0, len(removed), ROWS):
            texts = [self.words.without(one) for one in removed[start : start + ROWS]]
            pairs = [second for _, second in texts if second is not None]
            parts.append(self.predictor.predict_proba([first for first, _ in texts], pairs or None))
            self.bar.advance(len(texts))
        return np.concatenate(parts)


def choose_method(predictor: Predictor, method: ExplanationMethod | None) -> ExplanationMethod:
    if method is not None and method not in get_args(ExplanationMethod):
        raise unknown("method", method, get_args(ExplanationMethod))
    if isinstance(predictor, LinearPredictor):
        if method == "gradients":
            raise UserError("a linear model needs no gradients: its contributions are exact (--method exact)")
        return method or "exact"
    if method == "exact":
        raise UserError("only linear models have exact contributions; --method gradients or occlusion")
    possible = has_gradients(predictor)
    if method == "gradients" and not possible:
        raise UserError("this model has no gradients here; --method occlusion works for every model")
    return method or ("gradients" if possible else "occlusion")


def has_gradients(predictor: Predictor) -> bool:
    """Whether a predictor is a network in torch with a logit per class."""
    if predictor.tokenizer is None or not hasattr(predictor.model, "parameters"):
        return False
    from heedful.inference.network_predictors import LogitPredictor

    return isinstance(predictor, LogitPredictor)


def as_logit_predictor(predictor: Any) -> LogitPredictor:
    checked: LogitPredictor = predictor
    return checked
