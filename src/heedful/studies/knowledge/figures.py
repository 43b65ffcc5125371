"""The study of knowledge shown: tables and figures of what models answered to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.evaluation.knowledge import Agreement, Replies, Sure, Telling, agreement, find_frame, replies
from heedful.runs.answers import Figure, Table
from heedful.runs.schemas import Prediction
from heedful.runs.studies import Outcome
from heedful.statistics.proportions import Interval, wilson

WORDS = {
    "pretrained": "pretrained on the biographies",
    "nothing": "no pretraining",
    "pretrained-signal": "pretrained, names hint at the country",
}
GROUPS = {
    "seen": "asked about while fine-tuning",
    "dev": "only in the biographies",
    "unseen": "exist, but in no text",
    "strangers": "do not exist",
}
EXAMPLES = 6
TOWNS = 10


@dataclass(frozen=True)
class Asked:
    """One run's answers, by group of people."""

    outcome: Outcome
    groups: Mapping[str, list[Prediction]]

    @property
    def name(self) -> str:
        """The run's name."""
        return self.outcome.name

    def right(self, group: str) -> list[bool]:
        """Which answers are right."""
        return [row.predicted == " ".join((row.label or "").split()) for row in self.groups[group]]

    def confidence(self, group: str) -> list[float]:
        """How sure the model was of each."""
        return [row.probabilities.get(row.predicted, 0.0) for row in self.groups[group]]

    def replies(self, group: str, train: Counter[str]) -> Replies:
        """What it answers to a group."""
        rows = self.groups[group]
        right = self.right(group) if rows[0].label is not None else None
        return replies([row.predicted for row in rows], self.confidence(group), right, train)

    def by_surname(self) -> Agreement:
        """Whether people who do not exist get the same answer when they share a surname."""
        rows = self.groups["strangers"]
        frame = find_frame([str(row.text) for row in rows])
        surnames = [frame.name(str(row.text)).split()[-1] for row in rows]
        return agreement([row.predicted for row in rows], surnames)


def constant(train: Counter[str]) -> str:
    """Train's most frequent answer."""
    return min(train, key=lambda answer: (-train[answer], answer))


def constant_right(arm: Asked, train: Counter[str]) -> list[bool]:
    """Where always giving the same answer is right on dev."""
    answer = constant(train)
    return [" ".join((row.label or "").split()) == answer for row in arm.groups["dev"]]


def share(hits: Sequence[bool]) -> tuple[float, Interval]:
    """A share with its interval."""
    return float(np.mean(hits)), wilson(int(np.sum(hits)), len(hits))


def arms_table(done: Mapping[str, Asked], counts: Mapping[str, Counter[str]]) -> Table:
    """Exact match of each arm with its interval, and the baseline."""
    rows = []
    for name, arm in done.items():
        value, interval = share(arm.right("dev"))
        fixed = float(np.mean(constant_right(arm, counts[name])))
        rows.append(
            (
                WORDS.get(name, name),
                len(arm.groups["dev"]),
                value,
                f"{interval.low:.3f} to {interval.high:.3f}",
                fixed,
            )
        )
    columns = ("arm", "dev questions", "exact match", "95 % interval", "constant answer")
    return Table(columns, tuple(rows), "Where was ... born? People who are only in the biographies")


def arms_figure(done: Mapping[str, Asked], counts: Mapping[str, Counter[str]]) -> Figure:
    """The arms as bars, the constant answer as a line."""
    rows = []
    for name, arm in done.items():
        value, interval = share(arm.right("dev"))
        label = WORDS.get(name, name)
        rows.append({"label": label, "value": value, "low": interval.low, "high": interval.high})
    first = next(iter(done))
    fixed = float(np.mean(constant_right(done[first], counts[first])))
    options = {"title": "Exact match on dev", "y_title": "share right", "rules": {"constant answer": fixed}}
    return Figure("arms", "bars", rows, options, "With 95 % intervals (Wilson).")


def telling_table(t: Telling, s: Sure) -> Table:
    """Calibration and selection of the pretrained model, on dev."""
    area = "" if t.auroc_ci95 is None else f"{t.auroc_ci95.low:.3f} to {t.auroc_ci95.high:.3f}"
    wrong = "" if s.wrong_ci95 is None else f"{s.wrong_ci95.low:.3f} to {s.wrong_ci95.high:.3f}"
    rows = (
        ("mean confidence", t.confidence, ""),
        ("share right", t.right, ""),
        ("calibration error (equal mass)", t.calibration_error, ""),
        ("Brier score", t.brier, ""),
        ("AUROC of right against wrong", t.auroc, area),
        ("area under risk-coverage", t.curve.area, f"best possible {t.curve.best_area:.3f}"),
        (f"threshold for risk {s.risk:g}", s.threshold, "from one half"),
        ("answered above it", s.coverage, f"{s.answered} of the other {s.n}"),
        ("wrong among those", s.wrong_share, wrong),
    )
    return Table(("pretrained, on dev", "value", "95 % interval or note"), rows, "Does its confidence tell?")


