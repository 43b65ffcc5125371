"""Models from nothing, by name."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.models.config import TransformerConfig


@dataclass(frozen=True)
class Preset:
    config: TransformerConfig
    about: str


def bert(n_layers: int, d_model: int, n_heads: int, d_ff: int) -> TransformerConfig:
    return TransformerConfig(
        kind="encoder", family="bert", vocab_size=30522, d_model=d_model, n_layers=n_layers, n_heads=n_heads,
        d_ff=d_ff, max_len=512, n_types=2, embed_norm=True, pooler=True, norm_place="post", norm_eps=1e-12,
    )  # fmt: skip


def gpt(n_layers: int, d_model: int, n_heads: int, max_len: int, vocab_size: int) -> TransformerConfig:
    """The classic decoder (Radford et al. 2018): learned positions, pre-norm, exact GELU, output not tied."""
    return TransformerConfig(
        kind="decoder", family="gpt2", vocab_size=vocab_size, d_model=d_model, n_layers=n_layers,
        n_heads=n_heads, d_ff=4 * d_model, max_len=max_len, tie_output=False, head_dropout=0.0, pad_id=None,
        classifier="unbiased",
    )  # fmt: skip


def t5(n_layers: int, d_model: int, n_heads: int, d_ff: int) -> TransformerConfig:
    """T5 1.1's form (Raffel et al. 2020; gated GELU, output not tied) in another size."""
    return TransformerConfig(
        kind="encoder_decoder", family="t5", vocab_size=32128, d_model=d_model, n_layers=n_layers,
        n_heads=n_heads, d_ff=d_ff, max_len=512, position="relative", norm="rms", norm_eps=1e-6,
        activation="gated_gelu", bias=False, tie_output=False, scale=1.0, ff_dropout=0.1, final_dropout=0.1,
        head_dropout=0.0, eos_id=1, start_id=0, classifier="tanh",
    )  # fmt: skip


PRESETS = {
    "bert-tiny": Preset(bert(2, 128, 2, 512), "BERT's form, the smallest that learns"),
    "bert-mini": Preset(bert(4, 256, 4, 1024), "BERT's form (Turc et al. 2019)"),
    "bert-small": Preset(bert(4, 512, 8, 2048), "BERT's form (Turc et al. 2019)"),
    "tinybert": Preset(bert(4, 312, 12, 1200), "BERT's form in TinyBERT's size (Jiao et al. 2020)"),
    "char-gpt": Preset(gpt(4, 256, 8, 128, 256), "classic decoder for characters or bytes"),
    "gpt-nano": Preset(gpt(3, 48, 3, 1024, 50257), "classic decoder, the smallest"),
    "gpt-micro": Preset(gpt(4, 128, 4, 1024, 50257), "classic decoder, small"),
    "modern-gpt": Preset(
        TransformerConfig(
            kind="decoder", vocab_size=8192, d_model=256, n_layers=6, n_heads=4, d_ff=1024, max_len=512,
            position="rotary", norm="rms", activation="squared_relu", bias=False, qk_norm=True, dropout=0.0,
            attention_dropout=0.0, embed_dropout=0.0, pad_id=None,
        ),
        "rotary positions, RMSNorm, squared ReLU, q/k norm, no dropout",
    ),
    "t5-mini": Preset(t5(4, 256, 4, 512), "T5 1.1's form"),
}  # fmt: skip
