"""The page of a class: points, which check failed how often, known mistakes, and similar submissions."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.course.assignment import Assignment
from heedful.course.grade_one import Result
from heedful.course.pages import make_environment
from heedful.course.similarity import Pair
from heedful.runs.files import write_text

BINS = 10
CONTEXT = 1
"""Lines around shared ones that are shown."""


def write_class_page(
    path: Path,
    assignment: Assignment,
    results: Sequence[Result],
    pairs: Sequence[Pair],
    sources: Mapping[str, str],
    pages: Mapping[str, str],
) -> Path:
    """Write the page of a class; it links to the page of each student."""
    graded = [result.points for result in results if not result.problem]
    page = make_environment().get_template("class.html").render(
        assignment=assignment,
        results=sorted(results, key=lambda result: result.student.lower()),
        pages=pages,
        mean=statistics.fmean(graded) if graded else 0.0,
        median=statistics.median(graded) if graded else 0.0,
        bins=count_bins([result.points for result in results], assignment.most),
        failures=count_failures(results),
        mistakes=list_mistakes(results),
        troubled=[result for result in results if result.problem or result.stopped],
        pairs=[describe_pair(pair, sources) for pair in pairs],
    )  # fmt: skip
    return write_text(path, page)


def count_bins(points: Sequence[float], most: float) -> list[dict[str, Any]]:
    """Return how many submissions have points in each of equally wide ranges, and all points."""
    counts = Counter(min(BINS, int(BINS * value / most + 1e-9)) if most else BINS for value in points)
    highest = max(counts.values(), default=1)
    labels = [f"{most * i / BINS:.3g}" for i in range(BINS)] + ["all"]
    return [
        {"label": label, "count": counts[i], "share": counts[i] / highest} for i, label in enumerate(labels)
    ]


def count_failures(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return for every claim how many submissions break it, the most frequent first."""
    failed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    sentences: dict[tuple[str, str], str] = {}
    for result in results:
        for score in result.criteria:
            for verdict in score.verdicts:
                key = (score.name, verdict.claim)
                sentences[key] = verdict.sentence
                if verdict.status != "passed":
                    failed[key].append(result.student)
    rows = [
        {
            "criterion": name,
            "claim": claim,
            "sentence": sentence,
            "count": len(failed[name, claim]),
            "share": len(failed[name, claim]) / max(1, len(results)),
        }
        for (name, claim), sentence in sentences.items()
    ]
    return sorted(rows, key=lambda row: -int(row["count"]))


def list_mistakes(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """Return the known mistakes with the students who made them, the most frequent first."""
    students: defaultdict[str, list[str]] = defaultdict(list)
    for result in results:
        for name in result.mistakes:
            students[name].append(result.student)
    return sorted(students.items(), key=lambda item: (-len(item[1]), item[0]))


def describe_pair(pair: Pair, sources: Mapping[str, str]) -> dict[str, Any]:
    """Return a pair with the shared lines of both sources."""
    return {
        "pair": pair,
        "sides": [
            (name, cut_source(sources.get(name, ""), lines))
            for name, lines in ((pair.first, pair.first_lines), (pair.second, pair.second_lines))
        ],
    }


def cut_source(source: str, lines: Sequence[int]) -> list[dict[str, Any]]:
    """Return the shared lines and those around them; a gap is a line without a number."""
    shared, rows, before = set(lines), [], 0
    for number, text in enumerate(source.splitlines(), 1):
        if any(n in shared for n in range(number - CONTEXT, number + CONTEXT + 1)):
            if before and number > before + 1:
                rows.append({"number": "", "text": "...", "shared": False})
            rows.append({"number": number, "text": text, "shared": number in shared})
            before = number
    return rows
