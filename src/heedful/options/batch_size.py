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
    # The parser evaluates the types in this module, which does not have the names of the inherited ones.
    HINTS = {
        name: hint if name in SHOWN.split() else Annotated[hint, Parameter(parse=False)]
        for name, hint in type_hints(AdaptOptions).items()
    }
    BatchSizeOptions = make_dataclass(
        "BatchSizeOptions",
        [(field.name, HINTS[field.name], field.default) for field in fields(AdaptOptions)],
        bases=(AdaptOptions,),
        namespace={"__module__": __name__},
        frozen=True,
        kw_only=True,
    )
