"""The options of `heedful batch-size`: those of `heedful adapt` that change how much memory a step needs."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.options.training import AdaptOptions
from heedful.options.values import type_hints

SHOWN = (
    "model task method method_options objective unlabeled mlm_rate label_words head max_len accumulate "
    "optimizer attention tokenizer device precision threads data_dir text_column pair_column label_column"
)

if TYPE_CHECKING:
    BatchSizeOptions = AdaptOptions
else:
    HINTS = type_hints(AdaptOptions)
    BatchSizeOptions = make_dataclass(
        "BatchSizeOptions",
        [
            (field.name, Annotated[HINTS[field.name], Parameter(parse=False)], field.default)
            for field in fields(AdaptOptions)
            if field.name not in SHOWN.split()
        ],
        bases=(AdaptOptions,),
        namespace={"__module__": __name__},
        frozen=True,
        kw_only=True,
    )
