"""Where the heads of a real model look: its attention maps on one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.report.charts import small_multiples
from heedful.report.page import Page

Facts = dict[str, Any]
MODEL = "minilm"
SENTENCE = "I read your piece about stray cats with great interest."


def add_heads(page: Page) -> list[Facts]:
    """Add maps of MiniLM's own attention on a letter: of each habit, the head that has most of it."""
    pieces, maps = read_maps(SENTENCE)
    n_layers, n_heads = maps.shape[:2]
    facts: list[Facts] = []
    panels = {}
    for habit, weights in measure_habits(maps).items():
        layer, head = np.unravel_index(int(weights.argmax()), weights.shape)
        share = float(weights[layer, head])
        name = f"{habit}: layer {layer + 1}, head {head + 1}"
        panels[name] = maps[layer, head].tolist()
        facts.append({"habit": habit, "layer": int(layer + 1), "head": int(head + 1), "weight": share})
    page.section("Where a real model looks")
    page.text(
        f"MiniLM has {n_layers} layers of {n_heads} heads. Each head decides for every token of the letter "
        "from which tokens it takes information; a row of a map is one token, and sums to one. Nobody told "
        "the heads what to do: these habits were learned."
    )
    chart = small_multiples(
        panels,
        x_labels=pieces,
        y_labels=pieces,
        title="Attention of MiniLM",
        subtitle=f'reading "{SENTENCE}"',
        x_title="looks at",
        y_title="token",
        value_title="weight",
        domain=(0, 1),
        columns=2,
    )
    page.figure(chart, "For each habit, the head that has most of it.", "heads")
    return facts


def read_maps(text: str) -> tuple[list[str], Any]:
    """Return the tokens of a text, and MiniLM's attention weights [layers, heads, t, t]."""
    import torch

    from heedful.attention import Mechanism
    from heedful.checkpoints import load
    from heedful.text import load as load_tokenizer

    tokenizer, model = load_tokenizer(MODEL), load(MODEL)
    ids = tokenizer.encode(text).ids
    maps: list[torch.Tensor] = []

    def keep(mechanism: Mechanism, inputs: tuple[Any, ...], out: torch.Tensor) -> None:
        q, k, _, mask, bias = inputs
        maps.append(mechanism.weights(q, k, mask, bias)[0])

    hooks = [m.register_forward_hook(keep) for m in model.modules() if isinstance(m, Mechanism)]
    try:
        with torch.inference_mode():
            model(torch.tensor([ids]))
    finally:
        for hook in hooks:
            hook.remove()
    return tokenizer.pieces(ids), torch.stack(maps).numpy()


def measure_habits(maps: Any) -> dict[str, Any]:
    """Return the mean weight [layers, heads] of each habit, over the tokens between the two marks."""
    words = maps[..., 1:-1, 1:-1]
    far = np.triu(words, 2) + np.tril(words, -2)
    return {
        "the one before": np.diagonal(maps, -1, axis1=-2, axis2=-1)[..., :-1].mean(-1),
        "the next": np.diagonal(maps, 1, axis1=-2, axis2=-1)[..., 1:].mean(-1),
        "the beginning": maps[..., 1:-1, 0].mean(-1),
        "distant words": far.sum(-1).mean(-1),
    }
