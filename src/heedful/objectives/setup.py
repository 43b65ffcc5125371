"""What objectives are built from: a task with labels or answers, or plain text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from heedful.attention import MECHANISMS
from heedful.options.training import AdaptOptions, PretrainOptions
from heedful.text import Tokenizer

if TYPE_CHECKING:
    from heedful.attention import Mechanism
    from heedful.data import Task, Tokens
    from heedful.objectives.questions import GenerateFunction


@dataclass(frozen=True)
class TaskSetup:
    """What an objective of `heedful adapt` is built from."""

    options: AdaptOptions
    task: Task
    """The task with train and the splits that are scored."""
    tokenizer: Tokenizer
    model: Any
    """The model with the head that the objective asks for, on its device."""
    max_len: int
    model_changes: Mapping[str, Any]
    """How the model's configuration differs from its checkpoint's, to load another head of it."""
    generate: GenerateFunction
    """Continues prompts greedily."""


class SplitTexts(Protocol):
    """A corpus by splits."""

    @property
    def splits(self) -> Mapping[str, Any]: ...

    def tokens(self, tokenizer: Tokenizer, special: bool = True) -> dict[str, Tokens]: ...


@dataclass(frozen=True)
class TextSetup:
    """What an objective of `heedful pretrain` is built from."""

    options: PretrainOptions
    texts: SplitTexts
    tokenizer: Tokenizer
    model: Any
    block: int
    """The number of tokens per row."""

    @property
    def mechanism(self) -> type[Mechanism]:
        return MECHANISMS[self.model.config.attention]
