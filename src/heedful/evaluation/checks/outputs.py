"""Checks of what a model computes: the future never reaches the past, and a saved model is the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from heedful.evaluation.checks.findings import percent
from heedful.models import Classifier, EncoderDecoder, LanguageModel, Model
from heedful.runs.schemas import Check

LENGTH = 32
CUTS = 8
LEAK_LIMIT = 5e-6
"""Of what a token does to later outputs. Safe mechanisms give exactly 0, one that takes the future out again
by a division 1e-6; the weakest leak, of `zero_after` in a new decoder of width 16, is 2e-5."""
RELOAD_LIMIT = 1e-5
"""A share of the largest logit. Merged adapters and kernels round differently, a lost weight does more."""


@torch.inference_mode(False)
@torch.enable_grad()
def causality(model: Model, *, length: int = LENGTH, seed: int = 0) -> Check:
    """Does a later token change an earlier output? For decoders, an encoder-decoder's included.

    On random ids, with and without padding: by changing all tokens after a position, and by the gradient
    of the outputs up to there to the embeddings after it. The model is left as it was.
    """
    name = "causality"
    body = model.body if isinstance(model, Classifier | LanguageModel) else model
    config, t = body.config, min(length, body.room)
    if config.kind == "encoder":
        return Check(name, "skipped", "An encoder reads a text as a whole: it has no past and future.")
    if t < 2 or config.vocab_size < 2:
        return Check(name, "skipped", "The model reads a single token: it has no past and future.")
    random = torch.Generator().manual_seed(seed)
    cuts = torch.linspace(0, t - 2, min(CUTS, t - 1)).long()  # the last position before the change
    past = torch.arange(t) <= cuts[:, None]  # [r, t]
    ids = torch.randint(config.vocab_size, (1, t), generator=random).expand(len(cuts), t)
    moved = torch.randint(1, config.vocab_size, past.shape, generator=random)
    changed = torch.where(past, ids, (ids + moved) % config.vocab_size)
    device = body.embed.tokens.weight.device
    ids, changed, past = ids.to(device), changed.to(device), past.to(device)

    modes = [(module, module.training) for module in body.modules()]
    body.eval()
    try:
        leaks = [
            measure_reach(forward, body.embed.tokens, ids, changed, past)
            for forward in list_passes(body, ids)
        ]
    finally:
        for module, mode in modes:
            module.training = mode
    by_change, by_gradient = (max(ways) for ways in zip(*leaks, strict=True))
    if not math.isfinite(sum(map(sum, leaks))):
        sentence = (
            "The model's outputs are not finite numbers or do not depend on its input; whether the future "
            "reaches the past cannot be told; look at the loss, and lower the learning rate."
        )
        return Check(name, "failed", sentence, None, LEAK_LIMIT)
    worst = max(by_change, by_gradient)
    if worst > LEAK_LIMIT:
        sentence = (
            f"The future leaks into the past of {config.attention} attention: later tokens move earlier "
            f"outputs by {percent(by_change)} of what they move later ones (by gradient "
            f"{percent(by_gradient)}); a model that sees what it should predict has a loss that means "
            f"nothing; use a mechanism with a causal mask."
        )
        return Check(name, "failed", sentence, worst, LEAK_LIMIT)
    sentence = f"No later token changes an earlier output of {config.attention} attention."
    return Check(name, "passed", sentence, worst, LEAK_LIMIT)


def list_passes(body: nn.Module, ids: Tensor) -> list[Callable[[Tensor], Tensor]]:
    """Return the functions by which a body turns ids [r, t] into states [r, t, d]."""
    if isinstance(body, EncoderDecoder):
        with torch.no_grad():
            context = body.encode(ids)
        return [lambda x: body.decode(x, context)]
    mask = torch.ones_like(ids)
    mask[:, ids.shape[1] * 3 // 4 :] = 0
    return [body, lambda x: body(x, mask)]


def measure_reach(
    forward: Callable[[Tensor], Tensor], embedding: nn.Module, ids: Tensor, changed: Tensor, past: Tensor
) -> tuple[float, float]:
    """Measure how far what comes after `past` reaches into it, by change and by gradient.

    Both are shares of what reaches where it may.
    """
    embedded: list[Tensor] = []

    def keep(module: nn.Module, inputs: object, out: Tensor) -> Tensor:
        embedded.append(out.detach().requires_grad_())
        return embedded[-1]

    hook = embedding.register_forward_hook(keep)
    try:
        # Both with gradients: without them another kernel might be chosen, which rounds in its own way.
        states, others = forward(ids), forward(changed)  # [r, t, d]
    finally:
        hook.remove()
    # Not a plain sum: that of a normalized state is constant, and has no gradient.
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(0)).to(states)
    (gradient,) = torch.autograd.grad((states * weights)[past].sum(), embedded[:1])
    return forbidden_share(states - others, past), forbidden_share(gradient, ~past)


def forbidden_share(reached: Tensor, forbidden: Tensor) -> float:
    """Compare the largest entry where nothing may reach with the largest elsewhere."""
    size = reached.detach().abs().amax(-1)  # [r, t]
    return float(size[forbidden].max() / size[~forbidden].max())


def reload(before: Tensor, after: Tensor) -> Check:
    """Does the saved model, loaded again, compute the same? Takes logits of the same texts."""
    name = "reload"
    loss = "what was saved is not the model that was scored; do not use it before this is understood"
    if before.shape != after.shape:
        shapes = f"{tuple(after.shape)}, not {tuple(before.shape)}"
        sentence = f"Saved and loaded, the model gives logits of shape {shapes}; {loss}."
        return Check(name, "failed", sentence)
    if not before.numel():
        return Check(name, "skipped", "There are no logits to compare.")
    old, new = before.detach().cpu().double(), after.detach().cpu().double()
    if not bool(old.isfinite().all() and new.isfinite().all()):
        sentence = "The logits are not finite numbers; the model has diverged; lower the learning rate."
        return Check(name, "failed", sentence)
    if torch.equal(old, new):
        sentence = "Saved and loaded, the model gives the same logits to the bit."
        return Check(name, "passed", sentence, 0.0, 0.0)
    difference, limit = float((old - new).abs().max()), RELOAD_LIMIT * max(1.0, float(old.abs().max()))
    if difference <= limit:
        sentence = f"Saved and loaded, the model gives the same logits up to rounding ({difference:.1e})."
        return Check(name, "passed", sentence, difference, limit)
    sentence = f"Saved and loaded, the model gives other logits, by up to {difference:.3g}; {loss}."
    return Check(name, "failed", sentence, difference, limit)
