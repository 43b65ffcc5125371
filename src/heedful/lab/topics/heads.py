"""What each head of a model attends to, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch

from heedful.errors import UserError
from heedful.lab import head_maps
from heedful.lab.arrays import Array
from heedful.lab.base import Finding, Table, at_least, at_most, exactly, fact
from heedful.lab.head_maps import find_mechanisms, remove_head
from heedful.report.charts import small_multiples
from heedful.report.charts.heat_maps import choose_columns
from heedful.report.charts.token_links import token_links

CELLS = 200_000
"""The most weights that a page can show and a reader can see."""


@dataclass(frozen=True)
class HeadsResults:
    """The numbers of every layer and head, [layers, heads] unless stated."""

    tokens: list[str]
    layers: list[int]
    """Which layers were looked at, counted from 1."""
    weights: Array = field(repr=False)
    """[layers, heads, t, s]"""
    entropy: Array
    distance: Array
    change: Array
    """|output without the head - output| / |output|, over all tokens."""
    cosine: Array
    """The cosine of the text's vector (mean state, or next token's logits) with and without the head."""


def heads(
    text: str = "The cat sat on the mat because it was tired.",
    /,
    *,
    model: str = "minilm",
    layers: tuple[int, ...] | None = None,
) -> Finding[HeadsResults]:
    """What each head of a model attends to in your text, and what changes without it.

    The maps are those of the model's own attention while it reads the text.
    A head is removed by setting its output to zero; the rest stays as it is.
    An .html figure is a page on which hovering over a token shows what it
    attends to, in the layer and head that you choose.

    Examples:
      heedful lab heads "The trophy does not fit the case because it is too big." --figure heads.html
      heedful lab heads --model gpt2 --layers 1 5 --json
      heedful lab heads --model runs/my-run

    Parameters
    ----------
    text
        What the model reads.
    model
        An encoder or a decoder with its tokenizer: minilm, a folder in Hub form, a run's folder, or a Hub id.
    layers
        Layers to show, counted from 1. By default all.
    """
    reading = head_maps.read_text(model, text)
    mechanisms = find_mechanisms(reading.model, model)
    chosen = range(len(mechanisms)) if layers is None else [n - 1 for n in dict.fromkeys(layers)]
    if not chosen or any(not 0 <= n < len(mechanisms) for n in chosen):
        raise UserError(f"layers are from 1 to {len(mechanisms)}, not {', '.join(map(str, layers or ()))}")
    n_heads, t = mechanisms[0].n_heads, len(reading.pieces)
    if (cells := len(chosen) * n_heads * t * t) > CELLS:
        raise UserError(
            f"{t} tokens in {len(chosen) * n_heads} heads make {cells:,} weights; "
            f"up to {CELLS:,} can be shown: a shorter text, or --layers 1"
        )
    whole, seen = head_maps.record_maps(reading)
    weights = torch.stack([seen[n].weights for n in chosen]).double().numpy()
    before = reading.outputs()
    change, cosine = np.zeros((2, len(chosen), n_heads))
    for row, n in enumerate(chosen):
        for head in range(n_heads):
            with remove_head(mechanisms[n], head):
                without = reading.outputs()
            change[row, head] = float((without - before).norm() / before.norm())
            one, other = reading.pooled(without).double(), reading.pooled(before).double()
            cosine[row, head] = float(torch.cosine_similarity(one, other, dim=0))
    after = reading.outputs()
    spread, far = head_maps.entropy(weights), head_maps.distance(weights)
    names = {(row, h): f"layer {n + 1}, head {h + 1}" for row, n in enumerate(chosen) for h in range(n_heads)}
    most, least = (divmod(int(f(change)), n_heads) for f in (np.argmax, np.argmin))
    maps = {name: weights[at].tolist() for at, name in names.items()}
    quoted = f'"{" ".join(reading.pieces)}"'
    return Finding(
        topic="heads",
        claim="heads attend to different things, and the output leans on some far more than on others",
        construction=(
            f"model = {model}, {mechanisms[0].name} attention, scale = {mechanisms[0].scale:.6g}; "
            f"{t} tokens: {quoted}",
            "entropy = mean over tokens of -sum w ln w, in nats: 0 is one token, "
            f"ln {t} = {np.log(t):.4f} all alike",
            "distance = mean over tokens of sum w |t - s|, in tokens",
            f"removed: the head's output is zero; change = |difference| / |output| of the {reading.output}",
        ),
        numbers=(
            at_most("sums of the maps' rows: distance from 1", np.abs(weights.sum(-1) - 1).max(), 1e-5),
            at_most("maps times values: distance from what the layers computed",
                    max(s.apart for s in seen), 1e-4),
            exactly("watched: numbers that differ", int((whole != before).sum()), 0),
            exactly("removed and restored: numbers that differ", int((after != before).sum()), 0),
            at_least(f"largest change, {names[most]}", change.max(), 1e-6),
            fact(f"smallest change, {names[least]}", change.min()),
            fact("smallest entropy of a head", spread.min()),
            fact("largest entropy of a head", spread.max()),
        ),
        results=HeadsResults(
            reading.pieces, [n + 1 for n in chosen], weights, spread, far, change, cosine
        ),
        figure=small_multiples(
            maps,
            x_labels=reading.pieces,
            y_labels=reading.pieces,
            x_title="attended to",
            y_title="token",
            value_title="weight",
            title=f"What {n_heads * len(chosen)} heads of {model} attend to",
            subtitle="each row sums to 1",
            domain=(0, 1),
            columns=choose_columns(n_heads),
        ),
        interactive=token_links(
            maps,
            labels=reading.pieces,
            title="Put the pointer on a token: what it attends to",
            subtitle="left: the token; right: what it attends to, and how much (without a pointer: the mean)",
            choice="layer and head",
        ),
        tables=(
            Table(("head", "attends most to", "weight", "entropy", "distance", "change without it", "cosine"),
                  tuple((name, *preference(weights[at]), spread[at], far[at], change[at], cosine[at])
                        for at, name in names.items()),
                  "heads"),
        ),
    )  # fmt: skip


def preference(weights: Array) -> tuple[str, float]:
    return max(head_maps.mean_weights(weights).items(), key=lambda item: item[1])
