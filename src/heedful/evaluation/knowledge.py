"""What a model knows, and whether anybody can tell: its memories from its inventions.

A question about somebody whose life the model has read may be answered from memory; a question about somebody
who does not exist can only be answered by invention. Here both are asked, and what is measured is whether the
model's confidence tells one from the other, and by which rule it invents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from heedful.data.random import stream
from heedful.errors import UserError, shorten
from heedful.statistics import calibration
from heedful.statistics.proportions import Interval, wilson

Floats = npt.NDArray[np.float64]
BINS = 10
GIVEN_EACH = 4
"""Strangers per surname, so that people of one surname can be compared."""
PERMUTATIONS = 2000
LISTED = 8
LONGEST_NAME = 5
"""Words in which a stranger's name is looked for in the corpus."""
EDGE = re.compile(r"^\W+|\W+$")


@dataclass(frozen=True)
class ConfidenceQuality:
    """How well confidence tells right answers from wrong ones."""

    n: int
    right: float
    confidence: float
    """The mean."""
    calibration_error: float
    """Expected calibration error over bins of equal mass: 0 when of the answers given with 70 % confidence
    70 % are right."""
    brier: float
    """The mean squared difference of confidence and outcome, 0 to 1."""
    auroc: float | None
    """The chance that a right answer is surer than a wrong one; None when all are right or all are wrong."""
    auroc_ci95: Interval | None
    bins: list[calibration.ReliabilityBin]
    curve: calibration.RiskCoverage


def judge_confidence(confidence: npt.ArrayLike, right: npt.ArrayLike) -> ConfidenceQuality:
    sure, hit = np.asarray(confidence, np.float64), np.asarray(right, bool)
    both = bool(hit.any() and not hit.all())
    return ConfidenceQuality(
        n=len(hit),
        right=float(hit.mean()),
        confidence=float(sure.mean()),
        calibration_error=calibration.calibration_error(sure, hit, BINS),
        brier=calibration.brier(np.stack([1 - sure, sure], axis=1), hit) / 2,
        auroc=calibration.auroc(sure, hit) if both else None,
        auroc_ci95=calibration.auroc_interval(sure, hit) if both else None,
        bins=calibration.reliability(sure, hit, BINS),
        curve=calibration.risk_coverage(sure, hit),
    )


@dataclass(frozen=True)
class SelectiveAnswers:
    """Answering only when sure: the threshold comes from one half, what it does from the other."""

    risk: float
    """What was asked for: the largest share of wrong answers among those given."""
    threshold: float | None
    """None when the first half cannot promise it at any threshold."""
    answered: int
    n: int
    wrong: int

    @property
    def coverage(self) -> float:
        return self.answered / self.n if self.n else 0.0

    @property
    def wrong_share(self) -> float | None:
        """The share of wrong answers among those given."""
        return self.wrong / self.answered if self.answered else None

    @property
    def wrong_ci95(self) -> Interval | None:
        return wilson(self.wrong, self.answered) if self.answered else None


def answer_when_sure(
    confidence: npt.ArrayLike, right: npt.ArrayLike, risk: float, seed: int = 0
) -> SelectiveAnswers:
    """Choose a threshold on one half (Geifman, El-Yaniv 2017), and see what it does on the other."""
    sure, hit = np.asarray(confidence, np.float64), np.asarray(right, bool)
    order = stream(seed, "halves").permutation(len(hit))
    first, second = order[: len(hit) // 2], order[len(hit) // 2 :]
    choice = calibration.threshold_for_risk(sure[first], hit[first], risk) if len(first) else None
    if choice is None:
        return SelectiveAnswers(risk, None, 0, len(second), 0)
    answered = sure[second] >= choice.threshold
    wrong = answered & ~hit[second]
    return SelectiveAnswers(risk, choice.threshold, int(answered.sum()), len(second), int(wrong.sum()))


@dataclass(frozen=True)
class ReplySummary:
    """What a model answers to a group of people."""

    n: int
    right: float | None
    """The exact match; None if the right answers are not known."""
    ci95: Interval | None
    confidence: float
    """The mean."""
    sure: float
    """The share of answers with more than half the probability."""
    distinct: int
    constant: float
    """The share that is train's most frequent answer."""
    known: float
    """The share that is some answer of train."""
    common: list[tuple[str, float]]
    """The most frequent answers and their shares."""


def summarize_replies(
    answers: Sequence[str], confidence: npt.ArrayLike, right: npt.ArrayLike | None, train: Counter[str]
) -> ReplySummary:
    """Summarize a group's answers; `train` counts the answers of the training questions."""
    sure, n = np.asarray(confidence, np.float64), len(answers)
    if not n:
        raise ValueError("a group needs at least one question")
    counts = Counter(answers)
    constant = min(train, key=lambda answer: (-train[answer], answer))
    hits = None if right is None else int(np.asarray(right, bool).sum())
    return ReplySummary(
        n=n,
        right=None if hits is None else hits / n,
        ci95=None if hits is None else wilson(hits, n),
        confidence=float(sure.mean()),
        sure=float((sure > 0.5).mean()),
        distinct=len(counts),
        constant=counts[constant] / n,
        known=sum(count for answer, count in counts.items() if answer in train) / n,
        common=[(a, c / n) for a, c in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:LISTED]],
    )


