"""Model families by name: bert, distilbert, roberta, gpt2, t5.

A family is one file of `heedful.checkpoints` that declares everything peculiar to it: how its configuration
and tensors are read and written, the form of its tokenizer, and what peft can express. Lower layers ask here.
Neither listing nor loading a family imports torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.plugins import Registry

if TYPE_CHECKING:
    from heedful.checkpoints.tables import Family

FAMILIES: Registry[Family] = Registry(
    "family",
    {
        "bert": "heedful.checkpoints.bert:BERT",
        "distilbert": "heedful.checkpoints.distilbert:DISTILBERT",
        "roberta": "heedful.checkpoints.roberta:ROBERTA",
        "gpt2": "heedful.checkpoints.gpt2:GPT2",
        "t5": "heedful.checkpoints.t5:T5",
    },
    group="heedful.families",
)
