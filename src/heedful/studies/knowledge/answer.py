"""What the study of knowledge found, in words, tables and figures, from the models' answers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from heedful.evaluation.checks.findings import percent
from heedful.evaluation.knowledge import Agreement, Sure, Telling, answer_when_sure, telling
from heedful.report.formats import format_p
from heedful.runs.answers import Answer
from heedful.runs.studies import StudyRecord
from heedful.statistics.calibration import auroc, auroc_interval
from heedful.statistics.comparison import compare
from heedful.statistics.proportions import Interval
from heedful.studies.base import failures
from heedful.studies.knowledge.figures import (
    Asked,
    arms_figure,
    arms_table,
    constant,
    constant_right,
    examples_table,
    groups_table,
    share,
    telling_figures,
    telling_table,
    towns_figure,
)


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
            memories = [c for c, hit in zip(main.confidence("dev"), main.right("dev"), strict=True) if hit]
            if memories:
                ranked = surer(memories, main.confidence("strangers"))
                facts["memory_above_invention"] = {"auroc": ranked[0], "ci95": ranked[1]}
                sentences.append(memory_above_invention(*ranked))
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
        f"{c.high:+.3f}, p {format_p(c.p)}): {verdict}.",
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


def surer(memories: Sequence[float], inventions: Sequence[float]) -> tuple[float, Interval]:
    """The chance that a memory is surer than an invention, with its interval."""
    sure, memory = [*memories, *inventions], [True] * len(memories) + [False] * len(inventions)
    return auroc(sure, memory), auroc_interval(sure, memory)


def memory_above_invention(value: float, interval: Interval) -> str:
    """Whether a user who sees the confidence can tell."""
    return (
        f"A memory (a right answer on dev) is surer than an invention about a stranger in {percent(value)} "
        f"of pairs (95 % interval {percent(interval.low)} to {percent(interval.high)}); a coin has 50 %."
    )


def by_names(name: str, a: Agreement) -> str:
    """Whether an invention follows the surname."""
    where = "Where names hint at the country, two" if name.endswith("signal") else "Two"
    verdict = "the surname plays a part" if a.p < 0.05 else "nothing shows that the surname matters"
    return (
        f"{where} strangers with one surname get the same place in {percent(a.same)} of pairs, any two in "
        f"{percent(a.anybody)} (p {format_p(a.p)}): {verdict}."
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
