"""The answer of the study of knowledge, from the models' answers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from heedful.evaluation import knowledge
from heedful.evaluation.checks.findings import percent
from heedful.evaluation.knowledge import Agreement, ConfidenceQuality, SelectiveAnswers
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
        quality = knowledge.judge_confidence(confidence, right)
        sure = knowledge.answer_when_sure(confidence, right, float(record.options["risk"]), record.seed)
        facts |= {"telling": telling_facts(quality), "when_sure": asdict(sure)}
        summary += [describe_telling(quality), describe_threshold(sure)]
        tables += [figures.make_telling_table(quality, sure), figures.make_examples_table(main)]
        drawn += figures.draw_telling(main, quality)
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
                shares = {"share": value, **interval._asdict()}
                shown = {name: percent(share) for name, share in shares.items()}
                summary.append(sentences.KNOWLEDGE_MEMORY.format(**shown))
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


def describe_share(hits: Sequence[bool]) -> str:
    value, (low, high) = share_with_interval(hits)
    return f"{percent(value)} ({percent(low)} to {percent(high)})"


def describe_arms(done: Mapping[str, Arm], counts: Mapping[str, Counter[str]]) -> list[str]:
    if "pretrained" not in done:
        return []
    right = done["pretrained"].right("dev")
    other = done["nothing"].right("dev") if "nothing" in done else None
    without = "" if other is None else sentences.KNOWLEDGE_WITHOUT.format(right=describe_share(other))
    fixed = describe_share(constant_right(done["pretrained"], counts["pretrained"]))
    about = {"right": describe_share(right), "n": len(right), "fixed": fixed, "without": without}
    constant = most_frequent(counts["pretrained"])
    summary = [sentences.KNOWLEDGE_RIGHT.format(**about, constant=constant)]
    if other is not None:
        c = compare(right, other, names=("pretrained", "without"))
        verdict = {"p": format_p(c.p), "verdict": sentences.KNOWLEDGE_VERDICTS[c.differs]}
        difference = {"difference": c.difference, "low": c.low, "high": c.high}
        summary.append(sentences.KNOWLEDGE_DIFFERENCE.format(**difference, **verdict))
    return summary


def describe_telling(t: ConfidenceQuality) -> str:
    if t.auroc is None or t.auroc_ci95 is None:
        return sentences.KNOWLEDGE_ALL_ALIKE.format(n=t.n, which="right" if t.right else "wrong")
    ranking = {"share": percent(t.auroc), "auroc": t.auroc, **t.auroc_ci95._asdict()}
    confidence, right = percent(t.confidence), percent(t.right)
    return sentences.KNOWLEDGE_CONFIDENCE.format(
        **ranking, confidence=confidence, right=right, error=t.calibration_error
    )


def describe_threshold(s: SelectiveAnswers) -> str:
    if s.threshold is None or s.wrong_share is None:
        return sentences.KNOWLEDGE_NO_THRESHOLD.format(risk=percent(s.risk))
    assert s.wrong_ci95 is not None
    shares = {"risk": s.risk, "coverage": s.coverage, "wrong": s.wrong_share, **s.wrong_ci95._asdict()}
    shown = {name: percent(share) for name, share in shares.items()}
    return sentences.KNOWLEDGE_THRESHOLD.format(threshold=s.threshold, **shown)


def describe_inventions(arm: Arm, train: Counter[str]) -> str:
    r = arm.replies("strangers", train)
    answers = ", ".join(f"{town} {percent(part)}" for town, part in r.common[:3])
    shares = {name: percent(getattr(r, name)) for name in ("sure", "known", "constant")}
    return sentences.KNOWLEDGE_INVENTED.format(n=r.n, **shares, answers=answers)


def rank_memories(memories: Sequence[float], inventions: Sequence[float]) -> tuple[float, Interval]:
    """Return the chance that a memory is surer than an invention, with its interval."""
    sure, memory = [*memories, *inventions], [True] * len(memories) + [False] * len(inventions)
    return auroc(sure, memory), auroc_interval(sure, memory)


def describe_surnames(name: str, agreement: Agreement) -> str:
    verdict = sentences.KNOWLEDGE_SURNAME_VERDICTS[agreement.p < ALPHA]
    about = {"who": sentences.KNOWLEDGE_WHO[name.endswith("signal")], "p": format_p(agreement.p)}
    same, anybody = percent(agreement.same), percent(agreement.anybody)
    return sentences.KNOWLEDGE_SURNAMES.format(**about, same=same, anybody=anybody, verdict=verdict)


def arm_facts(arm: Arm, train: Counter[str]) -> dict[str, Any]:
    value, interval = share_with_interval(arm.right("dev"))
    groups = {group: asdict(arm.replies(group, train)) for group in arm.groups}
    baseline = float(np.mean(constant_right(arm, train)))
    return {"exact_match": value, "ci95": interval, "constant_answer": baseline, "groups": groups}


def telling_facts(t: ConfidenceQuality) -> dict[str, Any]:
    names = ("n", "right", "confidence", "calibration_error", "brier", "auroc", "auroc_ci95")
    areas = {"risk_coverage_area": t.curve.area, "best_area": t.curve.best_area}
    return {name: getattr(t, name) for name in names} | areas
