"""Heads on a body: classification, masked language modeling, language modeling."""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from heedful.attention.dropout import Dropout
from heedful.errors import UserError, unknown
from heedful.models.blocks import Cache, activate
from heedful.models.bodies import BODIES, Decoder, Encoder, EncoderDecoder, initialize
from heedful.models.config import TransformerConfig
from heedful.runs.memory import require_memory

Head = Literal["classify", "masked", "causal", "text2text"]
HeadForm = Literal["family", "linear", "ordinal"]
HEADS: dict[str, tuple[str, ...]] = {
    "classify": ("encoder", "decoder", "encoder_decoder"),
    "masked": ("encoder",),
    "causal": ("decoder",),
    "text2text": ("encoder_decoder",),
}


class LinearHead(nn.Module):
    """Dropout and one linear layer: d n + n parameters, or d n without a bias."""

    def __init__(self, config: TransformerConfig, n_classes: int, bias: bool = True) -> None:
        super().__init__()
        self.dropout = Dropout(config.head_dropout)
        self.out = nn.Linear(config.pooled_width, n_classes, bias=bias)

    def forward(self, pooled: Tensor) -> Tensor:
        logits: Tensor = self.out(self.dropout(pooled))
        return logits


class DenseHead(nn.Module):
    """A dense layer before the linear one: d^2 + d + d n + n parameters.

    With tanh between them (RoBERTa, T5) there is dropout before both layers, with ReLU (DistilBERT) only
    before the second.
    """

    def __init__(self, config: TransformerConfig, n_classes: int) -> None:
        super().__init__()
        self.relu = config.classifier == "relu"
        self.before = Dropout(0.0 if self.relu else config.head_dropout)
        self.dense = nn.Linear(config.pooled_width, config.d_model)
        self.dropout = Dropout(config.head_dropout)
        self.out = nn.Linear(config.d_model, n_classes)

    def forward(self, pooled: Tensor) -> Tensor:
        hidden = self.dense(self.before(pooled))
        hidden = torch.relu(hidden) if self.relu else torch.tanh(hidden)
        logits: Tensor = self.out(self.dropout(hidden))
        return logits


class OrdinalHead(nn.Module):
    """Cumulative link (McCullagh 1980): a score, and ordered thresholds between n classes.

    It has d + n - 1 parameters.
    A class is at most k with the probability sigmoid(threshold k - score). The outputs are the logarithms of
    the probabilities of the classes, so that their softmax and cross-entropy are those of this model.
    """

    def __init__(self, config: TransformerConfig, n_classes: int) -> None:
        super().__init__()
        self.dropout = Dropout(config.head_dropout)
        self.out = nn.Linear(config.pooled_width, 1, bias=False)
        self.cuts = nn.Parameter(torch.empty(n_classes - 1))
        """The first threshold, and the logarithms of the distances to the next ones."""
        shares = torch.arange(1, n_classes, dtype=torch.float64) / n_classes
        self.set_thresholds(torch.logit(shares))

    def set_thresholds(self, thresholds: Tensor) -> None:
        with torch.no_grad():
            self.cuts[0] = thresholds[0]
            self.cuts[1:] = torch.log(thresholds.diff())

    def forward(self, pooled: Tensor) -> Tensor:
        score: Tensor = self.out(self.dropout(pooled))  # [b, 1]
        gaps = self.cuts[1:].exp()
        thresholds = self.cuts[0] + nn.functional.pad(gaps.cumsum(0), (1, 0))  # [n - 1]
        below = thresholds - score  # [b, n - 1]
        last = nn.functional.logsigmoid(-below[:, -1:])
        between = nn.functional.logsigmoid(below[:, 1:]) + nn.functional.logsigmoid(-below[:, :-1])
        between = between + torch.log(-torch.expm1(-gaps))  # sigmoid(a) - sigmoid(b), without cancellation
        return torch.cat([nn.functional.logsigmoid(below[:, :1]), between, last], 1)


class MaskedHead(nn.Module):
    """Dense layer, non-linearity, norm and the output layer (BERT, DistilBERT and RoBERTa agree on it)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps)
        self.out = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, states: Tensor) -> Tensor:
        """Turn states [..., d_model] into logits [..., vocab_size]; any selection of positions will do."""
        logits: Tensor = self.out(self.features(states))
        return logits

    def features(self, states: Tensor) -> Tensor:
        read: Tensor = self.norm(activate(self.activation, self.dense(states)))
        return read


class OutputHead(nn.Module):
    """One linear layer without bias onto the vocabulary (GPT-2, T5)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.scale = config.output_scale
        self.out = nn.Linear(config.d_model, config.vocab_size, bias=False)

    def forward(self, states: Tensor) -> Tensor:
        logits: Tensor = self.out(self.features(states))
        return logits

    def features(self, states: Tensor) -> Tensor:
        return states if self.scale == 1.0 else states * self.scale


