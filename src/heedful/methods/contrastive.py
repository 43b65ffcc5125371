"""Contrastive tuning: the body learns which texts share a label, and a logistic regression is its head."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.errors import UserError
from heedful.methods.subsets import Full


@dataclass(kw_only=True)
class Contrastive(Full):
    """Tuning for few labels (Tunstall et al. 2022), with the loss of Khosla et al. (2020).

    Steps train the body alone: states of texts with the same label come closer to each other than to those of
    other labels. The head is fitted to the states before the model is scored.
    """

    name = "contrastive"
    about = "every parameter, by comparing texts; then a fitted head"
    paper = "Tunstall et al. 2022, SetFit, arXiv:2209.11055; Khosla et al. 2020, arXiv:2004.11362"
    default_head_form = "linear"

    temperature: float = 0.3
    """Divides the cosines of the loss; a lower one looks more at the nearest texts."""

    def check(self) -> None:
        if not 0 < self.temperature <= 10:
            raise UserError(
                f"contrastive: temperature must be above 0 and at most 10, not {self.temperature}"
            )
