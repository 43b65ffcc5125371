"""Many runs, one answer. Importing a study is quick: torch is imported when a run is made."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from heedful.errors import UserError, unknown
from heedful.runs.studies import StudyFolder

if TYPE_CHECKING:
    from heedful.studies.base import Study

KINDS = {
    "attention": "heedful.studies.attention:Attention",
    "compare": "heedful.studies.compare:Compare",
    "knowledge": "heedful.studies.knowledge.study:Knowledge",
    "labels": "heedful.studies.labels:Labels",
    "optimizers": "heedful.studies.optimizers:Optimizers",
    "overfit": "heedful.studies.overfit:Overfit",
    "search": "heedful.studies.search.study:Search",
}
"""The class of each kind of study, by its name in study.json."""


def make(folder: StudyFolder) -> Study:
    """The study in a folder."""
    named = folder.read().kind
    if named not in KINDS:
        raise UserError(f"{folder.path}: {unknown('kind of study', named, KINDS)}")
    return kind(named)(folder)


def kind(name: str) -> type[Study]:
    """The class of a kind of study."""
    module, _, attribute = KINDS[name].partition(":")
    found: type[Study] = getattr(import_module(module), attribute)
    return found
