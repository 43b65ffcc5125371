"""Only the head is trained."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.methods.base import Method, Trainee


@dataclass(kw_only=True)
class Head(Method):
    """A linear probe: the pretrained body stays as it is, so its features can be computed once."""

    name = "head"
    about = "the head alone, on a frozen body"
    learning_rate = 1e-3
    default_head_form = "linear"
    frozen_body = head_only = True

    def add(self, model: Trainee) -> set[str]:
        return set()
