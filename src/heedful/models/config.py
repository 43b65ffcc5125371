"""One frozen description of a Transformer, from which the whole model is built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, Literal, get_args, get_origin

from heedful.errors import UserError, unknown
from heedful.options.types import Bounds, Rate, Share
from heedful.options.values import convert_value, type_hints

Kind = Literal["encoder", "decoder", "encoder_decoder"]
Position = Literal["learned", "sinusoidal", "rotary", "relative"]
Activation = Literal["gelu", "gelu_tanh", "relu", "squared_relu", "gated_gelu"]
DROPOUTS = (
    "dropout", "attention_dropout", "embed_dropout", "ff_dropout", "final_dropout", "attention_output_dropout"
)  # fmt: skip
"""The dropouts of the body; the classification head has its own."""
Size = Annotated[int, Bounds(least=1, cap=2**31)]
SizeOrNone = Annotated[int, Bounds(least=0, cap=2**31)]
"""0 stands for no such part, or for a size that follows from the others."""
Layers = Annotated[int, Bounds(least=1, cap=10_000)]
TokenId = Annotated[int, Bounds(floor=-(2**31), cap=2**31)]
Factor = Annotated[float, Bounds(floor=-1e9, cap=1e9)]
Projections = Literal["separate", "shared_qk", "shared_qkv"]


@dataclass(frozen=True, kw_only=True)
class TransformerConfig:
    """Sizes and choices. `family` names the checkpoint table that reads and writes the model."""

    kind: Kind
    vocab_size: Size
    d_model: Size
    n_layers: Layers
    n_heads: Size
    d_ff: Size
    max_len: Size
    family: str = "heedful"
    d_head: SizeOrNone = 0
    """Width of a head; 0 means d_model / n_heads."""
    n_decoder_layers: Annotated[int, Bounds(least=0, cap=10_000)] = 0
    """For an encoder-decoder; 0 means n_layers."""

    position: Position = "learned"
    position_offset: SizeOrNone = 0
    """Rows of the position table before the first real one (RoBERTa: pad_id + 1)."""
    relative_buckets: Annotated[int, Bounds(least=4, cap=2**31)] = 32
    relative_max_distance: Size = 128
    n_types: SizeOrNone = 0
    embed_norm: bool = False
    pooler: bool = False
    """A dense layer and tanh on the first token's state: part of BERT's body."""
    pool: Literal["first", "mean", "apart"] = "first"
    """What an encoder gives a classifier: the first token's state, the mean over all tokens of a text, or a
    comparison of the two texts of a pair, each of which is read by itself."""

    classifier: Literal["linear", "unbiased", "tanh", "relu"] = "linear"
    """The family's classification head: one linear layer, with or without a bias, or a dense layer with this
    non-linearity before it."""

    norm: Literal["layer", "rms"] = "layer"
    norm_place: Literal["pre", "post"] = "pre"
    norm_eps: Rate = 1e-5
    activation: Activation = "gelu"
    bias: bool = True
    """Whether linear layers have biases."""
    tie_output: bool = True
    output_scale: Factor = 1.0
    """Factor on the states before the output layer (T5 1.0: d_model ** -0.5)."""

    attention: str = "softmax"
    attention_options: Mapping[str, Any] = field(default_factory=dict)
    projections: Projections = "separate"
    scale: Factor | None = None
    """The factor of the attention scores; None means d_head ** -0.5 (T5: 1)."""
    qk_norm: bool = False

    dropout: Share = 0.1
    """On the output of feed-forward, and of attention unless `attention_output_dropout` says otherwise."""
    attention_output_dropout: Share | None = None
    attention_dropout: Share = 0.1
    """On the attention weights."""
    embed_dropout: Share = 0.1
    ff_dropout: Share = 0.0
    """Between the two layers of the feed-forward."""
    final_dropout: Share = 0.0
    """After the final norm."""
    head_dropout: Share = 0.1

    pad_id: TokenId | None = 0
    bos_id: TokenId | None = None
    eos_id: TokenId | None = None
    start_id: TokenId | None = None
    """First token of an encoder-decoder's output."""
    init_std: Rate = 0.02

    def __post_init__(self) -> None:
        for name, hint in type_hints(type(self)).items():
            value = getattr(self, name)
            if get_origin(hint) is Literal and value not in get_args(hint):
                raise unknown(name, str(value), get_args(hint))
            convert_value(hint, value, name)
        if self.d_head == 0:
            if self.d_model % self.n_heads:
                raise UserError(f"d_model {self.d_model} is not a multiple of n_heads {self.n_heads}")
            object.__setattr__(self, "d_head", self.d_model // self.n_heads)
        if self.kind == "encoder_decoder" and self.n_decoder_layers == 0:
            object.__setattr__(self, "n_decoder_layers", self.n_layers)
        if self.position == "rotary" and self.d_head % 2:
            raise UserError(f"rotary positions need an even d_head, not {self.d_head}")
        if self.pool != "first":
            if self.kind != "encoder":
                raise UserError(f"pool {self.pool} is for encoders; {self.kind} has a place of its own")
            object.__setattr__(self, "pooler", False)  # it was trained on the first token
        if self.pool == "apart" and self.n_types < 2:
            raise UserError(
                f"pool apart tells the texts of a pair apart by token types, which {self.family} has not"
            )
        object.__setattr__(self, "attention_options", dict(self.attention_options))

    def approximate_parameters(self) -> float:
        """Return about how many parameters the body has, from its sizes alone."""
        attention = 4.0 * self.d_model * self.n_heads * self.d_head
        feed_forward = 2.0 * self.d_model * self.d_ff
        rows = float(self.vocab_size + self.n_types)
        if self.position == "learned":
            rows += self.max_len
        layers = self.n_layers + (2 if self.kind == "encoder_decoder" else 0) * self.n_decoder_layers
        return layers * (attention + feed_forward) + rows * self.d_model

    @property
    def pooled_width(self) -> int:
        """The number of values that a body gives to a classification head."""
        return 2 * self.d_model + 1 if self.pool == "apart" else self.d_model

    def replace(self, **changes: Any) -> TransformerConfig:
        """Return a copy with other values; an unknown field is an error that lists the nearest."""
        names = {f.name for f in fields(self)}
        for name in changes:
            if name not in names:
                raise unknown("model option", name, names)
        return replace(self, **changes)

    def with_dropout(self, p: float) -> TransformerConfig:
        """Return a copy with dropout p wherever the body has some; if nowhere, in the usual three places."""
        used = [name for name in DROPOUTS if getattr(self, name)]
        return self.replace(**dict.fromkeys(used or DROPOUTS[:3], p))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TransformerConfig:
        """The inverse of `to_dict`; a missing or unknown field is a one-line error."""
        names = {f.name for f in fields(cls)}
        for name in values:
            if name not in names:
                raise unknown("model option", name, names)
        try:
            return cls(**values)
        except TypeError:
            needed = ("kind", "vocab_size", "d_model", "n_layers", "n_heads", "d_ff", "max_len")
            missing = [name for name in needed if name not in values]
            raise UserError(f"the model's configuration lacks {', '.join(missing)}") from None
