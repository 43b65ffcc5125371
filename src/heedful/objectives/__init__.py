"""Training objectives: what a step minimizes, and how a model is evaluated. One file per objective."""

from typing import TYPE_CHECKING

from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
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
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "heedful.objectives.answer": "AnswerObjective",
            "heedful.objectives.base": "Evaluation Inputs Losses Objective",
            "heedful.objectives.causal": "Causal",
            "heedful.objectives.classify": "Classify",
            "heedful.objectives.contrastive": "ContrastiveClassify",
            "heedful.objectives.frozen": "ClassifyFeatures ClassifyTopLayers",
            "heedful.objectives.joint": "Joint",
            "heedful.objectives.masked": "Masked MaskedText",
            "heedful.objectives.mixed": "Mixed",
            "heedful.objectives.span": "Corruption Span",
            "heedful.objectives.text2text": "LabelWords Text2Text parse_words",
        },
    )

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
