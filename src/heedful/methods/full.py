"""Every parameter is trained."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.methods.base import Method, Trainee


@dataclass(kw_only=True)
class Full(Method):
    """Fine-tuning of the whole model (Howard and Ruder 2018; Devlin et al. 2019, section 3.2)."""

    name = "full"
    about = "every parameter"
    learning_rate = 5e-5
    saves_whole_model = True
    switchable = False

    def add(self, model: Trainee) -> set[str]:
        return {name for name, _ in model.named_parameters()}
