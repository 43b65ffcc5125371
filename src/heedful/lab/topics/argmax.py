"""Hard attention: what it selects, and why it cannot learn where to look."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from heedful.attention import Mask
from heedful.lab.attend import Array, attend, mechanism, tensor, weights
from heedful.lab.base import Finding, Number, Row, Rows, Table, exactly, fact
from heedful.lab.vectors import ARGMAX_KEYS, ARGMAX_QUERY, ARGMAX_VALUES, choose, generate, row, rows
from heedful.report.charts import bars


@dataclass(frozen=True)
class ArgmaxResults:
    """What was selected, and the gradients."""

    scores: Array
    """q.k of each key."""
    selected: int
    """Counted from 1; the first at a tie."""
    output: Array
    gradient: float
    """The largest component of the gradient to q and k."""
    softmax_gradient: float


def argmax(
    keys: Rows | None = None,
    values: Rows | None = None,
    query: Row | None = None,
    *,
    scale: float = 1.0,
    size: int | None = None,
    width: int = 8,
    seed: int = 0,
) -> Finding[ArgmaxResults]:
    """Hard attention: it selects one value, and its gradient to q and k is exactly zero.

    Examples:
      heedful lab argmax
      heedful lab argmax --keys keys.npy --values values.npy --query 0.5,-1,2

    Parameters
    ----------
    keys
        Vectors, one a row: a .npy file, or numbers like 1,0;0,1. By default a textbook's.
    values
        As many vectors as keys.
    query
        One vector.
    scale
        Factor on the scores.
    size
        Generate so many keys and values instead.
    width
        Components of generated vectors.
    seed
        Of what is generated.
    """
    k = choose("keys", keys, size, width, seed, ARGMAX_KEYS)
    textbook = keys is None and size is None
    if values is not None:
        v = rows("values", values, count=len(k))
    else:
        v = ARGMAX_VALUES if textbook else generate(*k.shape, seed, "values")
    if query is not None:
        q = row("query", query, k.shape[1])
    else:
        q = ARGMAX_QUERY if textbook else generate(1, k.shape[1], seed, "query")[0]
    scores = scale * (k @ q)
    chosen = weights(q[None], k, "argmax", scale=scale)[0]
    selected = int(np.argmax(chosen))
    output = attend(q[None], k, v, "argmax", scale=scale)[0]
    hard, soft = (largest_gradient(name, q, k, v, scale) for name in ("argmax", "softmax"))
    small = weights([[1.0]], [[1.0], [3.0], [2.0]], "argmax")[0]
    numbers: list[Number] = [
        exactly("argmax([1, 3, 2]): distance from [0, 1, 0]", np.abs(small - [0, 1, 0]).max(), 0),
        exactly("weights that are not 0 or 1", float(((chosen != 0) & (chosen != 1)).sum()), 0),
        exactly("score of the selected key below the highest", scores.max() - scores[selected], 0),
        exactly("output: distance from the selected value", np.abs(output - v[selected]).max(), 0),
        exactly("largest gradient to q and k, argmax", hard, 0),
        fact("largest gradient to q and k, softmax", soft),
    ]
    if textbook and values is None and query is None:
        numbers.insert(4, exactly("output: distance from (3, 2, -4)", np.abs(output - (3, 2, -4)).max(), 0))
    return Finding(
        topic="argmax",
        claim="hard attention returns the value of the best key, and no gradient tells it to look elsewhere",
        construction=(
            f"c = v_j with j = argmax_i (scale q.k_i), the first at a tie; scale = {scale:g}",
            "the choice stays when q or k moves a little, so dc/dq = dc/dk = 0",
        ),
        numbers=tuple(numbers),
        results=ArgmaxResults(scores, selected + 1, output, hard, soft),
        figure=bars(
            [{"label": f"k_{i + 1}", "value": s} for i, s in enumerate(scores)],
            title="Hard attention takes the value of the key with the highest score",
            y_title="score",
        ),
        tables=(
            Table(
                "keys",
                ("key", "k", "score", "weight", "v"),
                tuple((f"k_{i + 1}", k[i], scores[i], chosen[i], v[i]) for i in range(len(k))),
            ),
        ),
    )


def largest_gradient(name: str, q: Array, k: Array, v: Array, scale: float) -> float:
    """The largest component of the gradient of the output's sum of squares to q and k."""
    made = mechanism(name, len(q), len(k), scale)
    queries, keys = tensor(q[None]).requires_grad_(), tensor(k).requires_grad_()
    made(queries, keys, tensor(v), Mask()).square().sum().backward()
    assert queries.grad is not None
    assert keys.grad is not None
    return float(torch.maximum(queries.grad.abs().max(), keys.grad.abs().max()))
