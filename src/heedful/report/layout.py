"""The page of a report: of one run, one study, or several of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from heedful.report.facts import RunFacts, StudyFacts, make_names_unique
from heedful.report.page import Headline, Kind, Page
from heedful.report.run_comparison import (
    add_comparison,
    describe_group,
    group_by_task,
    sort_best_first,
)
from heedful.report.run_sections import Heading, add_run
from heedful.report.sentences.runs import describe_run
from heedful.report.study_sections import add_study

VERDICT_LETTERS = 160
SENTENCE_END = re.compile(r"(?<=[a-z0-9)]\.) (?=[A-Z])")
FULL_RUNS_MOST = 12
"""A page with more runs than this has the comparison, and only the best run in full."""


def build_page(facts: Sequence[RunFacts | StudyFacts]) -> Page:
    """Build the page of runs and studies; a folder that is given twice is reported once."""
    unique = {item.path.resolve(): item for item in facts if isinstance(item, RunFacts)}
    runs = make_names_unique(list(unique.values()))
    studies = [item for item in facts if isinstance(item, StudyFacts)]
    if len(runs) + len(studies) == 1:
        return build_run_page(runs[0]) if runs else build_study_page(studies[0])
    if not studies:
        return build_runs_page(runs)
    counts = [f"{len(studies)} {'study' if len(studies) == 1 else 'studies'}"]
    counts += [f"{len(runs)} {'run' if len(runs) == 1 else 'runs'}"] if runs else []
    page = Page(" and ".join(counts))
    for study in studies:
        question = study.title if study.title.endswith("?") else f"{study.title}:"
        page.summary += [f"{question} {line}" for line in study.answer.summary[:1]]
        page.section(study.title)
        add_study(page, study, page.part, study.name)
    if runs:
        page.summary += [line for group in group_by_task(runs) for line in describe_group(group)[1]]
        page.section("Runs")
        add_runs(page, runs, page.part)
    return page


def build_run_page(run: RunFacts) -> Page:
    page = Page(run.title, summary=describe_run(run))
    add_run(page, run, page.section, is_page=True)
    return page


def build_runs_page(runs: Sequence[RunFacts]) -> Page:
    groups = group_by_task(runs)
    tasks = {group[0].task_title for group in groups}
    on_task = f" on {next(iter(tasks))}" if len(tasks) == 1 else ""
    described = [describe_group(group) for group in groups]
    page = Page(f"{len(runs)} runs{on_task}", summary=[line for _, lines in described for line in lines])
    if len(groups) == 1:
        page.open_with(described[0][0])
    add_runs(page, runs, page.section, is_page=True)
    return page


def build_study_page(study: StudyFacts) -> Page:
    summary = study.answer.summary
    kinds: list[Kind] = [note.kind for note in study.answer.notes if note.text in summary]
    page = Page(study.title, summary=summary)
    if summary:
        verdict, further = split_verdict(page.summary[0])
        page.summary = [verdict, *([further] if further else []), *page.summary[1:]]
        page.open_with(Headline(verdict, kinds[-1] if kinds else "plain"))
    add_study(page, study, page.section, is_page=True)
    return page


def split_verdict(text: str) -> tuple[str, str]:
    """Split a long answer into its first sentence, with the last one if that limits it, and the others."""
    sentences = SENTENCE_END.split(text)
    if len(text) <= VERDICT_LETTERS or len(sentences) < 2:
        return text, ""
    end = len(sentences) - 1 if sentences[-1].startswith("But ") else len(sentences)
    return " ".join([sentences[0], *sentences[max(1, end) :]]), " ".join(sentences[1:end])


def add_runs(page: Page, runs: Sequence[RunFacts], add_heading: Heading, *, is_page: bool = False) -> None:
    """Add several runs: those on the same task compared, then each in full."""
    groups = group_by_task(runs)
    for group in (group for group in groups if len(group) > 1):
        task = group[0].task_title if len(groups) > 1 else ""
        add_heading(f"Comparison: {task}" if task else "Comparison")
        add_comparison(page, group, task, is_page=is_page and len(groups) == 1)
    add_heading("Each run")
    in_full = runs if len(runs) <= FULL_RUNS_MOST else sort_best_first(runs)[:1]
    if len(in_full) < len(runs):
        page.text(
            f"Only the best run on dev is shown in full. To see another of the {len(runs)} runs, "
            "use heedful report with its folder."
        )
    for run in in_full:
        with page.details(f"{run.name}: {run.title}"):
            page.text(*describe_run(run))
            add_run(page, run, page.part, run.name)
