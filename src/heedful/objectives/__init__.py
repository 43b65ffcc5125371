"""What a step minimises: classify, joint (with masked language modelling)."""

from heedful.objectives.base import Evaluation, Inputs, Losses, Objective
from heedful.objectives.classify import Classify, ClassifyFeatures
from heedful.objectives.joint import Joint
from heedful.objectives.masked import MaskedText

__all__ = [
    "Classify",
    "ClassifyFeatures",
    "Evaluation",
    "Inputs",
    "Joint",
    "Losses",
    "MaskedText",
    "Objective",
]
