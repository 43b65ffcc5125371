"""Trainable vectors before the text."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from heedful.errors import UserError
from heedful.methods.base import Method, Trainee
from heedful.models.embeddings import Pool, PromptVectors
from heedful.options.types import Positive


@dataclass(kw_only=True)
class Prompt(Method):
    """Prompt tuning (Lester et al. 2021): `length` vectors before the embedded text of a frozen model.

    They take the first positions and type 0, start as embeddings of random tokens, and every text token sees
    them. The pooled state is the text's (first token in encoders, last real token in decoders, end of text in
    T5); `pool="first"` gives the state of the first vector instead, as peft does, in encoders.
    In T5 they precede the encoder's input alone.
    """

    name = "prompt"
    about = "trainable vectors before the text"
    paper = "Lester, Al-Rfou and Constant 2021, The Power of Scale, arXiv:2104.08691"
    learning_rate = 1e-2
    default_head_form = "linear"
    frozen_body = True
    keeps_output = False
    mergeable = False

    length: Positive = 128
    pool: Pool = "text"

    def add(self, model: Trainee) -> set[str]:
        body = model.body
        if self.pool not in body.pools:
            raise UserError(
                f'prompt: pool "{self.pool}" is for encoders; the first vector of this '
                f"{model.config.kind.replace('_', '-')} never sees the text"
            )
        if self.pool == "first" and model.config.pool != "first":
            raise UserError('prompt: pool "first" and a model that pools the mean exclude each other')
        if model.config.position != "relative" and self.length >= body.room:
            raise UserError(f"prompt: length {self.length} leaves no room for text in {body.room} positions")
        tokens = body.embed.tokens.weight.detach()
        rows = torch.randint(len(tokens), (self.length,))
        body.prompt = PromptVectors(tokens[rows.to(tokens.device)].clone(), self.pool)
        self.prompt = body.prompt
        return {"body.prompt.vectors"}

    def switch(self, model: Trainee, on: bool) -> None:
        model.body.prompt = self.prompt if on else None

    def fold(self, model: Trainee) -> None:
        raise UserError(
            "prompt adds vectors before the text and cannot be merged; export the adapter without --merge"
        )
