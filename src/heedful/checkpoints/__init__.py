"""One file per family (bert, distilbert, roberta, gpt2, t5): read and write Hub folders."""

from typing import TYPE_CHECKING

from heedful.families import FAMILIES
from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
    from heedful.checkpoints.quick import load_to_use
    from heedful.checkpoints.reader import LoadReport, declared_pooling, kind_of, load
    from heedful.checkpoints.writer import Form, export, find_export_obstacle, find_form, save
else:
    __getattr__ = lazy_attributes(
        __name__,
        {
            "heedful.checkpoints.writer": "Form export find_export_obstacle find_form save",
            "heedful.checkpoints.quick": "load_to_use",
            "heedful.checkpoints.reader": "LoadReport declared_pooling kind_of load",
        },
    )

__all__ = [
    "FAMILIES", "Form", "LoadReport", "declared_pooling", "export", "find_export_obstacle", "find_form",
    "kind_of", "load", "load_to_use", "save",
]  # fmt: skip