@dataclass(frozen=True)
class Agreement:
    """Whether people who share something get the same answer more often than others do."""

    same: float
    """The chance that two people who share it get the same answer."""
    anybody: float
    """The chance for any two people."""
    p: float
    """The p value of a permutation test."""


def measure_agreement(answers: Sequence[str], keys: Sequence[str], seed: int = 0) -> Agreement:
    """Compare the answers of people with the same key, such as a surname, with those of all people."""
    _, answer = np.unique(np.asarray(answers, object).astype(str), return_inverse=True)
    _, key = np.unique(np.asarray(keys, object).astype(str), return_inverse=True)
    sizes = np.bincount(key)
    pairs = float((sizes * (sizes - 1)).sum())
    if pairs == 0:
        raise ValueError("no two people share a key")

    def agree(answer: npt.NDArray[np.int64]) -> float:
        counts = np.bincount(key * (answer.max() + 1) + answer)
        return float((counts * (counts - 1)).sum()) / pairs

    same, totals, n = agree(answer), np.bincount(answer), len(answer)
    anybody = float((totals * (totals - 1)).sum()) / (n * (n - 1))
    draws = stream(seed, "permutations")
    as_much = sum(agree(draws.permutation(answer)) >= same for _ in range(PERMUTATIONS))
    return Agreement(same, anybody, (as_much + 1) / (PERMUTATIONS + 1))


@dataclass(frozen=True)
class Stranger:
    """Somebody who does not exist: a given name and a surname that exist, but not together."""

    question: str
    given: str
    surname: str


@dataclass(frozen=True)
class QuestionFrame:
    """What all questions have in common: the text before and after the name."""

    before: str
    after: str

    def name(self, question: str) -> str:
        return question[len(self.before) : len(question) - len(self.after)]

    def ask(self, name: str) -> str:
        return f"{self.before}{name}{self.after}"


def find_frame(questions: Sequence[str]) -> QuestionFrame:
    """Find the words around the name: `Where was ... born?`."""
    rows = [question.split(" ") for question in questions]
    before, after = find_shared_words(rows), find_shared_words([row[::-1] for row in rows])[::-1]
    if len(set(questions)) < 2 or any(len(row) <= len(before) + len(after) for row in rows):
        raise UserError("the questions are not one question about many names; strangers cannot be asked for")
    return QuestionFrame("".join(f"{word} " for word in before), "".join(f" {word}" for word in after))


def find_shared_words(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the words that all rows begin with."""
    return [words[0] for words in takewhile(lambda words: len(set(words)) == 1, zip(*rows, strict=False))]


def invent_strangers(
    questions: Sequence[str], corpus: Iterable[str], *, count: int = 400, seed: int = 0
) -> list[Stranger]:
    """Put given names and surnames of `questions` together anew, so that nobody in them or `corpus` is meant.

    There are four given names per surname. Names of one word have no surname and are left out.
    """
    frame = find_frame(questions)
    names = [frame.name(question).split() for question in questions]
    taken = {" ".join(name) for name in names}
    given = sorted({" ".join(name[:-1]) for name in names if len(name) > 1})
    surnames = sorted({name[-1] for name in names if len(name) > 1})
    if len(given) < GIVEN_EACH or not surnames:
        raise UserError(f'too few names to put together anew, such as "{shorten(" ".join(names[0]))}"')
    draws = stream(seed, "strangers")
    chosen = [surnames[i] for i in draws.permutation(len(surnames))]
    # Twice as many as are wanted: some will turn out to exist.
    strangers: dict[str, Stranger] = {}
    for surname in chosen[: max(1, -(-2 * count // GIVEN_EACH))]:
        for i in draws.permutation(len(given))[: 2 * GIVEN_EACH]:
            name = f"{given[i]} {surname}"
            if name not in taken:
                strangers[name] = Stranger(frame.ask(name), given[i], surname)
    for name in find_mentioned(strangers.keys(), corpus):
        strangers.pop(name, None)
    chosen_strangers: list[Stranger] = []
    per_surname: Counter[str] = Counter()
    for stranger in strangers.values():
        if len(chosen_strangers) < count and per_surname[stranger.surname] < GIVEN_EACH:
            per_surname[stranger.surname] += 1
            chosen_strangers.append(stranger)
    return chosen_strangers


def find_mentioned(names: Iterable[str], corpus: Iterable[str]) -> Iterator[str]:
    """Yield the names that occur in a corpus, each as often as it occurs."""
    wanted = set(names)
    for text in corpus:
        words = [EDGE.sub("", word) for word in text.split()]
        for start in range(len(words)):
            for end in range(start + 2, min(start + LONGEST_NAME, len(words)) + 1):
                name = " ".join(words[start:end])
                if name in wanted:
                    yield name
