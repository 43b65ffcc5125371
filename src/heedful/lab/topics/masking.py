"""Four ways to mask the future, two of which leak it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.attention import Mask
from heedful.lab.arrays import Array, compute_output, compute_weights
from heedful.lab.base import Finding, Number, Table, Vectors, at_least, at_most, exactly, fact
from heedful.lab.random_texts import HONEST, LENGTH, TOKENS, Guesses, learn
from heedful.lab.vectors import check_positive, check_vectors, choose_values, generate
from heedful.report.charts import small_multiples

BEFORE = "minus infinity before"
AFTER = "zero after"
RENORMALIZED = "zero after, renormalized"
SCORES = "zero scores before"
MASKS: dict[str, tuple[str, dict[str, Any]]] = {
    BEFORE: ("softmax", {}),
    AFTER: ("zero_after", {"unsafe": True}),
    RENORMALIZED: ("zero_after", {"unsafe": True, "renormalize": True}),
    SCORES: ("zero_scores", {"unsafe": True}),
}


@dataclass(frozen=True)
class MaskingResults:
    """What the future does to the past under each mask."""

    outputs: dict[str, Array]
    """[t, d]"""
    changes: dict[str, Array]
    """[t, s] how much output t changes (length of the difference) when position s becomes another."""
    leak: dict[str, float]
    """The largest of these with s after t."""
    row_sums: dict[str, Array]
    """[t] the sum of each row's weights."""
    guesses: dict[str, Guesses]
    """Losses of small trained models; empty if none was trained."""


def masking(
    keys: Vectors | None = None,
    values: Vectors | None = None,
    queries: Vectors | None = None,
    *,
    scale: float = 1.0,
    steps: int = 250,
    size: int = 8,
    width: int = 8,
    seed: int = 0,
) -> Finding[MaskingResults]:
    """Four ways to mask the future, and how much it still changes the past under each.

    Small models are trained on random tokens, where no honest loss can be
    below ln(tokens): what is below was read from the future. In use, where the
    future does not exist yet, such a model is worse than a guess.

    Examples:
      heedful lab masking
      heedful lab masking --keys keys.npy --values values.npy --steps 0
      heedful lab masking --size 12 --figure masking.svg

    Parameters
    ----------
    keys
        A vector for each position, one per row: a .npy file, or numbers like 1,0;0,1. By default generated.
    queries
        As many vectors as keys, and as wide. By default generated, with length about 1.
    steps
        Number of training steps of each of the four models; 0 trains none.
    size
        Number of positions to generate.
    """
    check_positive(scale=scale)
    q, k, v = choose_inputs(keys, values, queries, size, width, seed)
    t, d = k.shape
    others = (generate(t, d, seed, "other keys"), generate(t, v.shape[1], seed, "other values"))
    causal = Mask(causal=True)
    outputs, changes, sums = {}, {}, {}
    for name, (mechanism, options) in MASKS.items():
        outputs[name] = compute_output(q, k, v, mechanism, scale=scale, mask=causal, **options)
        changes[name] = measure_changes(q, k, v, others, mechanism, scale, **options)
        sums[name] = compute_weights(q, k, mechanism, scale=scale, mask=causal, **options).sum(-1)
    leak = {name: float(np.triu(change, 1).max()) for name, change in changes.items()}
    generated = keys is None and values is None and queries is None and t > 1
    trained = MASKS.items() if steps else ()
    guesses = {name: learn(mechanism, steps, seed, **options) for name, (mechanism, options) in trained}
    size_of_output = float(np.abs(outputs[BEFORE]).max())
    apart = float(np.abs(outputs[BEFORE] - outputs[RENORMALIZED]).max())
    numbers = [
        exactly(f"{BEFORE}: the future changes the past by at most", leak[BEFORE], 0),
        at_most(f"{RENORMALIZED}: the future changes the past by at most", leak[RENORMALIZED], 1e-12),
        at_most(f"{RENORMALIZED}: distance from {BEFORE}", apart, 1e-12 * max(1.0, size_of_output)),
        *(
            at_least(f"{name}: the future changes the past by up to", leak[name], 1e-2)
            if generated
            else fact(f"{name}: the future changes the past by up to", leak[name])
            for name in (AFTER, SCORES)
        ),
        fact(f"{AFTER}: smallest sum of a row's weights", sums[AFTER].min()),
        *verify(guesses),
    ]
    return Finding(
        topic="masking",
        claim="the future is hidden by minus infinity before the softmax, not by zeros before or after it",
        construction=(
            f"scores = scale q k^T, scale = {scale:g}; position t may see s <= t",
            "minus infinity before: softmax over the past alone",
            "zero after: softmax over all, then zeros; the future stays in the denominator",
            "zero after, renormalized: each row divided by its sum, which equals the first",
            "zero scores before: e^0 = 1 is a weight like any other; the future's values flow into the past",
            f"trained on random tokens of {TOKENS} kinds, {LENGTH} a text, no honest model has a loss below "
            f"ln {TOKENS} = {HONEST:.4f}",
        ),
        numbers=tuple(numbers),
        results=MaskingResults(outputs, changes, leak, sums, guesses),
        figure=small_multiples(
            {name: select_future(change) for name, change in changes.items()},
            x_labels=range(1, t + 1),
            y_labels=range(1, t + 1),
            x_title="changed position",
            y_title="output",
            value_title="change of the output",
            title="How much the future changes the past under four masks: it must be nothing",
            subtitle="one position's key and value become others: how far each earlier output moves; "
            "gray: not the future",
            columns=2,
        ),
        tables=(
            Table(("mask", "as in training", "in use, without a future", "a guess"),
                  tuple((name, g.whole, g.in_use, HONEST) for name, g in guesses.items()),
                  "trained on random tokens; loss on new texts"),
        )
        if guesses
        else (),
    )  # fmt: skip


