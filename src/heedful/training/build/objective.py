"""What is learnt from plain text, by its options: causal, masked or span language modelling."""

from __future__ import annotations

from typing import Any

from heedful.data.corruption import find_salient
from heedful.errors import UserError
from heedful.evaluation.sentences import mechanism_of
from heedful.models import LanguageModel
from heedful.objectives import Causal, Corruption, Masked, Span
from heedful.options.training import PretrainOptions
from heedful.text import Tokenizer
from heedful.training.build.corpus import Texts

TextObjective = Causal | Masked | Span


def make_text(
    options: PretrainOptions, model: LanguageModel, tokenizer: Tokenizer, texts: Texts, block: int
) -> TextObjective:
    """The objective of these texts, to train or to score."""
    o, mechanism = options, mechanism_of(model)
    if o.objective == "span":
        return make_span(o, model, tokenizer, texts, block)
    if o.pack and not mechanism.segments:
        raise UserError(
            f"{mechanism.name} attention cannot keep packed documents apart; --no-pack gives each a row"
        )
    tokens = texts.tokens(tokenizer)
    common: dict[str, Any] = {"block": block, "together": o.pack, "seed": o.seed}
    if o.objective == "causal":
        return Causal(tokens, tokenizer, unsafe=mechanism.unsafe, **common)
    return Masked(tokens, tokenizer, rate=o.mask_rate, whole_words=o.whole_words, **common)


def make_span(
    options: PretrainOptions, model: LanguageModel, tokenizer: Tokenizer, texts: Texts, block: int
) -> Span:
    """Span corruption, of documents without special tokens."""
    o = options
    salient = None
    if o.salient is not None or o.span_form == "window":
        kinds = o.salient or "all"
        salient = {name: find_salient(own, tokenizer, kinds) for name, own in texts.splits.items()}
    return Span(
        texts.tokens(tokenizer, special=False),
        tokenizer,
        corruption=Corruption(o.span_form, o.span_loss, block, o.window_left, o.window_right),
        whole=model.kind == "text2text",
        unsafe=mechanism_of(model).unsafe,
        salient=salient,
        seed=o.seed,
    )
