"""Builds a run of `pretrain`: a language model and the text that it learns from."""

from __future__ import annotations

import torch

from heedful import methods
from heedful.evaluation.sentences import read_sentences, refuse_sentences
from heedful.logs import notice
from heedful.objectives.registry import find_objective
from heedful.objectives.setup import TextSetup
from heedful.options.training import BLOCK, PretrainOptions
from heedful.problems import find_problem
from heedful.training.build.corpus import open_splits
from heedful.training.build.job import Job
from heedful.training.build.model import build_language_model, starts_from_scratch
from heedful.training.build.objective import add_questions
from heedful.training.build.tokenizer import corpus_tokenizer
from heedful.training.machine import begin_to_resolve, keep_freed_memory, resolve_machine


def build_pretrain(options: PretrainOptions) -> Job:
    keep_freed_memory()  # all rows have the same length, so steps have the same shapes
    begin_to_resolve(options)
    sentences = read_sentences(options.sentences)
    splits = open_splits(options)
    tokenizer = corpus_tokenizer(options, splits.splits["train"])
    machine = resolve_machine(options)
    torch.manual_seed(options.seed)  # after the tokenizer: the weights do not depend on how it was found
    model = build_language_model(options, tokenizer)
    method = methods.make("full")
    method.attach(model)
    model.to(machine.device)
    if sentences:
        refuse_sentences(model)
    room = methods.measure_room(model)
    block = min(options.block or BLOCK, room)
    if options.block is not None and block < options.block:
        notice(f"rows have {block} tokens, what the model has room for")
    if starts_from_scratch(options.model) or model.trained_length is not None:
        model.trained_length = max(block, model.trained_length or 0)
    objective_class = find_objective(options.objective, "pretrain")
    objective = objective_class.build(TextSetup(options, splits, tokenizer, model, block))
    problem, packed = find_problem(objective_class.problem), options.pack and objective_class.packs
    return Job(
        command="pretrain",
        options=options,
        machine=machine,
        data_name=splits.name,
        tokenizer=tokenizer,
        model=model,
        method=method,
        objective=add_questions(options, model, tokenizer, objective, block),
        scorer=problem.make_scorer(splits, objective, block, packed, sentences, machine.precision),
        head=model.kind,
        length=block,
        room=room,
        formula=method.formula(model),
    )
