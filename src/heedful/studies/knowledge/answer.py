"""The answer of the study of knowledge, from the models' answers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from heedful.evaluation.checks.findings import percent
from heedful.evaluation.knowledge import (
    Agreement,
    ConfidenceQuality,
    SelectiveAnswers,
    answer_when_sure,
    judge_confidence,
)
from heedful.report.formats import format_p
from heedful.runs.answers import Answer
from heedful.runs.studies import StudyRecord
from heedful.statistics.calibration import auroc, auroc_interval
from heedful.statistics.comparison import ALPHA, compare
from heedful.statistics.proportions import Interval
from heedful.studies.base import failure_notes
from heedful.studies.knowledge import figures
from heedful.studies.knowledge.figures import Arm, constant_right, most_frequent, share_with_interval
from heedful.studies.shared import sentences


def write_answer(record: StudyRecord, arms: Sequence[Arm], train: Mapping[str, Counter[str]]) -> Answer:
    """Return the answer, also while runs are missing."""
    done = {arm.name: arm for arm in arms if "dev" in arm.groups}
    counts = {arm.name: train[str(arm.outcome.configuration.settings["name_signal"])] for arm in arms}
    main = done.get("pretrained")
    outcomes = [arm.outcome for arm in arms]
    facts: dict[str, Any] = {"arms": {name: arm_facts(arm, counts[name]) for name, arm in done.items()}}
    summary = describe_arms(done, counts)
    tables = [figures.make_arms_table(done, counts)]
    drawn = [figures.draw_arms(done, counts)] if done else []
    if main is not None:
        confidence, right = main.confidence("dev"), main.right("dev")
        told = judge_confidence(confidence, right)
        sure = answer_when_sure(confidence, right, float(record.options["risk"]), record.seed)
        facts |= {"telling": telling_facts(told), "when_sure": asdict(sure)}
        summary += [describe_telling(told), describe_threshold(sure)]
        tables += [figures.make_telling_table(told, sure), figures.make_examples_table(main)]
        drawn += figures.draw_telling(main, told)
    everybody = {name: arm for name, arm in done.items() if "strangers" in arm.groups}
    if everybody:
        tables.append(figures.make_groups_table(everybody, counts))
        surnames = {name: arm.by_surname() for name, arm in everybody.items()}
        facts["same_surname"] = {name: asdict(agreement) for name, agreement in surnames.items()}
        if main is not None and main.name in everybody:
            summary.append(describe_inventions(main, counts[main.name]))
            memories = [c for c, hit in zip(main.confidence("dev"), main.right("dev"), strict=True) if hit]
            if memories:
                value, interval = rank_memories(memories, main.confidence("strangers"))
                facts["memory_above_invention"] = {"auroc": value, "ci95": interval}
                summary.append(
                    sentences.KNOWLEDGE_MEMORY.format(share=percent(value), **percent_ends(interval))
                )
            drawn.append(figures.draw_towns(main, counts[main.name]))
        summary += [describe_surnames(name, one) for name, one in surnames.items() if name != "nothing"]
    return Answer(
        study="knowledge",
        title=record.question,
        summary=tuple(summary) or (sentences.KNOWLEDGE_WAITING,),
        finished=False,
        notes=tuple(failure_notes(outcomes)),
        figures=tuple(drawn),
        tables=tuple(tables),
        runs=tuple(f"runs/{o.name}" for o in sorted(outcomes, key=lambda o: o.name != "pretrained")),
        facts=facts,
    )


def percent_ends(interval: Interval) -> dict[str, str]:
    return {"low": percent(interval.low), "high": percent(interval.high)}


def describe_share(hits: Sequence[bool]) -> str:
    value, interval = share_with_interval(hits)
    return f"{percent(value)} ({percent(interval.low)} to {percent(interval.high)})"


def describe_arms(done: Mapping[str, Arm], counts: Mapping[str, Counter[str]]) -> list[str]:
    if "pretrained" not in done:
        return []
    right = done["pretrained"].right("dev")
    other = done["nothing"].right("dev") if "nothing" in done else None
    without = "" if other is None else sentences.KNOWLEDGE_WITHOUT.format(right=describe_share(other))
    summary = [
        sentences.KNOWLEDGE_RIGHT.format(
            right=describe_share(right),
            n=len(right),
            constant=most_frequent(counts["pretrained"]),
            fixed=describe_share(constant_right(done["pretrained"], counts["pretrained"])),
            without=without,
        )
    ]
    if other is not None:
        c = compare(right, other, names=("pretrained", "without"))
        summary.append(
            sentences.KNOWLEDGE_DIFFERENCE.format(
                difference=c.difference,
                low=c.low,
                high=c.high,
                p=format_p(c.p),
                verdict=sentences.KNOWLEDGE_VERDICTS[c.differs],
            )
        )
    return summary


def describe_telling(t: ConfidenceQuality) -> str:
    if t.auroc is None or t.auroc_ci95 is None:
        return sentences.KNOWLEDGE_ALL_ALIKE.format(n=t.n, which="right" if t.right else "wrong")
    return sentences.KNOWLEDGE_CONFIDENCE.format(
        share=percent(t.auroc),
        auroc=t.auroc,
        low=t.auroc_ci95.low,
        high=t.auroc_ci95.high,
        confidence=percent(t.confidence),
        right=percent(t.right),
        error=t.calibration_error,
    )


def describe_threshold(s: SelectiveAnswers) -> str:
    if s.threshold is None or s.wrong_share is None:
        return sentences.KNOWLEDGE_NO_THRESHOLD.format(risk=percent(s.risk))
    assert s.wrong_ci95 is not None
    return sentences.KNOWLEDGE_THRESHOLD.format(
        threshold=s.threshold,
        risk=percent(s.risk),
        coverage=percent(s.coverage),
        wrong=percent(s.wrong_share),
        **percent_ends(s.wrong_ci95),
    )


def describe_inventions(arm: Arm, train: Counter[str]) -> str:
    r = arm.replies("strangers", train)
    return sentences.KNOWLEDGE_INVENTED.format(
        n=r.n,
        sure=percent(r.sure),
        known=percent(r.known),
        constant=percent(r.constant),
        answers=", ".join(f"{town} {percent(part)}" for town, part in r.common[:3]),
    )


def rank_memories(memories: Sequence[float], inventions: Sequence[float]) -> tuple[float, Interval]:
    """Return the chance that a memory is surer than an invention, with its interval."""
    sure, memory = [*memories, *inventions], [True] * len(memories) + [False] * len(inventions)
    return auroc(sure, memory), auroc_interval(sure, memory)


def describe_surnames(name: str, agreement: Agreement) -> str:
    return sentences.KNOWLEDGE_SURNAMES.format(
        who=sentences.KNOWLEDGE_WHO[name.endswith("signal")],
        same=percent(agreement.same),
        anybody=percent(agreement.anybody),
        p=format_p(agreement.p),
        verdict=sentences.KNOWLEDGE_SURNAME_VERDICTS[agreement.p < ALPHA],
    )


def arm_facts(arm: Arm, train: Counter[str]) -> dict[str, Any]:
    value, interval = share_with_interval(arm.right("dev"))
    groups = {group: asdict(arm.replies(group, train)) for group in arm.groups}
    baseline = float(np.mean(constant_right(arm, train)))
    return {"exact_match": value, "ci95": interval, "constant_answer": baseline, "groups": groups}


def telling_facts(t: ConfidenceQuality) -> dict[str, Any]:
    names = ("n", "right", "confidence", "calibration_error", "brier", "auroc", "auroc_ci95")
    areas = {"risk_coverage_area": t.curve.area, "best_area": t.curve.best_area}
    return {name: getattr(t, name) for name in names} | areas
