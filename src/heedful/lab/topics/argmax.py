"""Hard attention: what it selects, and why it cannot learn where to look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from heedful.attention import Mask
from heedful.lab.arrays import Array, compute_output, compute_weights, mechanism, tensor
from heedful.lab.base import Finding, Number, Table, Vector, Vectors, at_least, at_most, exactly, fact
from heedful.lab.lookup import BLIND, KEYS, VALUES, Lookup, learn
from heedful.lab.vectors import (
    ARGMAX_KEYS,
    ARGMAX_QUERY,
    ARGMAX_VALUES,
    check_vector,
    choose_values,
    choose_vectors,
    generate,
)
from heedful.report.charts import Chart, bars, lines


@dataclass(frozen=True)
class ArgmaxResults:
    scores: Array
    """q.k of each key."""
    selected: int
    """Counted from 1; the first at a tie."""
    output: Array
    gradient: float
    """The largest component of the gradient to q and k."""
    softmax_gradient: float
    straight_through_gradient: float
    lookups: dict[str, Lookup]
    """How each mechanism learned the key-lookup task; empty if nothing was trained."""


def argmax(
    keys: Vectors | None = None,
    values: Vectors | None = None,
    query: Vector | None = None,
    *,
    scale: float = 1.0,
    steps: int = 400,
    size: int | None = None,
    width: int = 8,
    seed: int = 0,
) -> Finding[ArgmaxResults]:
    """Hard attention: it selects one value, and its gradient to q and k is exactly zero.

    Three small models learn to look up values by their keys. With argmax,
    q_proj and k_proj end bit by bit as they began, and the loss stays at that
    of a model without attention; softmax solves the task, and so does a
    straight-through gradient (softmax's gradient for argmax's choice).

    Examples:
      heedful lab argmax
      heedful lab argmax --keys keys.npy --values values.npy --query 0.5,-1,2

    Parameters
    ----------
    keys
        Vectors, one per row: a .npy file, or numbers like 1,0;0,1. By default an example of a textbook.
    values
        As many vectors as keys.
    query
        One vector.
    steps
        Number of training steps of each of the three models; 0 trains none.
    size
        Generate this many keys and values instead of the example.
    """
    k = choose_vectors("keys", keys, size, width, seed, ARGMAX_KEYS)
    textbook = keys is None and size is None
    v = ARGMAX_VALUES if textbook and values is None else choose_values(k, values, seed)
    if query is not None:
        q = check_vector("query", query, k.shape[1])
    else:
        q = ARGMAX_QUERY if textbook else generate(1, k.shape[1], seed, "query")[0]
    scores = scale * (k @ q)
    chosen = compute_weights(q[None], k, "argmax", scale=scale)[0]
    selected = int(np.argmax(chosen))
    output = compute_output(q[None], k, v, "argmax", scale=scale)[0]
    hard, soft = (largest_gradient(name, q, k, v, scale) for name in ("argmax", "softmax"))
    straight = largest_gradient("argmax", q, k, v, scale, straight_through=True)
    small = compute_weights([[1.0]], [[1.0], [3.0], [2.0]], "argmax")[0]
    below, rounding = scores.max() - scores[selected], 1e-12 * np.abs(scores).max()
    numbers: list[Number] = [
        exactly("argmax([1, 3, 2]): distance from [0, 1, 0]", np.abs(small - [0, 1, 0]).max(), 0),
        exactly("weights that are not 0 or 1", float(((chosen != 0) & (chosen != 1)).sum()), 0),
        at_most("score of the selected key below the highest", below, rounding),
        exactly("keys before it that are the same", float((k[:selected] == k[selected]).all(1).sum()), 0),
        exactly("output: distance from the selected value", np.abs(output - v[selected]).max(), 0),
        exactly("largest gradient to q and k, argmax", hard, 0),
        fact("largest gradient to q and k, softmax", soft),
        fact("largest gradient to q and k, straight-through", straight),
    ]
    if textbook and values is None and query is None and scale == 1:
        numbers += [
            exactly("scores: distance from (3, 1, 1, -3)", np.abs(scores - (3, 1, 1, -3)).max(), 0),
            exactly("output: distance from (3, 2, -4)", np.abs(output - (3, 2, -4)).max(), 0),
            at_least("softmax: the same gradient is not zero", soft, 1e-3),
        ]
    rows = tuple((f"k_{i + 1}", k[i], scores[i], chosen[i], v[i]) for i in range(len(k)))
    tables = [Table(("key", "k", "score", "weight", "v"), rows, "keys")]
    lookups = learn_all(steps, seed) if steps else {}
    numbers += [number for name, lookup in lookups.items() for number in verify(name, lookup)]
    if lookups:
        columns = ("attention", "loss", "accuracy", "entries of q_proj and k_proj that changed")
        learned = tuple((name, one.loss, one.accuracy, one.changed) for name, one in lookups.items())
        tables.append(Table(columns, learned, f"key lookup after {steps} steps, on new texts"))
    return Finding(
        topic="argmax",
        claim="hard attention returns the value of the best key, and no gradient tells it to look elsewhere",
        construction=(
            f"c = v_j with j = argmax_i (scale q.k_i), the first at a tie; scale = {scale:g}",
            "the choice stays when q or k moves a little, so dc/dq = dc/dk = 0 and training cannot move them",
            "straight-through: argmax's choice forwards, softmax's gradient backwards",
            f"key lookup: {KEYS} pairs of a key and one of {VALUES} values in random order, and a question; "
            f"without attention the loss is ln {VALUES} = {BLIND:.4f}",
        ),
        numbers=tuple(numbers),
        results=ArgmaxResults(scores, selected + 1, output, hard, soft, straight, lookups),
        figure=draw_losses(lookups) if lookups else draw_scores(scores, selected),
        tables=tuple(tables),
    )


def learn_all(steps: int, seed: int) -> dict[str, Lookup]:
    """Train the three models, which start alike and see the same texts."""
    return {
        "softmax": learn("softmax", steps, seed),
        "straight-through": learn("argmax", steps, seed, straight_through=True),
        "argmax": learn("argmax", steps, seed),
    }


def verify(name: str, lookup: Lookup) -> list[Number]:
    changed = f"{name}: entries of q_proj and k_proj that changed"
    if name == "argmax":
        return [
            exactly(f"{changed}, of {lookup.entries}", lookup.changed, 0),
            at_least(f"argmax: loss of the lookup; ln {VALUES} = {BLIND:.4f}", lookup.loss, 0.95 * BLIND),
        ]
    return [
        at_least(changed, lookup.changed, lookup.entries / 2),
        at_most(f"{name}: loss of the lookup", lookup.loss, 0.2 * BLIND),
    ]


def draw_losses(lookups: dict[str, Lookup]) -> Chart:
    longest = max(len(lookup.losses) for lookup in lookups.values())
    series: dict[str, list[tuple[float, float]]] = {}
    for name, lookup in lookups.items():
        series[name] = [(i + 5, float(np.mean(lookup.losses[i : i + 10]))) for i in range(0, longest, 10)]
    series[f"without attention: ln {VALUES}"] = [(0, BLIND), (longest, BLIND)]
    return lines(
        series,
        title="Looking values up by their keys: argmax gets no gradient and stays where no attention is",
        subtitle="one layer, one head; straight-through: argmax's choice with softmax's gradient",
        x_title="training step",
        y_title="loss (mean of ten steps)",
        y_domain=(0, 2.6),
    )


def draw_scores(scores: Array, selected: int) -> Chart:
    groups = ["selected" if i == selected else "ignored" for i in range(len(scores))]
    rows = [{"label": f"k_{i + 1}", "value": s, "group": groups[i]} for i, s in enumerate(scores)]
    title = "Hard attention takes the value of the key with the highest score"
    return bars(rows, title=title, y_title="score q.k")


def largest_gradient(name: str, q: Array, k: Array, v: Array, scale: float, **options: bool) -> float:
    """Return the largest component of the gradient of the output's sum of squares to q and k."""
    attention = mechanism(name, len(q), len(k), scale, **options)
    queries, keys = tensor(q[None]).requires_grad_(), tensor(k).requires_grad_()
    attention(queries, keys, tensor(v), Mask()).square().sum().backward()
    assert queries.grad is not None
    assert keys.grad is not None
    return float(torch.maximum(queries.grad.abs().max(), keys.grad.abs().max()))
