"""The files of a world, each task in the form of the task it imitates, and its best possible results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from typing import Any, TextIO, TypeVar

from heedful.data.world import messages, questions, reviews, sentiment
from heedful.data.world.biographies import write_biography
from heedful.data.world.draws import Source
from heedful.data.world.names import find_stride
from heedful.data.world.people import CIRCLE, World
from heedful.progress import progress

T = TypeVar("T")
Facts = dict[str, Any]

TRAIN_SHARE, DEV_SHARE = 0.7, 0.15
UNSEEN_SHARE, MOST_UNSEEN = 0.15, 5000
BLOCK = 128
"""Birthplaces this early in a line fit into the usual block of a character model."""
BOOLQ_ROWS = {"train": 9427, "dev": 2000}
REVIEW_ROWS = {"train": 6000, "valid": 1000, "test": 1000}
UNLABELED_REVIEWS = 3000
SENTIMENT_ROWS = {"train": 6000, "dev": 1000, "test": 1000}
MESSAGE_ROWS = {"train": 1500, "dev": 300, "test": 600}
CHUNK = 2000


def write_birthplaces(folder: Path, world: World, seed: int, people: int) -> Facts:
    """Write `wiki.txt` and the questions about birthplaces, one person at a time."""
    biographies = Source(seed, "biographies")
    step, offset = find_stride(people), Source(seed, "splits").at(0).below(people)
    ends = (round(people * TRAIN_SHARE), round(people * (TRAIN_SHARE + DEV_SHARE)))
    answers = {split: Counter[str]() for split in ("train", "dev", "unseen")}
    early = 0
    with ExitStack() as stack, progress("people", people) as bar:
        wiki = stack.enter_context(create(folder / "wiki.txt"))
        train = stack.enter_context(create(folder / "birth_places_train.tsv"))
        dev = stack.enter_context(create(folder / "birth_dev.tsv"))
        test = stack.enter_context(create(folder / "birth_test_inputs.tsv"))
        for person in world.people(0, people):
            line = write_biography(person, biographies.at(person.index))
            wiki.write(line + "\n")
            town = person.birthplace.name
            # A permutation of all numbers: shares are exact without remembering anybody.
            rank = (person.index * step + offset) % people
            if rank < ends[0]:
                train.write(f"Where was {person.name} born?\t{town}\n")
                answers["train"][town] += 1
            elif rank < ends[1]:
                dev.write(f"Where was {person.name} born?\t{town}\n")
                answers["dev"][town] += 1
                early += 0 <= line.find(town) <= BLOCK - len(town)
            else:
                test.write(f"Where was {person.name} born?\n")
            if person.index % CHUNK == CHUNK - 1:
                bar.advance(CHUNK)
    first = -(-people // CIRCLE) * CIRCLE
    unseen = min(MOST_UNSEEN, max(CIRCLE, round(people * UNSEEN_SHARE)))
    with create(folder / "birth_unseen.tsv") as file:
        for person in world.people(first, first + unseen):
            file.write(f"Where was {person.name} born?\t{person.birthplace.name}\n")
            answers["unseen"][person.birthplace.name] += 1
    constant = min(answers["train"], key=lambda town: (-answers["train"][town], town))
    rows = {"wiki": people, "train": ends[0], "dev": ends[1] - ends[0], "test": people - ends[1]}
    return {
        "rows": {**rows, "unseen": unseen},
        "metric": "exact_match",
        "best_possible": 1.0,
        "constant_answer": constant,
        "constant_answer_on_dev": answers["dev"][constant] / max(1, answers["dev"].total()),
        "constant_answer_on_unseen": answers["unseen"][constant] / unseen,
        "largest_town_share": max(town.share for town in world.names.towns),
        "best_possible_on_unseen": world.best_guess(),
        "dev_answers_in_first_128_characters": early / max(1, answers["dev"].total()),
    }


def write_boolq(folder: Path, world: World, seed: int) -> Facts:
    distinct = skip_duplicates(questions.Questions(world, seed).at, lambda q: (q.question, q.passage))
    yes = {}
    for split, rows in BOOLQ_ROWS.items():
        yes[split] = 0
        with create(folder / f"{split}.jsonl") as file:
            for idx, q in enumerate(islice(distinct, rows)):
                yes[split] += q.answer
                row = {"question": q.question, "passage": q.passage, "idx": idx, "label": q.answer}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    return {
        "rows": BOOLQ_ROWS,
        "metric": "accuracy",
        "label_noise": 0.0,
        "best_possible": 1.0,
        "yes_share_of_dev": yes["dev"] / BOOLQ_ROWS["dev"],
    }


def write_reviews(folder: Path, world: World, seed: int) -> Facts:
    """Write reviews as quoted CSV without a header, and some without labels."""
    distinct = skip_duplicates(reviews.Reviews(world, seed).at, lambda r: r.text)
    wrong = {}
    for split, rows in REVIEW_ROWS.items():
        wrong[split] = 0
        with create(folder / f"{split}.csv") as file:
            for review in islice(distinct, rows):
                wrong[split] += review.label != review.stars
                quoted = review.text.replace('"', '""')
                file.write(f'"{review.label}","{quoted}"\n')
    with create(folder / "unlabeled.txt") as file:
        file.writelines(review.text + "\n" for review in islice(distinct, UNLABELED_REVIEWS))
    return {
        "rows": {**REVIEW_ROWS, "unlabeled": UNLABELED_REVIEWS},
        "metric": "accuracy",
        "label_noise": reviews.LABEL_NOISE,
        "best_possible": 1 - reviews.LABEL_NOISE,
        "best_possible_on_these_rows": {split: 1 - n / REVIEW_ROWS[split] for split, n in wrong.items()},
    }


def write_sentiment(folder: Path, world: World, seed: int) -> Facts:
    """Write sentences and labels as TSV without a header."""
    distinct = skip_duplicates(sentiment.Sentences(world, seed).at, lambda s: s.text)
    wrong = {}
    for split, rows in SENTIMENT_ROWS.items():
        wrong[split] = 0
        with create(folder / f"{split}.tsv") as file:
            for sentence in islice(distinct, rows):
                wrong[split] += sentence.label != sentence.meant
                file.write(f"{sentence.text}\t{sentence.label}\n")
    return {
        "rows": SENTIMENT_ROWS,
        "metric": "accuracy",
        "label_noise": sentiment.LABEL_NOISE,
        "best_possible": 1 - sentiment.LABEL_NOISE,
        "best_possible_on_these_rows": {split: 1 - n / SENTIMENT_ROWS[split] for split, n in wrong.items()},
    }


def write_messages(folder: Path, world: World, seed: int) -> Facts:
    """Write letters and their desks as CSV with a header."""
    distinct = skip_duplicates(messages.Messages(world, seed).at, lambda m: m.text)
    for split, rows in MESSAGE_ROWS.items():
        with create(folder / f"{split}.csv") as file:
            file.write("text,label\n")
            file.writelines(f'"{message.text}",{message.label}\n' for message in islice(distinct, rows))
    return {"rows": MESSAGE_ROWS, "metric": "accuracy", "label_noise": 0.0, "best_possible": 1.0}


def skip_duplicates(make: Callable[[int], T], content: Callable[[T], object]) -> Iterator[T]:
    """Yield what `make` returns for 0, 1, 2, ..., each content once, so that no two splits share a row."""
    seen = set()
    for index in count():
        item = make(index)
        if (what := content(item)) not in seen:
            seen.add(what)
            yield item


def create(path: Path) -> TextIO:
    """Open a new text file, with the same line ends on every system."""
    return path.open("x", encoding="utf-8", newline="\n")


def write_facts(path: Path, facts: Facts) -> None:
    with create(path) as file:
        file.write(json.dumps(facts, indent=2, ensure_ascii=False) + "\n")
