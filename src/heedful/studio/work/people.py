"""The people that a model of questions is asked about: who was in its training, and in which part of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.data.corpus import read_file_texts
from heedful.errors import UserError, shorten
from heedful.evaluation.knowledge import QuestionFrame, find_frame, find_mentioned
from heedful.inference.loading import read_run_facts
from heedful.paths import expand_path
from heedful.runs.directory import CONFIG, Run
from heedful.runs.schemas import Prediction
from heedful.studio.work.training_rows import load_task_of

if TYPE_CHECKING:
    from heedful.data import Task
    from heedful.studio.model_store import ModelStore
    from heedful.studio.worker import Report

GROUPS = {
    "seen": "asked about while fine-tuning",
    "dev": "only in the biographies",
    "unseen": "exist, but in no text",
    "strangers": "do not exist",
}
EXAMPLES = 40
LONGEST_LINE = 400


@dataclass(frozen=True)
class Acquaintances:
    """Whom a run's data names, and what it says about them."""

    frame: QuestionFrame
    answers: dict[str, tuple[str, str]]
    """By name: the split of its question, and the right answer."""
    corpus: list[str]
    read: bool
    """Whether the model has read the corpus before it was fine-tuned."""
    passes: int | None


def list_groups(folder: Path) -> list[dict[str, Any]]:
    """Return how sure a run was about groups of people, with questions about some of each."""
    groups = []
    for name, title in GROUPS.items():
        if not (folder / f"predictions_{name}.jsonl").is_file():
            continue
        rows = [row for row in Run(folder).read_predictions(name) if row.text]
        if not rows:
            continue
        known = [row for row in rows if row.label is not None]
        right = float(np.mean([is_right(row) for row in known])) if known else None
        confidence = float(np.mean([row.probabilities.get(row.predicted, 0.0) for row in rows]))
        questions = [row.text for row in rows[:EXAMPLES]]
        numbers = {"count": len(rows), "confidence": confidence, "right": right}
        groups.append({"name": name, "title": title, **numbers, "questions": questions})
    return groups


def is_right(row: Prediction) -> bool:
    return row.predicted == " ".join((row.label or "").split())


def find_person(models: ModelStore, name: str, question: str, report: Report) -> dict[str, Any]:
    """Return what a model's training says about the person of a question."""

    def load(folder: Path) -> Acquaintances:
        report(-1, "reading the training data")
        return read_acquaintances(folder, load_task_of(folder))

    known = models.get("people", name, load)
    frame = known.frame
    inside = question.startswith(frame.before) and question.endswith(frame.after)
    person = frame.name(question).strip() if inside else ""
    if not person:
        raise UserError(
            f'the questions of training were "{frame.ask("...")}"; only such a question names a person'
        )
    split, answer = known.answers.get(person, (None, None))
    mentions = find_lines(person, known.corpus)
    return {
        "name": person,
        "split": split,
        "answer": answer,
        "mentions": len(mentions),
        "line": shorten(mentions[0], LONGEST_LINE) if mentions else None,
        "read": known.read,
        "seen": split == "train" or (known.read and bool(mentions)),
        "sentence": describe_acquaintance(known, split, len(mentions)),
    }


def read_acquaintances(folder: Path, task: Task) -> Acquaintances:
    frame = find_frame(task.splits["train"].texts)
    answers = {
        frame.name(text): (name, " ".join(answer.split()))
        for name, split in task.splits.items()
        for text, answer in zip(split.texts, split.answers or (), strict=False)
    }
    corpus = [] if task.corpus is None else list(read_file_texts(task.corpus))
    options = find_pretraining(folder)
    source = Path(str(options.get("corpus", ""))) if options else None
    read = source is not None and task.corpus is not None and same_file(source, task.corpus)
    return Acquaintances(frame, answers, corpus, read, options.get("epochs") if options else None)


def find_pretraining(folder: Path) -> dict[str, Any] | None:
    """Return the options with which the model was pretrained that a run began with, if that is known."""
    _, config = read_run_facts(folder)
    base = expand_path(str(config.get("model", "")))
    if not (base / CONFIG).is_file():
        return None
    options: dict[str, Any] | None = Run.open(base).read_config().get("pretrain")
    return options


def same_file(one: Path, other: Path) -> bool:
    """Whether two paths are the same file, or files with the same bytes."""
    if not one.is_file():
        return False
    return one.resolve() == other.resolve() or one.read_bytes() == other.read_bytes()


def find_lines(person: str, corpus: list[str]) -> list[str]:
    """Return the texts of a corpus that name a person."""
    if len(person.split()) < 2:
        return [text for text in corpus if person in text]
    return [text for text in corpus if person in text and any(find_mentioned([person], [text]))]


def describe_acquaintance(known: Acquaintances, split: str | None, mentions: int) -> str:
    times = f", {known.passes} times" if known.passes else ""
    texts = "1 text of the corpus names" if mentions == 1 else f"{mentions} texts of the corpus name"
    if split == "train":
        more = f" {texts} the person, and it read that{times}." if mentions and known.read else ""
        return f"Seen: the model was trained on this very question and its answer.{more}"
    if mentions and known.read:
        return f"Seen: {texts} the person, which it read in pretraining{times}; no question of training did."
    if mentions:
        return f"Not seen: {texts} the person, but this model has not read that corpus, and no question did."
    if split is not None:
        return "Not seen: the person exists, but is in no text and in no question of training. It is a guess."
    return "Not seen: nothing in the training data names this person. Whatever the answer is, it is invented."