def groups_table(everybody: Mapping[str, Asked], counts: Mapping[str, Counter[str]]) -> Table:
    """Each arm's answers to each group of people."""
    rows = []
    for name, arm in everybody.items():
        for group, words in GROUPS.items():
            if group not in arm.groups:
                continue
            r = arm.replies(group, counts[name])
            rows.append(
                (WORDS.get(name, name), words, r.n, r.right, r.confidence, r.sure, r.distinct, r.constant)
            )
    columns = (
        "arm",
        "people who",
        "questions",
        "exact match",
        "mean confidence",
        "surer than half",
        "different answers",
        "constant answer",
    )
    return Table(columns, tuple(rows), "What it answers to whom")


def examples_table(arm: Asked) -> Table:
    """Right and wrong answers, the surest of each first: wrong ones that are sure are what hurts."""
    rows = []
    both = list(zip(arm.groups["dev"], arm.right("dev"), arm.confidence("dev"), strict=True))
    for wanted in (True, False):
        ranked = sorted((x for x in both if x[1] is wanted), key=lambda x: -x[2])
        for row, right, sure in ranked[:EXAMPLES]:
            rows.append((str(row.text), row.predicted, str(row.label), "right" if right else "wrong", sure))
    return Table(
        ("question", "answer", "truth", "", "confidence"), tuple(rows), "The surest right and wrong answers"
    )


def telling_figures(arm: Asked, t: Telling) -> list[Figure]:
    """Reliability, risk against coverage, and how sure the model is of whom."""
    bins = [[b.confidence, b.accuracy, b.interval.low, b.interval.high] for b in t.bins]
    curve = [[float(x), float(y)] for x, y in zip(t.curve.coverage, t.curve.risk, strict=True)]
    best = np.cumsum(np.sort(~np.array(arm.right("dev")))) / np.arange(1, t.n + 1)
    samples = {
        "dev, right": [c for c, hit in zip(arm.confidence("dev"), arm.right("dev"), strict=True) if hit],
        "dev, wrong": [c for c, hit in zip(arm.confidence("dev"), arm.right("dev"), strict=True) if not hit],
    }
    if "strangers" in arm.groups:
        samples["people who do not exist"] = arm.confidence("strangers")
    return [
        Figure(
            "reliability",
            "lines",
            {"the model": bins, "perfectly calibrated": [[0, 0], [1, 1]]},
            {
                "title": "Reliability",
                "x_title": "confidence",
                "y_title": "share right",
                "y_domain": [0, 1],
            },
            f"Equally many answers a point, on dev; calibration error {t.calibration_error:.3f}.",
        ),
        Figure(
            "risk-coverage",
            "lines",
            {
                "the model": curve,
                "if confidence told all": [[(i + 1) / t.n, float(r)] for i, r in enumerate(best)],
            },
            {
                "title": "Answering only when sure",
                "x_title": "share of questions answered",
                "y_title": "share wrong among them",
                "y_domain": [0, 1],
            },
        ),
        Figure(
            "confidence",
            "histogram",
            {name: values for name, values in samples.items() if values},
            {
                "title": "How sure it is",
                "x_title": "confidence",
                "y_title": "share of answers",
                "bins": [i / 10 for i in range(11)],
                "share": True,
            },
        ),
    ]


def towns_figure(arm: Asked, train: Counter[str]) -> Figure:
    """What is answered about people who do not exist, beside how frequent each place is in train."""
    rows: list[dict[str, Any]] = []
    answers = Counter(row.predicted for row in arm.groups["strangers"])
    places = [town for town, _ in (answers + train).most_common(TOWNS)]
    for group, counts in (("train", train), ("answers about strangers", answers)):
        rows += [{"label": town, "value": counts[town] / counts.total(), "group": group} for town in places]
    options = {"title": "What it invents", "y_title": "share", "group_title": "among", "form": ".1%"}
    return Figure(
        "inventions", "bars", rows, options, "Of people who do not exist, beside the places of train."
    )
