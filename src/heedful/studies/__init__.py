"""Many runs, one answer. Naming a study imports nothing; torch is imported when a run is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.errors import UserError, unknown
from heedful.plugins import Registry
from heedful.runs.studies import StudyFolder

if TYPE_CHECKING:
    from heedful.studies.base import Study

TABLE = {
    "overfit": (
        "heedful.studies.overfit:Overfit",
        "Can this model learn at all? Trains on a few examples until it has memorized them.",
    ),
    "search": (
        "heedful.studies.search.study:Search",
        "Which settings are best? Tries a grid or random draws; the best on dev is scored on test, once.",
    ),
    "compare": (
        "heedful.studies.compare:Compare",
        "Which model and which method are best on a task, and which cannot be told apart?",
    ),
    "labels": (
        "heedful.studies.labels:Labels",
        "How many labels are enough, and does text without labels help?",
    ),
    "optimizers": (
        "heedful.studies.optimizers:Optimizers",
        "Which optimizer is best? Each gets its own learning-rate search on dev.",
    ),
    "attention": ("heedful.studies.attention:AttentionStudy", "What does the attention mechanism change?"),
    "knowledge": (
        "heedful.studies.knowledge.study:Knowledge",
        "What does a model know, and does its confidence separate memories from inventions?",
    ),
}
"""The import path of each study and a line of help, in the order of `heedful study --help`."""

STUDIES: Registry[type[Study]] = Registry(
    "study", {name: path for name, (path, _) in TABLE.items()}, group="heedful.studies"
)
"""The studies by name: those of the table, then those of installed packages."""

OTHERS: Registry[type[Study]] = Registry(
    "study", {"solve": "heedful.solve.cluster:SolveOnCluster"}, group="heedful.other_studies"
)
"""Kinds of folders that workers know, with a command of their own."""


def describe_study(name: str) -> str:
    """Return one line about a study without importing it."""
    return TABLE[name][1] if name in TABLE else f"A study of the package {STUDIES.package(name)}."


def find_kind(name: str) -> type[Study]:
    return OTHERS[name] if name in OTHERS else STUDIES[name]


def open_study(folder: StudyFolder) -> Study:
    name = folder.read().kind
    if name not in STUDIES and name not in OTHERS:
        raise UserError(f"{folder.path}: {unknown('study', name, STUDIES)}")
    return find_kind(name)(folder)
