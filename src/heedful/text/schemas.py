"""The fields of a tokenizer's JSON files that heedful reads, with their types and bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta

Text = Annotated[str, Meta(max_length=10_000)]
Token = Text | dict[str, Any] | None
"""A special token: its text, or an object with its content."""
TokenId = Annotated[int, Meta(ge=0, lt=2**31)]
TokenNumber = Annotated[str, Meta(pattern=r"^[0-9]{1,10}$")]
Tokens = Annotated[list[Token], Meta(max_length=1_000_000)] | dict[str, Token]
AddedTokens = dict[Text, TokenId]


@dataclass(frozen=True)
class NamesFamily:
    """config.json, as far as a tokenizer needs it."""

    model_type: Text | None = None


@dataclass(frozen=True)
class TokenizerSettings:
    """tokenizer_config.json and special_tokens_map.json."""

    tokenizer_class: Text | None = None
    pad_token: Token = None
    unk_token: Token = None
    bos_token: Token = None
    eos_token: Token = None
    cls_token: Token = None
    sep_token: Token = None
    mask_token: Token = None
    additional_special_tokens: Tokens | None = None
    extra_special_tokens: Tokens | None = None
    added_tokens_decoder: dict[TokenNumber, Token] | None = None
    do_lower_case: bool | None = None
    strip_accents: bool | None = None
    tokenize_chinese_chars: bool | None = None
    extra_ids: Annotated[int, Meta(ge=0, le=100_000)] = 100