class Headed(nn.Module):
    body: Encoder | Decoder | EncoderDecoder
    kind: str
    report: Any = None
    """What reading a checkpoint did (`heedful.checkpoints.LoadReport`)."""
    trained_length: int | None = None
    """The largest number of tokens per text in training, where the model has room for more."""
    method: Any = None
    """The method that is attached (`heedful.methods.Method`), if one is."""

    @property
    def config(self) -> TransformerConfig:
        return self.body.config


class Classifier(Headed):
    """Predicts a class for each text, from one pooled state."""

    kind = "classify"
    words: Any = None
    """A linear model of words (`heedful.linear.model.TfidfModel`), whose logits are added to these."""
    problem_type: str | None = None
    """What the outputs mean, in transformers' words: "multi_label_classification" (a logit per label, each
    for itself), "regression" (a number), or None for one label per text."""
    thresholds: list[float] | None = None
    """With several labels per text, the probability from which each is predicted."""
    in_own_unit: bool = True
    """Whether a number is in its own unit, and not yet in standard deviations from its mean."""

    def __init__(
        self, body: Encoder | Decoder | EncoderDecoder, n_classes: int = 2, form: HeadForm = "family"
    ) -> None:
        super().__init__()
        config = body.config
        self.body, self.n_classes, self.form = body, n_classes, form
        self.labels = [f"LABEL_{i}" for i in range(n_classes)]
        if form == "family" and config.classifier in ("tanh", "relu"):
            self.head: LinearHead | DenseHead | OrdinalHead = DenseHead(config, n_classes)
        elif form == "ordinal":
            self.head = OrdinalHead(config, n_classes)
        else:
            self.head = LinearHead(config, n_classes, form == "linear" or config.classifier != "unbiased")
        initialize(self.head, config.replace(norm_place="post"))

    @property
    def has_bias(self) -> bool:
        return self.head.out.bias is not None

    def add_to_bias(self, correction: Tensor) -> None:
        """Add a number to the logit of each class, for good."""
        with torch.no_grad():
            self.head.out.bias.add_(correction.to(self.head.out.bias))

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        logits: Tensor = self.head(self.body.pooled(input_ids, attention_mask, token_type_ids))
        return logits


class LanguageModel(Headed):
    """Predicts a distribution over the vocabulary for each position: masked, causal or text to text."""

    def __init__(self, body: Encoder | Decoder | EncoderDecoder, kind: str) -> None:
        super().__init__()
        config = body.config
        self.body, self.kind = body, kind
        self.head = MaskedHead(config) if kind == "masked" else OutputHead(config)
        initialize(self.head, config.replace(norm_place="post"))
        if config.tie_output:
            self.head.out.weight = body.embed.tokens.weight

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **more: Any,
    ) -> Tensor:
        logits: Tensor = self.head(self.body(input_ids, attention_mask, token_type_ids, **more))
        return logits

    def step(
        self, ids: Tensor, cache: Cache, attention_mask: Tensor | None = None, context: Tensor | None = None
    ) -> Tensor:
        """Logits [b, t, vocab_size] of the next tokens `ids`, remembering them in `cache`.

        An encoder-decoder also takes `context`, its encoder's states, with their `attention_mask`.
        """
        if isinstance(self.body, EncoderDecoder):
            assert context is not None
            states = self.body.decode(ids, context, attention_mask, cache)
        else:
            states = self.body(ids, attention_mask, cache=cache)
        logits: Tensor = self.head(states)
        return logits


Model = Encoder | Decoder | EncoderDecoder | Classifier | LanguageModel


def with_article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind.replace('_', '-')}"


def build(
    config: TransformerConfig, head: str | None = None, n_classes: int = 2, head_form: HeadForm = "family"
) -> Model:
    if head is not None and head not in HEADS:
        raise unknown("head", head, HEADS)
    if head is not None and config.kind not in HEADS[head]:
        kinds, kind = (with_article(k) for k in (" or ".join(HEADS[head]), config.kind))
        raise UserError(f'head "{head}" needs {kinds}; this is {kind}')
    if head_form not in get_args(HeadForm):
        raise unknown("head form", head_form, get_args(HeadForm))
    if not isinstance(n_classes, int) or n_classes < (2 if head_form == "ordinal" else 1):
        raise UserError(f"a classifier needs at least 2 classes (a number needs 1 output), not {n_classes}")
    refuse_large(config, n_classes)
    body = BODIES[config.kind](config)
    if head is None:
        return body
    if head == "classify":
        return Classifier(body, n_classes, head_form)
    return LanguageModel(body, head)


def refuse_large(config: TransformerConfig, n_classes: int) -> None:
    """Refuse a model that does not fit into memory, unless it is built without any."""
    if torch.empty(0).device.type == "meta":
        return
    needed = 4 * (config.approximate_parameters() + float(n_classes) * config.d_model)
    sizes = (
        f"{config.n_layers:,} layers of width {config.d_model:,} and a vocabulary of {config.vocab_size:,}"
    )
    require_memory(needed, f"a model with {sizes}")
