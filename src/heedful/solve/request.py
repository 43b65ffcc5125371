"""What a command asks for: its candidates, its data, its folder, and the options of its runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful import __version__
from heedful.data import Task
from heedful.data.run_options import absolute_value
from heedful.data.split_columns import count_units
from heedful.data.times import is_timed
from heedful.errors import UserError, unknown
from heedful.evaluation.metrics import check_metric
from heedful.options.command_line import option_flags
from heedful.options.model_names import ENSEMBLE
from heedful.options.solve import SolveOptions
from heedful.options.training import AdaptOptions
from heedful.problems import find_problem_of_task
from heedful.runs.directory import CHOSEN, STUDY, name_refitted
from heedful.runs.leases import Lease, holder_of, release_dead
from heedful.runs.processes import process_name
from heedful.runs.studies import StudyFolder, StudyRecord, begin, choose_study_folder
from heedful.solve.candidates import CANDIDATES, Candidate, DataFacts
from heedful.solve.insight.label_next import FILE as LABEL_NEXT
from heedful.solve.plan import TRAIN_EVAL_ROWS, format_minutes
from heedful.solve.state import PLAN, SolveState
from heedful.studies.shared.commands import shared_options

LEASE, LEASE_SECONDS = "solve", 60.0
REPORT = "report.html"
RUN_OPTIONS = (
    "task", "metric", "model", "seed", "data_dir", "split", "split_seed", "text_column", "pair_column",
    "label_column", "kind", "group", "time", "strict", "long_texts",
)  # fmt: skip
"""Options that all candidates have."""


def find_candidates(names: Sequence[str]) -> list[Candidate]:
    by_name = {candidate.name: candidate for candidate in CANDIDATES}
    if ENSEMBLE in names and len(set(names)) < 3:
        raise UserError(f"--candidates {ENSEMBLE}: is an average of others; name two of them too")
    for name in names:
        if name == ENSEMBLE:
            continue
        if name not in by_name:
            raise unknown("candidate", name, [*by_name, ENSEMBLE])
        if (needed := by_name[name].after) and needed not in names:
            raise UserError(f"--candidates {name}: is tried only after {needed}; name {needed} too")
    return [candidate for candidate in CANDIDATES if not names or candidate.name in names]


def wants_ensemble(names: Sequence[str]) -> bool:
    return not names or ENSEMBLE in names


def read_facts(task: Task) -> DataFacts:
    """Return what the plan needs to know; refuse data that cannot be solved."""
    rows = {name: len(split) for name, split in task.splits.items() if split.targets is not None}
    if task.kind != "number" and len(task.label_names) < 2:
        raise UserError(f"{task.name}: solve needs rows with at least two different labels")
    if not rows.get("dev"):
        raise UserError(f"{task.name}: there are no dev rows to select on; add a dev file, or give one file")
    train = task.splits["train"]
    units = None if train.rows.by is None else count_units(train)
    return DataFacts(
        rows,
        max(1, len(task.label_names)),
        task.name,
        find_problem_of_task(task.kind).name,
        task.split_notes,
        units,
        is_timed(train.rows),
    )


def share_options(options: SolveOptions) -> AdaptOptions:
    return AdaptOptions(**{name: getattr(options, name) for name in RUN_OPTIONS})


def name_kind(shared: AdaptOptions, facts: DataFacts, options: SolveOptions) -> AdaptOptions:
    """Return the options of runs with the kind that the data shows; refuse what it has no use for."""
    if facts.kind == "label":
        return shared
    if options.unlabeled is not None and not facts.one_label:
        raise UserError("--unlabeled: rows to label next are chosen for one label per text; leave it out")
    if options.metric is not None:
        check_metric(options.metric, facts.kind)
    return replace(shared, kind=facts.kind)


def make_run_options(
    folder: StudyFolder, options: SolveOptions, state: SolveState, facts: DataFacts, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the options of a candidate's run, as a table."""
    shared = folder.read().options["run"]
    speed = {} if state.speed is None else {"precision": state.speed.precision}
    if "model" in settings:  # it is not the encoder
        speed = {}
    fixed: dict[str, Any] = {"score_test": False, "train_eval_rows": TRAIN_EVAL_ROWS}
    fixed |= {"threads": options.threads}
    if not {"fold", "with_dev"} & set(settings) and state.dev_rows not in (None, facts.dev):
        fixed["dev_rows"] = state.dev_rows
    table = {**shared, **speed, **fixed, **settings}
    if "model" in settings:
        table.pop("long_texts", None)
    table["task"], table["model"] = options.task, settings.get("model", options.model)
    return {key: value for key, value in table.items() if value is not None}


def find_final_run(folder: StudyFolder, state: SolveState, name: str) -> Path:
    """Return the run with the model to use: of a candidate that was fitted again, the second one."""
    run = folder.run(name)
    return name_refitted(run) if state.refitted.get(name) == "" else run


def make_record(options: SolveOptions, run_options: AdaptOptions, facts: DataFacts) -> StudyRecord:
    return StudyRecord(
        "solve",
        f"which model is best for {facts.name} in {format_minutes(options.minutes)}?",
        options.seed,
        {"run": shared_options(run_options), "prefer": options.prefer, "candidates": options.candidates},
        (),
        write_command(options),
        "all",  # the conclusion removes the weights that nobody needs
        __version__,
    )


def choose_folder(options: SolveOptions, run_options: AdaptOptions, facts: DataFacts) -> StudyFolder:
    return choose_study_folder(make_record(options, run_options, facts), options.out, [facts.name], "runs")


def open_folder(options: SolveOptions, run_options: AdaptOptions, facts: DataFacts) -> StudyFolder:
    """Begin or continue the folder of a solution; with `overwrite`, remove what an earlier one has left."""
    folder = choose_folder(options, run_options, facts)
    if options.overwrite and (folder.path / STUDY).is_file():  # otherwise the files are a person's own
        refuse_held(folder)
        for name in (PLAN, CHOSEN, REPORT, LABEL_NEXT):
            (folder.path / name).unlink(missing_ok=True)
    record = make_record(options, run_options, facts)
    return begin(record, folder.path, [facts.name], overwrite=options.overwrite)


def refuse_held(folder: StudyFolder) -> None:
    """Refuse a folder that a command, or a worker of a cluster, is working on."""
    release_dead(folder.lease(LEASE))
    claims = {configuration.claim for configuration in folder.read().configurations}
    if any(holder_of(folder.lease(name)) is not None for name in (LEASE, *sorted(claims))):
        raise UserError(f"{folder.path}: another process is working on it")


def claim_lease(folder: StudyFolder) -> Lease:
    """Take the lease of a solution, which names the process that works on it."""
    path = folder.lease(LEASE)
    release_dead(path)
    lease = Lease.claim(path, process_name(os.getpid()), LEASE_SECONDS)
    if lease is None:
        raise UserError(f"{folder.path}: another process is working on it")
    return lease


def write_command(options: SolveOptions) -> tuple[str, ...]:
    """Return the words after `heedful` that repeat the command from any folder."""
    flags = option_flags(options, ("task", "overwrite", "launch"), absolute_value)
    return ("solve", str(absolute_value("task", options.task)), *flags)
