"""Questions and answers: one form of the row, the loss where it belongs, and exact match as generating gives it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.data import Task, load_task
from heedful.data.batches import IGNORED
from heedful.data.corruption import hide_single_span
from heedful.errors import UserError
from heedful.inference.generation import generate
from heedful.models import PRESETS, LanguageModel, build
from heedful.objectives.answer import AnswerEvaluation, AnswerObjective
from heedful.objectives.questions import (
    QuestionFormat,
    answer_room,
    answer_rows,
    encode_answers,
    encode_questions,
    question_room,
    separator,
)
from heedful.text import Tokenizer, train

PLACES = {"Ada": "Oslo", "Bo": "Port Elm", "Cy": "Ulm", "Dee": "Oslo", "Eve": "Rome", "Flo": "Ulm"}
LINES = [f"Where was {name} born?\t{place}\n" for name, place in PLACES.items()]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    (tmp_path / "wiki.txt").write_text("Ada was born in Oslo.\n")
    (tmp_path / "birth_places_train.tsv").write_text("".join(LINES[:4]))
    (tmp_path / "birth_dev.tsv").write_text("".join(LINES[4:]))
    (tmp_path / "birth_test_inputs.tsv").write_text("Where was Guy born?\n")
    return load_task("birthplaces", data_dir=tmp_path)


@pytest.fixture
def tokenizer() -> Tokenizer:
    return train(LINES, kind="char")


def model_for(tokenizer: Tokenizer, kind: str = "decoder") -> LanguageModel:
    torch.manual_seed(0)
    preset, head = ("char-gpt", "causal") if kind == "decoder" else ("t5-mini", "text2text")
    config = PRESETS[preset].config.replace(
        vocab_size=tokenizer.vocab_size, d_model=32, n_layers=1, n_heads=2, d_head=16, d_ff=64, max_len=64,
        pad_id=tokenizer.pad_id,
    ).with_dropout(0.0)  # fmt: skip
    model = build(config, head)
    assert isinstance(model, LanguageModel)
    return model


def objective(task: Task, tokenizer: Tokenizer, kind: str = "decoder", **options: Any) -> AnswerObjective:
    return AnswerObjective(task, QuestionFormat(tokenizer, 64, kind != "decoder"), generate, **options)


def fit(model: LanguageModel, learnt: AnswerObjective, steps: int) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for step in range(steps):
        (inputs,) = learnt.prepare(np.arange(len(learnt.rows)), step)
        loss = learnt.losses(model, inputs).sums["answer"] / inputs.counts["answer"]
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()


def test_a_row_is_that_of_span_corruption_with_the_answer_as_its_span(tokenizer: Tokenizer) -> None:
    question = encode_questions(tokenizer, ["Where was Ada born?"]).ids[0]
    answer = encode_answers(tokenizer, ["Oslo"]).ids[0]
    mask, pad = separator(tokenizer), tokenizer.pad_id or 0
    ours, targets = answer_rows([question], [answer], separator=mask, pad_id=pad, loss="answer", width=63)

    class Generator:
        """Draws the cut and the span so that the answer at the end of the document is what is hidden."""

        draws = iter([len(question) + len(answer), 0, len(answer), len(question)])

        def integers(self, *_: Any, size: int = 1, **__: Any) -> np.ndarray:
            return np.full(size, next(self.draws))

    document = np.concatenate([question, answer])
    theirs, expected = hide_single_span(
        [document],
        block=64,
        mask_id=mask,
        pad_id=pad,
        generator=Generator(),
        loss="span",  # type: ignore[arg-type]
    )
    # Nothing stands between the two masks of the corruption; the question has its one mask there.
    assert theirs[0, len(question)] == theirs[0, len(question) + 1] == mask
    assert ours[0].tolist()[:-1] == np.delete(theirs[0], len(question)).tolist()
    assert targets[0].tolist()[:-1] == np.delete(expected[0], 0).tolist()


def test_the_loss_is_on_the_answer_and_its_end_alone(task: Task, tokenizer: Tokenizer) -> None:
    inputs = objective(task, tokenizer).inputs("train", np.arange(4))
    wanted = inputs.tensors["targets"] != IGNORED
    assert wanted.sum(1).tolist() == [len(PLACES[name]) + 1 for name in list(PLACES)[:4]]
    ends = inputs.tensors["targets"][0][wanted[0]].tolist()
    assert tokenizer.decode(ends[:-1]) == "Oslo"
    assert ends[-1] == tokenizer.mask_id
    everything = objective(task, tokenizer, loss="all").prepare(np.arange(4), 0)[0]
    assert everything.counts["answer"] == sum(len(line) - 1 for line in LINES[:4]), "all but the first"


def test_byte_level_answers_are_spelled_as_inside_a_text() -> None:
    pieces = train(["She lived in Oslo and in Ulm in Oslo"] * 9, kind="bpe", vocab_size=380, sentinels=0)
    inside = pieces.encode("in Oslo", special=False).ids
    answer = encode_answers(pieces, ["Oslo"]).ids[0].tolist()
    assert inside[-len(answer) :] == answer
    assert QuestionFormat(pieces, 64, False).text(answer) == "Oslo"


@pytest.mark.parametrize("kind", ["decoder", "encoder_decoder"])
def test_a_model_learns_its_answers_and_generates_them(task: Task, tokenizer: Tokenizer, kind: str) -> None:
    learnt, model = objective(task, tokenizer, kind), model_for(tokenizer, kind)
    before = learnt.evaluate(model, "train")
    fit(model, learnt, 250)
    after = learnt.evaluate(model, "train")
    assert before.value < 1.0
    assert after.value == 1.0
    assert after.loss < 0.1 < before.loss
    answers, confidence = learnt.ask(model, "train")
    assert answers == [PLACES[name] for name in list(PLACES)[:4]]
    assert isinstance(after, AnswerEvaluation)
    assert confidence == pytest.approx(after.confidence, abs=1e-4)
    assert (confidence > 0.8).all()


def test_what_is_scored_is_what_generating_gives(task: Task, tokenizer: Tokenizer) -> None:
    learnt, model = objective(task, tokenizer), model_for(tokenizer)
    fit(model, learnt, 60)
    for split in ("train", "dev"):
        found = learnt.evaluate(model, split)
        assert isinstance(found, AnswerEvaluation)
        answers, confidence = learnt.ask(model, split)
        assert list(found.answers) == answers
        assert found.confidence == pytest.approx(confidence, abs=1e-4)
        assert found.value == np.mean([a == b for a, b in zip(answers, learnt.texts[split], strict=True)])


def test_questions_without_answers_are_answered(task: Task, tokenizer: Tokenizer) -> None:
    learnt = objective(task, tokenizer)
    assert list(learnt.splits) == ["train", "dev"]
    answers, confidence = learnt.ask(model_for(tokenizer), "test")
    assert len(answers) == 1
    assert 0 <= confidence[0] <= 1


def test_training_and_use_read_a_question_alike(task: Task, tokenizer: Tokenizer) -> None:
    learnt = objective(task, tokenizer)
    row = learnt.inputs("train", np.arange(1)).tensors["ids"][0].tolist()
    asked: list[list[int]] = []

    def write(model: Any, prompts: Any, **_: Any) -> Any:
        asked.extend(prompts)
        return []

    learnt.form.ask(None, learnt.form.questions(["Where was Ada born?"]).ids, write)
    assert row[: len(asked[0])] == asked[0]


def test_unknown_characters_and_cuts_are_counted(task: Task, tokenizer: Tokenizer) -> None:
    questions = objective(task, tokenizer).questions
    unknown = {split: encoded.unknown for split, encoded in questions.items()}
    assert unknown == {"train": 0, "dev": 0, "test": 1}, "nobody in train has a G"
    long = QuestionFormat(tokenizer, 24, False).questions(["Where was Ada born?", "Where was born?"])
    assert long.truncated == 1
    assert max(map(len, long.ids)) == question_room(24)
    assert question_room(24) + 1 + answer_room(24) == 24


def test_a_resume_on_other_questions_is_noticed(task: Task, tokenizer: Tokenizer) -> None:
    ours = objective(task, tokenizer)
    assert ours.content() == objective(task, tokenizer).content()
    (task.folder / "birth_dev.tsv").write_text("".join(LINES[5:]))
    other = load_task("birthplaces", data_dir=task.folder)
    assert ours.content() != objective(other, tokenizer).content()


def test_a_part_of_the_rows_is_a_part_of_the_next_larger_one(task: Task, tokenizer: Tokenizer) -> None:
    two, three = (set(objective(task, tokenizer, train_rows=n).rows.tolist()) for n in (2, 3))
    assert len(two) == 2
    assert two < three
    with pytest.raises(UserError, match="--train-rows 5"):
        objective(task, tokenizer, train_rows=5)


def test_without_mask_the_end_of_text_divides_and_without_both_nothing_does() -> None:
    words = train(LINES, kind="word", min_count=1)
    assert separator(words) == words.eos_id
    bare = Tokenizer(words.backend, {})
    with pytest.raises(UserError, match="no mask token and no end of text"):
        separator(bare)
