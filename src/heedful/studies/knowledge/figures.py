"""Tables and figures of the study of knowledge: what each model answered about whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.evaluation import knowledge
from heedful.evaluation.knowledge import Agreement, ConfidenceQuality, ReplySummary, SelectiveAnswers
from heedful.runs.answers import Figure, Table
from heedful.runs.schemas import Prediction
from heedful.runs.studies import Outcome
from heedful.statistics.proportions import Interval, wilson
from heedful.studies.shared.sentences import format_interval

ARM_TITLES = {
    "pretrained": "pretrained on the biographies",
    "nothing": "no pretraining",
    "pretrained-signal": "pretrained, names hint at the country",
}
GROUP_TITLES = {
    "seen": "asked about while fine-tuning",
    "dev": "only in the biographies",
    "unseen": "exist, but in no text",
    "strangers": "do not exist",
}
EXAMPLES = 6
TOWNS = 10


@dataclass(frozen=True)
class Arm:
    outcome: Outcome
    groups: Mapping[str, list[Prediction]]

    @property
    def name(self) -> str:
        return self.outcome.name

    def right(self, group: str) -> list[bool]:
        return [row.predicted == " ".join((row.label or "").split()) for row in self.groups[group]]

    def confidence(self, group: str) -> list[float]:
        return [row.probabilities.get(row.predicted, 0.0) for row in self.groups[group]]

    def replies(self, group: str, train: Counter[str]) -> ReplySummary:
        rows = self.groups[group]
        right = self.right(group) if rows[0].label is not None else None
        answers = [row.predicted for row in rows]
        return knowledge.summarize_replies(answers, self.confidence(group), right, train)

    def by_surname(self) -> Agreement:
        """Return how often people who do not exist get the same answer when they share a surname."""
        rows = self.groups["strangers"]
        frame = knowledge.find_frame([str(row.text) for row in rows])
        surnames = [frame.name(str(row.text)).split()[-1] for row in rows]
        return knowledge.measure_agreement([row.predicted for row in rows], surnames)


def most_frequent(train: Counter[str]) -> str:
    return min(train, key=lambda answer: (-train[answer], answer))


def constant_right(arm: Arm, train: Counter[str]) -> list[bool]:
    """Return where always giving the same answer is right on dev."""
    answer = most_frequent(train)
    return [" ".join((row.label or "").split()) == answer for row in arm.groups["dev"]]


def share_with_interval(hits: Sequence[bool]) -> tuple[float, Interval]:
    return float(np.mean(hits)), wilson(int(np.sum(hits)), len(hits))


def make_arms_table(done: Mapping[str, Arm], counts: Mapping[str, Counter[str]]) -> Table:
    rows = []
    for name, arm in done.items():
        value, interval = share_with_interval(arm.right("dev"))
        title, n = ARM_TITLES.get(name, name), len(arm.groups["dev"])
        fixed = float(np.mean(constant_right(arm, counts[name])))
        rows.append((title, n, value, format_interval(*interval), fixed))
    columns = ("arm", "dev questions", "exact match", "95 % interval", "constant answer")
    return Table(columns, tuple(rows), "Where was ... born? People who are only in the biographies")


def draw_arms(done: Mapping[str, Arm], counts: Mapping[str, Counter[str]]) -> Figure:
    rows = []
    for name, arm in done.items():
        value, interval = share_with_interval(arm.right("dev"))
        label = ARM_TITLES.get(name, name)
        rows.append({"label": label, "value": value, "low": interval.low, "high": interval.high})
    first = next(iter(done))
    fixed = float(np.mean(constant_right(done[first], counts[first])))
    options = {"title": "Exact match on dev", "y_title": "share right", "rules": {"constant answer": fixed}}
    return Figure("arms", "bars", rows, options, "With 95 % intervals (Wilson).")


def make_telling_table(t: ConfidenceQuality, s: SelectiveAnswers) -> Table:
    area = "" if t.auroc_ci95 is None else format_interval(*t.auroc_ci95)
    wrong = "" if s.wrong_ci95 is None else format_interval(*s.wrong_ci95)
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


def make_groups_table(everybody: Mapping[str, Arm], counts: Mapping[str, Counter[str]]) -> Table:
    rows = []
    for name, arm in everybody.items():
        for group, words in GROUP_TITLES.items():
            if group not in arm.groups:
                continue
            r = arm.replies(group, counts[name])
            numbers = (r.n, r.right, r.confidence, r.sure, r.distinct, r.constant)
            rows.append((ARM_TITLES.get(name, name), words, *numbers))
    columns = ("arm", "people who", "questions", "exact match", "mean confidence", "surer than half")
    return Table(
        (*columns, "different answers", "constant answer"), tuple(rows), "What it answers about whom"
    )


def make_examples_table(arm: Arm) -> Table:
    """Return right and wrong answers, the surest of each first: sure and wrong is what hurts."""
    rows = []
    both = list(zip(arm.groups["dev"], arm.right("dev"), arm.confidence("dev"), strict=True))
    for wanted in (True, False):
        ranked = sorted((x for x in both if x[1] is wanted), key=lambda x: -x[2])
        for row, right, sure in ranked[:EXAMPLES]:
            rows.append((str(row.text), row.predicted, str(row.label), "right" if right else "wrong", sure))
    columns = ("question", "answer", "truth", "", "confidence")
    return Table(columns, tuple(rows), "The surest right and wrong answers")


def draw_telling(arm: Arm, t: ConfidenceQuality) -> list[Figure]:
    points = [[b.confidence, b.accuracy, *b.interval] for b in t.bins]
    curve = [[float(x), float(y)] for x, y in zip(t.curve.coverage, t.curve.risk, strict=True)]
    best = np.cumsum(np.sort(~np.array(arm.right("dev")))) / np.arange(1, t.n + 1)
    answers = list(zip(arm.confidence("dev"), arm.right("dev"), strict=True))
    samples = {
        "dev, right": [c for c, hit in answers if hit],
        "dev, wrong": [c for c, hit in answers if not hit],
    }
    if "strangers" in arm.groups:
        samples["people who do not exist"] = arm.confidence("strangers")
    perfect = [[(i + 1) / t.n, float(r)] for i, r in enumerate(best)]
    caption = f"Equally many answers per point, on dev; calibration error {t.calibration_error:.3f}."
    reliability = {"title": "Reliability", "x_title": "confidence", "y_title": "share right"}
    coverage = {"title": "Answering only when sure", "x_title": "share of questions answered"}
    coverage["y_title"] = "share wrong among them"
    confidence = {"title": "How sure it is", "x_title": "confidence", "y_title": "share of answers"}
    bins = {"bins": [i / 10 for i in range(11)], "share": True}
    shares = {"y_domain": [0, 1]}
    square = {"x_domain": [0, 1], "guide": [[0, 0], [1, 1]], "square": True}
    square["subtitle"] = "band: 95 % interval; dashed: perfect calibration"
    risk = {"the model": curve, "if confidence were perfect": perfect}
    filled = {name: values for name, values in samples.items() if values}
    return [
        Figure("reliability", "lines", {"dev": points}, {**reliability, **shares, **square}, caption),
        Figure("risk-coverage", "lines", risk, {**coverage, **shares}),
        Figure("confidence", "histogram", filled, {**confidence, **bins}),
    ]


def draw_towns(arm: Arm, train: Counter[str]) -> Figure:
    """Return answers about people who do not exist, beside how frequent each place is in train."""
    rows: list[dict[str, Any]] = []
    answers = Counter(row.predicted for row in arm.groups["strangers"])
    places = [town for town, _ in (answers + train).most_common(TOWNS)]
    for group, counts in (("train", train), ("answers about strangers", answers)):
        rows += [{"label": town, "value": counts[town] / counts.total(), "group": group} for town in places]
    options = {"title": "What it invents", "y_title": "share", "group_title": "among", "form": ".1%"}
    caption = "Answers about people who do not exist, beside the places in train."
    return Figure("inventions", "bars", rows, options, caption)
