"""Can this model learn at all? A few examples, learnt by heart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from heedful.errors import shorten
from heedful.methods.registry import METHODS
from heedful.options.studies import OverfitOptions, OverfitRun
from heedful.options.values import check_bounds
from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord
from heedful.studies.base import Study, failures
from heedful.studies.commands import shared_options, study_command
from heedful.studies.shared.runner import run

ENOUGH = 3
"""Examples of each label that a PASS needs: no rule that leaves a label out may be right on all."""
OVERFLOWED = "no longer a number"
"""What the reason of a run says whose loss overflowed."""
ROSE, FELL = 1.2, 0.98
"""Shares of the lowest and of the first loss: above the one it rose again, below the other it still falls."""


def overfit(options: OverfitRun, study: OverfitOptions) -> tuple[StudyFolder, Answer]:
    """See whether a model learns a few examples by heart."""
    check_bounds(study)
    record = StudyRecord(
        kind="overfit",
        question=f"Can {options.model} learn {study.examples} examples of {options.task} by heart?",
        seed=options.seed,
        options={
            "examples": study.examples,
            "run": {
                **shared_options(options),
                "train_rows": study.examples,
                "train_eval_rows": study.examples,
            },
        },
        configurations=(Configuration("overfit", {"epochs": options.epochs}),),
        command=study_command("overfit", (options.model, options.task), study, options),
    )
    return run(record, study, (options.task, options.model), options.threads)


class Overfit(Study):
    """PASS when every example is right in evaluation mode at the end, with three or more of each label."""

    kind = "overfit"

    def answers_failure(self, outcomes: Sequence[Outcome]) -> bool:
        """A loss that overflowed is a FAIL with its cause."""
        return all(o.ended is not None and OVERFLOWED in o.ended.reason for o in outcomes)

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """The verdict, and for a FAIL its likely cause."""
        (outcome,) = outcomes
        curve = [row for row in outcome.metrics() if row.split == "train_eval" and row.value is not None]
        n = int(self.record.options["examples"])
        learnt = outcome.ended is None and bool(curve) and curve[-1].value == 1.0
        right = round((curve[-1].value or 0.0) * n) if curve else 0
        epochs = outcome.configuration.settings["epochs"]
        first = next((row.epoch for row in curve if row.value == 1.0), None)
        few = few_labels(Counter(label for _, _, label in self.examples(outcome)), n)
        passed = learnt and not few
        if learnt:
            said = f"{'NO VERDICT' if few else 'PASS'}: all {n} examples are right"
            if any(row.value != 1.0 for row in curve if row.epoch > (first or 0)):
                said += f" after epoch {epochs} (first after epoch {first:g})"
            else:
                said += f", from epoch {first:g} of {epochs} on"
            said += ", but a label has too few of them for a PASS." if few else "."
        elif outcome.ended is not None:
            said = f"FAIL: {outcome.ended.reason.partition(';')[0]}."
        else:
            said = f"FAIL: {right} of {n} examples are right after {epochs} epochs."
        causes = [] if learnt else self.causes(outcome, curve)
        told = Note(said, "good" if passed else "warning" if learnt else "bad")
        notes = [told, *(Note(text, "warning") for text in causes)]
        notes += [Note(few, "warning")] if few else []
        plain = "This is accuracy on the examples that were trained on; it says nothing about new texts."
        return Answer(
            study=self.kind,
            title=self.record.question,
            summary=(said, *causes, *([few] if few else []), plain),
            notes=(*notes, *failures(outcomes)),
            figures=(
                Figure(
                    "training-accuracy",
                    "lines",
                    {"train, evaluation mode": [[row.epoch, row.value] for row in curve]},
                    {
                        "title": "Training accuracy",
                        "x_title": "epoch",
                        "y_title": "share of training examples right",
                        "y_domain": [0, 1],
                    },
                    plain,
                ),
            ),
            tables=(
                Table(
                    ("epoch", "train accuracy", "train loss"),
                    tuple((row.epoch, row.value, row.loss) for row in curve),
                    "in evaluation mode, on the examples that are trained on",
                ),
            ),
            runs=(f"runs/{outcome.name}",),
            facts={
                "verdict": "pass" if passed else "none" if learnt else "fail",
                "passed": passed,
                "right": right,
                "examples": n,
                "first_epoch": first,
                "causes": causes,
                "failed": outcome.ended.reason if outcome.ended is not None else None,
            },
        )

    def examples(self, outcome: Outcome) -> list[tuple[str, str | None, str]]:
        """The examples that are learnt: text, second text, label."""
        from heedful.objectives.classify import choose_balanced_rows
        from heedful.problems.tasks import load_run_task

        options = self.options(outcome.configuration)
        task = load_run_task(options)
        train = task.splits["train"]
        if train.labels is None or options.train_rows is None:
            return []
        rows = choose_balanced_rows(train.labels.astype("int64"), options.train_rows, options.seed)
        return [(train[i].text, train[i].pair, task.label_names[train.labels[i]]) for i in rows]

    def causes(self, outcome: Outcome, curve: Sequence[Metrics]) -> list[str]:
        """What most likely kept the model from learning, the likeliest first."""
        from heedful.training.build import learning_rate

        options = self.options(outcome.configuration)
        if outcome.ended is not None:
            too_high = OVERFLOWED in outcome.ended.reason
            return ["The learning rate is too high: the loss overflowed."] if too_high else []
        found = []
        warmup = {c.name: c for c in Run(outcome.folder).checks().checks}.get("warmup")
        if warmup is not None and warmup.status != "passed":
            found.append(warmup.found)
        if METHODS.find(options.method).frozen_body:
            found.append(
                f"--method {options.method} keeps the body frozen; --method full can move everything."
            )
        labels: dict[tuple[str, str | None], set[str]] = {}
        for text, pair, label in self.examples(outcome):
            labels.setdefault((text, pair), set()).add(label)
        if any(len(several) > 1 for several in labels.values()):
            found.append("The same text stands among the examples with two labels: nothing can learn both.")
        losses = [row.loss for row in curve if row.loss is not None]
        reached = any(row.value == 1.0 for row in curve)
        rate = f"{learning_rate(options):g}"
        if reached or (losses and losses[-1] > ROSE * min(losses)):
            found.append(f"The learning rate {rate} is too high: the loss rose again after it had fallen.")
        elif losses and losses[-1] < FELL * losses[0]:
            found.append(
                f"The loss still falls ({losses[0]:.3f} to {losses[-1]:.3f}): a higher learning rate than "
                f"{rate}, or more epochs, may be all it takes."
            )
        elif losses:
            found.append(
                f"The loss hardly moves ({losses[0]:.3f} to {losses[-1]:.3f}): the learning rate {rate} is "
                "most likely too low, or so high that the model gives one answer to everything."
            )
        return found


def few_labels(counts: Counter[str], n: int) -> str:
    """Say so when a label has too few examples for a PASS to mean much."""
    if not counts or min(counts.values()) >= ENOUGH:
        return ""
    rare = min(counts, key=lambda label: counts[label])
    return (
        f'Only {counts[rare]} of the {n} examples have the label "{shorten(rare, 30)}", and a PASS needs '
        f"{ENOUGH} of each; --examples {ENOUGH * len(counts)} or more may have them."
    )
