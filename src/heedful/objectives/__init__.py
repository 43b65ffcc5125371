"""What a step minimises: classify, text2text, joint (with masked language modelling)."""

from heedful.objectives.base import Evaluation, Inputs, Losses, Objective
from heedful.objectives.causal import Causal
from heedful.objectives.classify import Classify, ClassifyFeatures
from heedful.objectives.joint import Joint
from heedful.objectives.masked import MaskedText
from heedful.objectives.text2text import LabelWords, Text2Text, parse_words

__all__ = [
    "Causal",
    "Classify",
    "ClassifyFeatures",
    "Evaluation",
    "Inputs",
    "Joint",
    "LabelWords",
    "Losses",
    "MaskedText",
    "Objective",
    "Text2Text",
    "parse_words",
]
