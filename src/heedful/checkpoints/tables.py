"""What a family declares: how its tensors and configuration map to ours, read in both directions, and more.

Importing this module and the families' files imports no torch, so that tokenizers load without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError, shorten
from heedful.models.config import TransformerConfig
from heedful.text.tokenizer_forms import TokenizerForm

if TYPE_CHECKING:
    from torch import Tensor

REQUIRED = object()
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_tanh", "relu": "relu"}
SAME_ACTIVATION = {"gelu_pytorch_tanh": "gelu_new", "gelu_fast": "gelu_new"}


@dataclass(frozen=True)
class Row:
    """One of their tensors and one or several of ours, stacked along the first dimension."""

    theirs: str
    ours: tuple[str, ...]
    transpose: bool = False

    def with_prefix(self, prefix: str) -> Row:
        return replace(self, ours=tuple(prefix + name for name in self.ours))

    def read(self, tensor: Tensor) -> dict[str, Tensor]:
        tensor = tensor.T if self.transpose and tensor.dim() == 2 else tensor
        return dict(zip(self.ours, tensor.chunk(len(self.ours)), strict=True))

    def write(self, ours: Mapping[str, Tensor]) -> Tensor:
        import torch

        tensor = torch.cat([ours[name] for name in self.ours])
        return (tensor.T if self.transpose and tensor.dim() == 2 else tensor).contiguous()


def weight(theirs: str, *ours: str) -> list[Row]:
    """Return the row of a single weight: embeddings, RMSNorm, linear layers without bias."""
    return [Row(f"{theirs}.weight", tuple(f"{name}.weight" for name in ours))]


def pair(theirs: str, *ours: str, transpose: bool = False) -> list[Row]:
    return [
        Row(f"{theirs}.{part}", tuple(f"{name}.{part}" for name in ours), transpose)
        for part in ("weight", "bias")
    ]


def layers(rows: list[Row], count: int) -> list[Row]:
    """Repeat the rows of one layer for each layer: `{i}` is its number."""
    return [
        Row(r.theirs.format(i=i), tuple(name.format(i=i) for name in r.ours), r.transpose)
        for i in range(count)
        for r in rows
    ]


@dataclass(frozen=True)
class Field:
    """One of their configuration fields and ours; `values` translates, where the words differ."""

    theirs: str
    ours: str
    default: Any = REQUIRED
    values: Mapping[Any, Any] = field(default_factory=dict)


def fields(*names: str, default: Any = REQUIRED) -> list[Field]:
    """Return fields with the same default, each as `theirs=ours`, or as one name where they agree."""
    return [Field(name.partition("=")[0], name.rpartition("=")[2], default) for name in names]


@dataclass(frozen=True)
class Family:
    """Everything that is special about one family of checkpoints."""

    name: str
    rows: Callable[[TransformerConfig], list[Row]]
    """The body's tensors, without their prefix."""
    heads: Mapping[str, list[Row]]
    """For each head, its tensors; of ours, relative to the whole model."""
    classes: Mapping[str | None, str]
    """The transformers class for each head."""
    prefixes: Mapping[str | None, str]
    """The prefix of the body's tensors in that class."""
    fields: tuple[Field, ...]
    fixed: Mapping[str, Any]
    """What is true of every model of the family."""
    layer: re.Pattern[str]
    """Matches tensors inside a layer, where an unknown one is an error."""
    ignored: re.Pattern[str]
    """Buffers, copies of tied tensors, heads of other tasks."""
    refused: Mapping[str, Any] = field(default_factory=dict)
    """Values their configuration must have where it has the field, because we compute nothing else."""
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    """Second names of tensors."""
    pooled: frozenset[str | None] = frozenset()
    """The heads whose class has BERT's pooler in its body."""
    output: str = ""
    """The output layer whose values say whether it is tied, where configurations do not tell the truth."""
    tokenizer: TokenizerForm | None = None
    """How its tokenizer splits and frames text."""
    peft_refusals: Mapping[str, str] = field(default_factory=dict)
    """Methods whose adapters peft cannot hold for this family, each with the reason."""
    finish_read: Callable[[dict[str, Any], Mapping[str, Any]], None] | None = None
    finish_write: Callable[[dict[str, Any], TransformerConfig], None] | None = None

    def canonical_name(self, name: str) -> str:
        """Return their name in today's form and without the class's prefix."""
        name = re.sub(r"\.gamma$", ".weight", re.sub(r"\.beta$", ".bias", name))
        for prefix in sorted(set(self.prefixes.values()), key=len, reverse=True):
            if prefix and name.startswith(prefix):
                return name[len(prefix) :]
        return name

    def ties_output(self, config: TransformerConfig, tensors: Mapping[str, Tensor]) -> bool:
        import torch

        if self.output not in tensors:
            return config.tie_output
        return torch.equal(tensors[self.output], tensors[self.rows(config)[0].theirs])

    def read_config(self, theirs: Mapping[str, Any], where: str) -> TransformerConfig:
        for name, wanted in self.refused.items():
            if name in theirs and theirs[name] != wanted:
                raise UserError(
                    f"{where}: {name} = {theirs[name]!r} is not supported for {self.name}; only {wanted!r}"
                )
        ours: dict[str, Any] = dict(self.fixed)
        for f in self.fields:
            value = theirs.get(f.theirs, f.default)
            if value is REQUIRED:
                raise UserError(f'{where}: has no "{f.theirs}", which {self.name} needs')
            if f.ours.endswith("_id") and isinstance(
                value, list
            ):  # several ends of a text, the first of which
                value = value[0] if value else None
            if f.values:
                value = SAME_ACTIVATION.get(value, value) if isinstance(value, str) else value
                if not isinstance(value, str) or value not in f.values:
                    supported = ", ".join(map(str, f.values))
                    raise UserError(
                        f"{where}: {f.theirs} = {value!r} is not supported for {self.name}; only {supported}"
                    )
                value = f.values[value]
            elif f.default is REQUIRED and (
                not isinstance(value, int) or isinstance(value, bool) or value < 1
            ):
                raise UserError(f"{where}: {f.theirs} = {value!r} is not a positive whole number")
            ours[f.ours] = value
        try:
            if self.finish_read is not None:
                self.finish_read(ours, theirs)
            return TransformerConfig(family=self.name, **ours)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        except (
            TypeError,
            OverflowError,
            ZeroDivisionError,
        ) as error:  # arithmetic with a value of another type
            raise UserError(f"{where}: is no configuration of {self.name} ({shorten(str(error))})") from None

    def write_config(self, config: TransformerConfig) -> dict[str, Any]:
        """Return our configuration as their config.json; raises an error where they have no word for it."""
        theirs: dict[str, Any] = {"model_type": self.name}
        for f in self.fields:
            value = getattr(config, f.ours)
            if f.values:
                words = {ours: word for word, ours in f.values.items()}
                if value not in words:
                    raise UserError(f"transformers' {self.name} has no {f.ours} = {value!r}")
                value = words[value]
            theirs[f.theirs] = value
        if self.finish_write is not None:
            self.finish_write(theirs, config)
        return theirs

    def own_facts(self) -> dict[str, Any]:
        """Return what a model in our own form needs besides our configuration; by default nothing."""
        return {}

    def why_not(self, config: TransformerConfig) -> str | None:
        """Return why transformers' class cannot compute this model, or None: our table read both ways."""
        try:
            back = self.read_config(self.write_config(config), "config.json").to_dict()
        except UserError as error:
            return str(error)
        for name, value in config.to_dict().items():
            if name != "pooler" and back[name] != value:
                return f"transformers' {self.name} has no {name} = {value!r}"
        return None