def choose_inputs(
    keys: Vectors | None, values: Vectors | None, queries: Vectors | None, size: int, width: int, seed: int
) -> tuple[Array, Array, Array]:
    """Return a query, a key and a value for each position: the given ones, else generated ones."""
    k = generate(size, width, seed, "keys") if keys is None else check_vectors("keys", keys)
    t, d = k.shape
    v = choose_values(k, values, seed)
    if queries is None:
        return generate(t, d, seed, "queries") / d**0.5, k, v
    return check_vectors("queries", queries, count=t, width=d), k, v


def measure_changes(
    q: Array, k: Array, v: Array, others: tuple[Array, Array], mechanism: str, scale: float, **options: Any
) -> Array:
    """Return how far each output [t] moves when the key and the value of one position [s] are replaced."""
    t = len(k)
    queries, keys, values = (np.repeat(x[None], t + 1, axis=0) for x in (q, k, v))  # the first stays
    for s in range(t):
        keys[s + 1, s], values[s + 1, s] = others[0][s], others[1][s]
    out = compute_output(queries, keys, values, mechanism, scale=scale, mask=Mask(causal=True), **options)
    moved: Array = np.linalg.norm(out[1:] - out[0], axis=-1).T
    return moved


def select_future(change: Array) -> list[list[float | None]]:
    """Return what is above the diagonal; the rest may change."""
    return [[float(x) if s > t else None for s, x in enumerate(row)] for t, row in enumerate(change)]


def verify(guesses: dict[str, Guesses]) -> list[Number]:
    if not guesses:
        return []
    return [
        at_least(f"{BEFORE}: loss of the trained model, ln {TOKENS} = {HONEST:.4f}", guesses[BEFORE].whole,
                 HONEST - 0.02),
        at_most(f"{RENORMALIZED}: its loss less that of {BEFORE}, distance",
                abs(guesses[RENORMALIZED].whole - guesses[BEFORE].whole), 0.01),
        *(at_most(f"{name}: loss of the trained model, from the future", guesses[name].whole, 0.5 * HONEST)
          for name in (AFTER, SCORES)),
        *(at_least(f"{name}: its loss in use", guesses[name].in_use, HONEST) for name in (AFTER, SCORES)),
    ]  # fmt: skip
