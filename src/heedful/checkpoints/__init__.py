"""One file per family (bert, distilbert, roberta, gpt2, t5): read and write Hub folders."""

from typing import TYPE_CHECKING

from heedful.families import FAMILIES
from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
    from heedful.checkpoints.reader import LoadReport, kind_of, load
    from heedful.checkpoints.writer import export, save, why_not
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "heedful.checkpoints.writer": "export save why_not",
            "heedful.checkpoints.reader": "LoadReport kind_of load",
        },
    )

__all__ = ["FAMILIES", "LoadReport", "export", "kind_of", "load", "save", "why_not"]
