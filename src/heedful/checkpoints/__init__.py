"""One table a family (bert, distilbert, roberta, gpt2, t5): read and write Hub folders."""

from heedful.checkpoints.export import export, save, why_not
from heedful.checkpoints.load import FAMILIES, LoadReport, kind_of, load

__all__ = ["FAMILIES", "LoadReport", "export", "kind_of", "load", "save", "why_not"]
