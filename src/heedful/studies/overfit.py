"""Can this model learn at all? A few examples, learned by heart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from heedful.errors import UserError, shorten
from heedful.methods.registry import METHODS
from heedful.options.studies import OverfitOptions, OverfitRun
from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics
from heedful.runs.studies import Configuration, Outcome
from heedful.studies.base import Study, StudyPlan, failure_notes
from heedful.studies.shared import sentences
from heedful.studies.shared.commands import shared_options
from heedful.training.run_task import load_run_task

ENOUGH = 3
"""Examples of each label that a PASS needs: no rule that leaves a label out may be right on all."""
OVERFLOWED = "no longer a number"
"""In the reason of a run that failed because its loss overflowed."""
ROSE, FELL = 1.2, 0.98
"""A loss rose again above `ROSE` times its lowest value; it still falls below `FELL` times its first."""


class Overfit(Study):
    """Can this model learn at all? Trains on a few examples until it has memorized them.

    PASS means that after the last epoch every example is predicted correctly
    in evaluation mode, and that each label has at least three examples. FAIL
    names the likely cause. Accuracy on the training examples says nothing about
    new texts; dev and test are not used.

    Examples:
      heedful study overfit minilm boolq --examples 10 --epochs 20
      heedful study overfit minilm reviews.csv --method lora --lr 1e-3
    """

    name = "overfit"
    options = OverfitOptions
    run_options = OverfitRun

    @classmethod
    def plan(cls, options: OverfitOptions, run: OverfitRun) -> StudyPlan:
        refuse_other_kinds(run)
        rows = {"train_rows": options.examples, "balanced": True, "train_eval_rows": options.examples}
        return StudyPlan(
            question=f"Can {run.model} learn {options.examples} examples of {run.task} by heart?",
            seed=run.seed,
            options={"examples": options.examples, "run": {**shared_options(run), **rows}},
            configurations=[Configuration("overfit", {"epochs": run.epochs})],
            folder_words=(run.task, run.model),
        )

    def answers_failure(self, outcomes: Sequence[Outcome]) -> bool:
        """A loss that overflowed is a FAIL with its cause."""
        return all(o.ended is not None and OVERFLOWED in o.ended.reason for o in outcomes)

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        (outcome,) = outcomes
        curve = [row for row in outcome.find_metrics() if row.split == "train_eval" and row.value is not None]
        n = int(self.record.options["examples"])
        learned = outcome.ended is None and bool(curve) and curve[-1].value == 1.0
        right = round((curve[-1].value or 0.0) * n) if curve else 0
        epochs = outcome.configuration.settings["epochs"]
        first = next((row.epoch for row in curve if row.value == 1.0), None)
        few = describe_few_labels(Counter(label for _, _, label in self.load_examples(outcome)), n)
        passed = learned and not few
        if learned:
            verdict = sentences.OVERFIT_RIGHT.format(verdict="NO VERDICT" if few else "PASS", n=n)
            forgot = any(row.value != 1.0 for row in curve if row.epoch > (first or 0))
            when = sentences.OVERFIT_AGAIN if forgot else sentences.OVERFIT_SINCE
            verdict += when.format(epochs=epochs, first=first) + (sentences.OVERFIT_TOO_FEW if few else ".")
        elif outcome.ended is not None:
            verdict = sentences.OVERFIT_FAILED.format(reason=outcome.ended.reason.partition(";")[0])
        else:
            verdict = sentences.OVERFIT_WRONG.format(right=right, n=n, epochs=epochs)
        causes = [] if learned else self.find_causes(outcome, curve)
        cautions = [*causes, *([few] if few else [])]
        note = Note(verdict, "good" if passed else "warning" if learned else "bad")
        points = {"train": [[row.epoch, row.value] for row in curve]}
        options: dict[str, Any] = {"title": "Training accuracy", "x_title": "epoch"}
        options |= {"y_title": "share of training examples right", "y_domain": [0, 1]}
        rows = tuple((row.epoch, row.value, row.loss) for row in curve)
        about = "in evaluation mode, on the examples that are trained on"
        return Answer(
            study=self.name,
            title=self.record.question,
            summary=(verdict, *cautions, sentences.OVERFIT_NOTE),
            notes=(note, *(Note(text, "warning") for text in cautions), *failure_notes(outcomes)),
            figures=(Figure("training-accuracy", "lines", points, options, sentences.OVERFIT_NOTE),),
            tables=(Table(("epoch", "train accuracy", "train loss"), rows, about),),
            runs=(f"runs/{outcome.name}",),
            facts={
                "verdict": "pass" if passed else "none" if learned else "fail",
                "passed": passed,
                "right": right,
                "examples": n,
                "first_epoch": first,
                "causes": causes,
                "failed": outcome.ended.reason if outcome.ended is not None else None,
            },
        )

    def load_examples(self, outcome: Outcome) -> list[tuple[str, str | None, str]]:
        """Return the examples that are trained on: text, second text, label."""
        from heedful.objectives.classify import choose_train_rows

        options = self.settings(outcome.configuration)
        task = load_run_task(options)
        train = task.splits["train"]
        if train.labels is None or options.train_rows is None:
            return []
        labels = train.labels.astype("int64")
        rows = choose_train_rows(labels, options.train_rows, options.seed, balanced=options.balanced)
        return [(train[i].text, train[i].pair, task.label_names[train.labels[i]]) for i in rows]

    def find_causes(self, outcome: Outcome, curve: Sequence[Metrics]) -> list[str]:
        """Return what most likely kept the model from learning, the likeliest first."""
        from heedful.training.build import learning_rate

        options = self.settings(outcome.configuration)
        if outcome.ended is not None:
            return [sentences.OVERFIT_OVERFLOW] if OVERFLOWED in outcome.ended.reason else []
        causes = []
        warmup = {c.name: c for c in Run(outcome.folder).read_checks().checks}.get("warmup")
        if warmup is not None and warmup.status != "passed":
            causes.append(warmup.message)
        if METHODS.find(options.method).frozen_body:
            causes.append(sentences.OVERFIT_FROZEN.format(method=options.method))
        labels: dict[tuple[str, str | None], set[str]] = {}
        for text, pair, label in self.load_examples(outcome):
            labels.setdefault((text, pair), set()).add(label)
        if any(len(several) > 1 for several in labels.values()):
            causes.append(sentences.OVERFIT_CONTRADICTION)
        losses = [row.loss for row in curve if row.loss is not None]
        if not losses:
            return causes
        if any(row.value == 1.0 for row in curve) or losses[-1] > ROSE * min(losses):
            template = sentences.OVERFIT_ROSE
        elif losses[-1] < FELL * losses[0]:
            template = sentences.OVERFIT_FALLS
        else:
            template = sentences.OVERFIT_FLAT
        return [*causes, template.format(rate=learning_rate(options), first=losses[0], last=losses[-1])]


def refuse_other_kinds(run: OverfitRun) -> None:
    """Refuse answers of which none is simply right or wrong."""
    if run.kind in ("labels", "number") or load_run_task(run).kind in ("labels", "number"):
        raise UserError(f"{run.task}: this study counts right examples, and needs one label per text")


def describe_few_labels(counts: Counter[str], n: int) -> str:
    """Say so when a label has too few examples for a PASS to mean much."""
    if not counts or min(counts.values()) >= ENOUGH:
        return ""
    rare = min(counts, key=lambda label: counts[label])
    return sentences.OVERFIT_FEW_LABELS.format(
        count=counts[rare], n=n, label=shorten(rare, 30), enough=ENOUGH, examples=ENOUGH * len(counts)
    )
