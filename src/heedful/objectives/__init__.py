"""Training objectives: what a step minimizes, and how a model is evaluated. One file per objective."""

from heedful.objectives.answer import AnswerObjective
from heedful.objectives.base import Evaluation, Inputs, Losses, Objective
from heedful.objectives.causal import Causal
from heedful.objectives.classify import Classify
from heedful.objectives.contrastive import ContrastiveClassify
from heedful.objectives.frozen import ClassifyFeatures, ClassifyTopLayers
from heedful.objectives.joint import Joint
from heedful.objectives.masked import Masked, MaskedText
from heedful.objectives.mixed import Mixed
from heedful.objectives.span import Corruption, Span
from heedful.objectives.text2text import LabelWords, Text2Text, parse_words

__all__ = [
    "AnswerObjective",
    "Causal",
    "Classify",
    "ClassifyFeatures",
    "ClassifyTopLayers",
    "ContrastiveClassify",
    "Corruption",
    "Evaluation",
    "Inputs",
    "Joint",
    "LabelWords",
    "Losses",
    "Masked",
    "MaskedText",
    "Mixed",
    "Objective",
    "Span",
    "Text2Text",
    "parse_words",
]
