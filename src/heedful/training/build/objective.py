"""The objective that a run minimizes, from its options."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

from heedful import methods
from heedful.attention import MECHANISMS
from heedful.data import Task, load_task, tokenize
from heedful.data.corruption import find_salient
from heedful.data.tasks import find_task
from heedful.errors import UserError
from heedful.inference.generation import generate
from heedful.models import Classifier, LanguageModel
from heedful.objectives import (
    AnswerObjective,
    Causal,
    Classify,
    ClassifyFeatures,
    Corruption,
    Joint,
    Masked,
    MaskedText,
    Mixed,
    Objective,
    Span,
    Text2Text,
    parse_words,
)
from heedful.objectives.questions import QuestionFormat
from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.text import Tokenizer
from heedful.training.build.corpus import CorpusSplits
from heedful.training.build.model import add_masked_head, was_trained_for_mean

TextObjective = Causal | Masked | Span


def resolve_objective(options: AdaptOptions) -> AdaptOptions:
    """Replace `--objective auto` by the objective of the task, and refuse options that it does not have."""
    if options.objective == "auto":
        _, rules = find_task(options.task, options.data_dir)
        options = replace(options, objective="answer" if rules.kind == "text2text" else "classify")
    answers = options.objective == "answer"
    if not answers and options.answer_loss != AdaptOptions.answer_loss:
        raise UserError(f"--answer-loss {options.answer_loss}: this task has labels, and no answers")
    if answers and options.class_weights != "none":
        raise UserError(f"--class-weights {options.class_weights}: answers are free text and have no classes")
    if answers and options.head != "auto":
        raise UserError(f"--objective answer writes text and has no --head {options.head}")
    if answers and methods.METHODS[options.method].head_only:
        raise UserError(
            f"--method {options.method} trains a classifier's head; answers are written by the whole model"
        )
    return options


def scored_part(options: AdaptOptions, task: Task) -> Task:
    """Return the task without the splits that the options do not score."""
    unscored = {
        name for name, scored in (("dev", options.score_dev), ("test", options.score_test)) if not scored
    }
    return replace(task, splits={name: split for name, split in task.splits.items() if name not in unscored})


def build_answer(
    options: AdaptOptions, task: Task, tokenizer: Tokenizer, model: Any, max_len: int
) -> AnswerObjective:
    """Build the objective of free answers to questions."""
    return AnswerObjective(
        scored_part(options, task),
        QuestionFormat(tokenizer, max_len, model.config.kind == "encoder_decoder"),
        generate,
        loss=options.answer_loss,
        train_rows=options.train_rows,
        label_smoothing=options.label_smoothing,
        seed=options.seed,
    )


def build_classify(
    options: AdaptOptions, task: Task, tokenizer: Tokenizer, model: Any, max_len: int
) -> Classify:
    """Build the objective of labels, by a classification head or by a word per label."""
    common: dict[str, Any] = {
        "max_len": max_len,
        "with_types": model.config.n_types > 1,
        "train_rows": options.train_rows,
        "label_smoothing": options.label_smoothing,
        "class_weights": options.class_weights,
        "seed": options.seed,
    }
    if options.objective == "text2text":
        words = parse_words(options.label_words, task.label_names)
        return Text2Text(scored_part(options, task), tokenizer, words=words, **common)
    return Classify(scored_part(options, task), tokenizer, **common)


def build_joint(
    options: AdaptOptions, task: Task, tokenizer: Tokenizer, model: Any, max_len: int, classify: Classify
) -> Joint:
    """Add masked language modeling, on the training texts or on more text, to a classification."""
    source = task.splits["train"] if options.unlabeled is None else options.unlabeled
    texts = tokenize(source, tokenizer, max_len=max_len)
    masked = MaskedText(
        texts, tokenizer, batch_size=options.batch_size, rate=options.mlm_rate, seed=options.seed
    )
    if options.mlm_weight or options.mlm_first:
        add_masked_head(model, options, tokenizer)
    return Joint(classify, masked, mlm_weight=options.mlm_weight, first_steps=options.mlm_first)


def use_cached_features(
    options: AdaptOptions, model: Classifier | LanguageModel, classify: Classify
) -> tuple[Objective, float]:
    """Run the frozen body once and keep its states, for a method that trains the head alone.

    Returns the objective and the seconds that this took.
    """
    if options.pool is None and was_trained_for_mean(model):
        print(
            f"heedful: {options.model} was trained for the mean of its states; see --pool mean",
            file=sys.stderr,
        )
    if not options.cache_features:
        return classify, 0.0
    print("heedful: the frozen body runs once; its dropout is off", file=sys.stderr)
    start = time.monotonic()
    features = ClassifyFeatures(classify, model)
    return features, time.monotonic() - start


def build_text_objective(
    options: PretrainOptions, model: LanguageModel, tokenizer: Tokenizer, splits: CorpusSplits, block: int
) -> TextObjective:
    """Build causal, masked or span language modeling on these texts, to train or to score."""
    if options.objective == "span":
        return build_span(options, model, tokenizer, splits, block)
    mechanism = MECHANISMS[model.config.attention]
    if options.pack and not mechanism.segments:
        raise UserError(
            f"{mechanism.name} attention cannot keep packed documents apart; --no-pack gives each a row"
        )
    tokens = splits.tokens(tokenizer)
    common: dict[str, Any] = {"block": block, "together": options.pack, "seed": options.seed}
    if options.objective == "causal":
        return Causal(tokens, tokenizer, unsafe=mechanism.unsafe, **common)
    return Masked(tokens, tokenizer, rate=options.mask_rate, whole_words=options.whole_words, **common)


def build_span(
    options: PretrainOptions, model: LanguageModel, tokenizer: Tokenizer, splits: CorpusSplits, block: int
) -> Span:
    """Build span corruption, on documents without special tokens."""
    salient = None
    if options.salient is not None or options.span_form == "window":
        kinds = options.salient or "all"
        salient = {name: find_salient(texts, tokenizer, kinds) for name, texts in splits.splits.items()}
    form, window = (options.span_form, options.span_loss), (options.window_left, options.window_right)
    return Span(
        splits.tokens(tokenizer, special=False),
        tokenizer,
        corruption=Corruption(*form, block, *window),
        whole=model.kind == "text2text",
        unsafe=MECHANISMS[model.config.attention].unsafe,
        salient=salient,
        seed=options.seed,
    )


def add_questions(
    options: PretrainOptions, model: LanguageModel, tokenizer: Tokenizer, objective: TextObjective, block: int
) -> Objective:
    """Mix the training questions of `--questions` into each batch of text, if there are any."""
    if options.questions is None:
        return objective
    task = load_task(options.questions, data_dir=options.data_dir)
    if task.kind != "text2text":
        raise UserError(f"--questions {options.questions}: has labels; a task with free answers is wanted")
    form = QuestionFormat(tokenizer, block, model.kind == "text2text")
    train = replace(task, splits={"train": task.splits["train"]})  # dev and test are never looked at
    answer = AnswerObjective(train, form, generate, seed=options.seed)
    return Mixed(objective, answer, batch_size=questions_per_step(options, answer), seed=options.seed)


def questions_per_step(options: PretrainOptions, answer: AnswerObjective) -> int:
    """Return how many questions make up their share of a batch."""
    if options.token_budget is not None:
        mean = float(answer.train_lengths().mean())
        return max(1, round(options.questions_share * options.token_budget / mean))
    return max(1, round(options.questions_share * options.batch_size))


def options_of_loop(options: LoopOptions) -> LoopOptions:
    """Return the options that the loop draws batches by: questions take up their share of each batch."""
    if not isinstance(options, PretrainOptions) or options.questions is None:
        return options
    if options.token_budget is not None:
        rest = round((1 - options.questions_share) * options.token_budget)
        return replace(options, token_budget=max(1, rest))
    questions = max(1, round(options.questions_share * options.batch_size))
    return replace(options, batch_size=max(1, options.batch_size - questions))
