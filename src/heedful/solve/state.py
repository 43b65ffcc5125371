"""plan.json: what a solve folder remembers between two commands."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from heedful.runs.files import write_json
from heedful.runs.json_files import read_record
from heedful.solve.candidates import DataFacts, Speed
from heedful.solve.choice import Cost
from heedful.solve.insight import LabelNext, LongTextScores, MeasuredCurve
from heedful.solve.plan import Budget, limit_rows

PLAN = "plan.json"
SLOWNESS = (0.35, 6.0)
"""The least and the largest factor between the time that was expected and the time that is expected next."""


@dataclass
class SolveState:
    """The time that was spent, what was measured, and what was left out."""

    minutes: float = 0.0
    """The budget of the last command that came to its end."""
    spent: float = 0.0
    """Seconds that all commands so far have taken."""
    speed: Speed | None = None
    slowness: float = 1.0
    """By how much runs take longer than expected."""
    costs: dict[str, Cost] = field(default_factory=dict)
    """What each finished candidate takes."""
    partial: dict[str, Cost] = field(default_factory=dict)
    """The same for those that have finished no fold, where there should be some."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Why a candidate was not tried, or not finished."""
    behind: dict[str, str] = field(default_factory=dict)
    """Why a candidate was stopped for good: it was behind the one whose rate it varies."""
    dev_rows: int | None = None
    """Number of rows of dev that all candidates score."""
    folds: int | None = None
    """Number of folds of train that are held out in turn as well."""
    ensembles: dict[str, dict[str, float]] = field(default_factory=dict)
    """The averages among the finished candidates: their members and the weights of these."""
    no_encoder: str = ""
    """Why there is no encoder, if there is none."""
    tested: list[str] = field(default_factory=list)
    """Candidates that were scored on test, in this order."""
    refitted: dict[str, str] = field(default_factory=dict)
    """Chosen candidates, each with why it was not fitted again on train and dev; "" if it was."""
    curve: MeasuredCurve | None = None
    """What more labels would bring, if it was measured."""
    label_next: LabelNext | None = None
    """Which rows to label next, if there are any without a label."""
    long_texts: LongTextScores | None = None
    """How many texts are longer than what the encoder reads, and whether reading more would help."""

    @classmethod
    def read(cls, folder: Path) -> SolveState:
        return read_record(cls, folder / PLAN) if (folder / PLAN).is_file() else cls()

    def write(self, folder: Path) -> None:
        write_json(folder / PLAN, self)

    def make_budget(self, facts: DataFacts, minutes: float) -> Budget:
        """Return what is known now about the data and the machine."""
        facts = limit_rows(facts, self.speed or Speed(), minutes)
        if self.dev_rows is not None:
            facts = replace(facts, rows={**facts.rows, "dev": self.dev_rows})
        return Budget(facts, self.speed, self.no_encoder, self.slowness, self.folds or 0)

    def find_cost(self, name: str) -> Cost:
        """Return what a candidate takes, whether its folds are finished or not."""
        return self.costs.get(name) or self.partial[name]

    def learn_speed(self, seconds: float, expected: float) -> None:
        """Compare the time that a run took with the time that was expected.

        Good news is believed by half (on a logarithmic scale): it may be this candidate's alone.
        """
        ratio = seconds / max(expected, 1.0)
        factor = self.slowness * (ratio if ratio > 1 else math.sqrt(ratio))
        self.slowness = min(max(factor, SLOWNESS[0]), SLOWNESS[1])

    def select_usable(self, baselines: Collection[str], unusable: Mapping[str, str]) -> SolveState:
        """Return the state to answer from: finished candidates, or those without their folds if none is.

        Baselines alone are no answer. `unusable` says why a candidate cannot be chosen.
        """
        answers = [costs for costs in (self.costs, self.partial) if set(costs) - set(baselines)]
        costs = next(iter(answers), {})
        usable = {name: cost for name, cost in costs.items() if name not in unusable}
        left_out = {name: why for name, why in self.left_out.items() if name not in usable}
        return replace(self, costs=usable, left_out={**left_out, **unusable})
