"""What the study of knowledge found, in words, tables and figures, from the models' answers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from heedful.evaluation.checks.words import percent
from heedful.evaluation.intervals import Interval, wilson
from heedful.evaluation.knowledge import (
    Agreement,
    Replies,
    Sure,
    Telling,
    agreement,
    answer_when_sure,
    find_frame,
    replies,
    telling,
)
from heedful.evaluation.paired import compare, p_text
from heedful.runs.answers import Answer, Figure, Table
from heedful.runs.schemas import Prediction
from heedful.runs.studies import Outcome, StudyRecord
from heedful.studies.base import failures

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


def tell(record: StudyRecord, asked: Sequence[Asked], train: Mapping[str, Counter[str]]) -> Answer:
    """The answer, also while runs are missing."""
    done = {a.name: a for a in asked if "dev" in a.groups}
    counts = {a.name: train[str(a.outcome.configuration.settings["name_signal"])] for a in asked}
    main = done.get("pretrained")
    outcomes = [a.outcome for a in asked]
    facts: dict[str, Any] = {"arms": {name: arm_facts(a, counts[name]) for name, a in done.items()}}
    sentences = compared(done, counts)
    tables = [arms_table(done, counts)]
    figures = [arms_figure(done, counts)] if done else []
    if main is not None:
        told = telling(main.confidence("dev"), main.right("dev"))
        sure = answer_when_sure(
            main.confidence("dev"), main.right("dev"), float(record.options["risk"]), record.seed
        )
        facts |= {"telling": telling_facts(told), "when_sure": asdict(sure)}
        sentences += [told_apart(told), when_sure(sure)]
        tables += [telling_table(told, sure), examples_table(main)]
        figures += telling_figures(main, told)
    everybody = {name: a for name, a in done.items() if "strangers" in a.groups}
    if everybody:
        tables.append(groups_table(everybody, counts))
        found = {name: a.by_surname() for name, a in everybody.items()}
        facts["same_surname"] = {name: asdict(one) for name, one in found.items()}
        if main is not None and main.name in everybody:
            sentences.append(invented(main, counts[main.name]))
            figures.append(towns_figure(main, counts[main.name]))
        sentences += [by_names(name, one) for name, one in found.items() if name != "nothing"]
    return Answer(
        study="knowledge",
        title=record.question,
        summary=tuple(sentences) or ("No run has answered yet.",),
        finished=False,
        notes=tuple(failures(outcomes)),
        figures=tuple(figures),
        tables=tuple(tables),
        runs=tuple(f"runs/{o.name}" for o in sorted(outcomes, key=lambda o: o.name != "pretrained")),
        facts=facts,
    )


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


def spoken(hits: Sequence[bool]) -> str:
    """A share with its interval, in a sentence."""
    value, interval = share(hits)
    return f"{percent(value)} ({percent(interval.low)} to {percent(interval.high)})"


def compared(done: Mapping[str, Asked], counts: Mapping[str, Counter[str]]) -> list[str]:
    """The arms against each other and against one answer for all."""
    if "pretrained" not in done:
        return []
    main = done["pretrained"]
    fixed = constant_right(main, counts["pretrained"])
    sentence = (
        f"The pretrained model answers {spoken(main.right('dev'))} of {len(fixed):,} questions about people "
        f"it has only read about; always answering {constant(counts['pretrained'])} is right for "
        f"{spoken(fixed)}"
    )
    if "nothing" not in done:
        return [f"{sentence}."]
    other = done["nothing"].right("dev")
    c = compare(main.right("dev"), other, names=("pretrained", "without"))
    verdict = "a difference" if c.differs else "no difference that these questions can tell"
    return [
        f"{sentence}; without pretraining it is {spoken(other)}.",
        f"Pretraining changes exact match by {c.difference:+.3f} (95 % interval {c.low:+.3f} to "
        f"{c.high:+.3f}, p {p_text(c.p)}): {verdict}.",
    ]


def told_apart(t: Telling) -> str:
    """Whether confidence tells right from wrong."""
    if t.auroc is None or t.auroc_ci95 is None:
        return f"All {t.n:,} answers are {'right' if t.right else 'wrong'}: there is nothing to tell apart."
    return (
        f"A right answer is surer than a wrong one in {percent(t.auroc)} of pairs (AUROC {t.auroc:.3f}, 95 % "
        f"interval {t.auroc_ci95.low:.3f} to {t.auroc_ci95.high:.3f}); the mean confidence is "
        f"{percent(t.confidence)} where {percent(t.right)} is right (calibration error "
        f"{t.calibration_error:.3f})."
    )


def when_sure(s: Sure) -> str:
    """What answering only when sure would cost."""
    if s.threshold is None or s.wrong_share is None:
        return (
            f"No threshold of confidence promises at most {percent(s.risk)} wrong answers: half of these "
            "questions is not enough for it, or confidence is not."
        )
    interval = s.wrong_ci95
    assert interval is not None
    return (
        f"Answering only above a confidence of {s.threshold:.3f}, chosen on half of the questions to have at "
        f"most {percent(s.risk)} wrong, answers {percent(s.coverage)} of the other half, of which "
        f"{percent(s.wrong_share)} are wrong ({percent(interval.low)} to {percent(interval.high)})."
    )


def invented(arm: Asked, train: Counter[str]) -> str:
    """What is answered about people who do not exist."""
    r = arm.replies("strangers", train)
    listed = ", ".join(f"{town} {percent(part)}" for town, part in r.common[:3])
    return (
        f"Asked about {r.n:,} people who do not exist, it never says so: {percent(r.sure)} of the answers "
        f"have more than half of the probability, {percent(r.known)} are places of train, "
        f"{percent(r.constant)} its most frequent one ({listed} are what it says most)."
    )


def by_names(name: str, a: Agreement) -> str:
    """Whether an invention follows the surname."""
    where = "Where names hint at the country, two" if name.endswith("signal") else "Two"
    verdict = "the surname decides" if a.p < 0.05 else "nothing shows that the surname matters"
    return (
        f"{where} strangers with one surname get the same place in {percent(a.same)} of pairs, any two in "
        f"{percent(a.anybody)} (p {p_text(a.p)}): {verdict}."
    )


def arm_facts(arm: Asked, train: Counter[str]) -> dict[str, Any]:
    """Numbers of one arm, for programs."""
    value, interval = share(arm.right("dev"))
    groups = {group: asdict(arm.replies(group, train)) for group in arm.groups}
    baseline = float(np.mean(constant_right(arm, train)))
    return {"exact_match": value, "ci95": interval, "constant_answer": baseline, "groups": groups}


def telling_facts(t: Telling) -> dict[str, Any]:
    """Numbers without the curves."""
    kept = ("n", "right", "confidence", "calibration_error", "brier", "auroc", "auroc_ci95")
    return {name: getattr(t, name) for name in kept} | {
        "risk_coverage_area": t.curve.area,
        "best_area": t.curve.best_area,
    }


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
    options = {"title": "What it invents", "y_title": "share", "group_title": "among"}
    return Figure(
        "inventions", "bars", rows, options, "Of people who do not exist, beside the places of train."
    )
