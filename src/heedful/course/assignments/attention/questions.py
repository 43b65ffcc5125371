"""Claims about the answers to the questions: what a student gives is put to the test."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.contracts import Claim, NotApplicable, RefutedError, Subject

CLOSE = 0.05
"""The largest distance of an output from what was asked for; the values have length 1."""


def ask(subject: Subject, question: str, parts: int = 1, **inputs: Any) -> list[Tensor]:
    """Return the tensors that an answer consists of."""
    answer = subject.call(question, inputs)
    found = answer.get("out")
    if answer.keys() != {"out"}:
        raise RefutedError(f"the answer is a dictionary; return {parts} tensors")
    found = list(found) if isinstance(found, list | tuple) else [found]
    if len(found) != parts:
        raise RefutedError(f"the answer has {len(found)} parts instead of {parts}", inputs=inputs, got=found)
    if any(part is None for part in found):
        raise NotApplicable("it returns None: it is not answered yet")
    tensors = [torch.as_tensor(part, dtype=torch.float64) for part in found]
    if not all(bool(tensor.isfinite().all()) for tensor in tensors):
        raise RefutedError("the answer has numbers that are not finite", inputs=inputs, got=found)
    return tensors


def draw_keys(n: int, d: int, seed: int) -> Tensor:
    """Return orthonormal rows [n, d]."""
    generator = torch.Generator().manual_seed(seed)
    return torch.linalg.qr(torch.randn(d, d, generator=generator))[0][:n].contiguous()


def attend(q: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    if q.shape != keys.shape[1:]:
        raise RefutedError(f"the query has the shape {tuple(q.shape)} instead of {tuple(keys.shape[1:])}")
    return torch.softmax(keys.double() @ q, dim=0) @ values.double()


def require_close(got: Tensor, expected: Tensor, what: str, inputs: dict[str, Any]) -> None:
    apart = float((got - expected).norm())
    if apart > CLOSE:
        raise RefutedError(
            f"{what}: {apart:.3g} away, at most {CLOSE} is allowed", inputs=inputs, got=got, expected=expected
        )


def check_copy(subject: Subject) -> str:
    for n, d, j in ((2, 2, 1), (3, 4, 0), (6, 8, 5)):
        keys, values = draw_keys(n, d, n), torch.eye(n, dtype=torch.float64)
        (q,) = ask(subject, "answer_copy", keys=keys, j=j)
        require_close(
            attend(q, keys, values),
            values[j],
            f"the output is not the value {j}",
            {"keys": keys, "j": j, "q": q},
        )
    return "the output is the value that was asked for"


def check_average(subject: Subject) -> str:
    for n, d, a, b in ((3, 3, 0, 1), (4, 6, 1, 3), (7, 8, 6, 2)):
        keys, values = draw_keys(n, d, n + d), torch.eye(n, dtype=torch.float64)
        (q,) = ask(subject, "answer_average", keys=keys, a=a, b=b)
        require_close(
            attend(q, keys, values),
            (values[a] + values[b]) / 2,
            f"the output is not the mean of the values {a} and {b}",
            {"keys": keys, "a": a, "b": b, "q": q},
        )
    return "the output is the mean of the two values"


def check_two_heads(subject: Subject) -> str:
    generator = torch.Generator().manual_seed(3)
    means, values = draw_keys(5, 6, 11), torch.eye(5, dtype=torch.float64)
    queries = ask(subject, "answer_two_heads", 2, means=means, a=1, b=4)
    for _ in range(20):
        keys = means * (0.5 + torch.rand(5, 1, generator=generator))
        got = sum(attend(q, keys, values) for q in queries) / 2
        require_close(
            got,
            (values[1] + values[4]) / 2,
            "with keys of other lengths the output is not the mean",
            {"keys": keys, "a": 1, "b": 4, "queries": torch.stack(queries)},
        )
    return "the mean of two heads is steady for 20 draws of the keys"


def own_parts(subject: Subject, question: str, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the q, K and weights of an answer that brings its own."""
    q, keys, values = ask(subject, question, 3)
    if keys.dim() != 2 or len(keys) != n or len(values) != n or q.shape != keys.shape[1:]:
        shapes = [list(x.shape) for x in (q, keys, values)]
        raise RefutedError(
            f"q, K and V do not fit together, or K does not have {n} rows",
            inputs={},
            got=shapes,
            expected=[["d"], [n, "d"], [n, "e"]],
        )
    return q, keys, torch.softmax(keys @ q, dim=0)


def check_uniform(subject: Subject) -> str:
    q, keys, weights = own_parts(subject, "answer_uniform", 4)
    inputs = {"q": q, "K": keys}
    if float(q.norm()) < 1e-3:
        raise RefutedError("q is zero", inputs=inputs)
    if float(torch.pdist(keys).min()) < 1e-3:
        raise RefutedError("two of the keys are the same", inputs=inputs, got=keys)
    if float((weights - 0.25).abs().max()) > 1e-3:
        raise RefutedError("the weights are not equal", inputs=inputs, got=weights, expected=[0.25] * 4)
    return "all weights are 0.25"


def check_longest_loses(subject: Subject) -> str:
    q, keys, weights = own_parts(subject, "answer_longest_loses", 3)
    lengths = keys.norm(dim=1)
    inputs = {"q": q, "K": keys}
    if float(lengths.topk(2).values.diff().abs()) < 1e-3:
        raise RefutedError("no key is longer than the others", inputs=inputs, got=lengths)
    if float(weights.topk(2, largest=False).values.diff()) < 1e-3 or int(weights.argmin()) != int(
        lengths.argmax()
    ):
        raise RefutedError(
            "the longest key does not have the smallest weight",
            inputs=inputs,
            got=weights,
            expected=f"the smallest weight at key {int(lengths.argmax())}",
        )
    return f"the longest key has the weight {float(weights.min()):.3f}"


CLAIMS = (
    Claim(
        "question 1",
        "The query gives the value of one key.",
        check_copy,
        "answer_copy",
        "which q has a large product with keys[j] and none with the others? how large must it be?",
    ),
    Claim(
        "question 2",
        "The query gives the mean of two values.",
        check_average,
        "answer_average",
        "the two scores must be equal, and much larger than all others",
    ),
    Claim(
        "question 3",
        "Two heads give the mean of two values for keys of any length.",
        check_two_heads,
        "answer_two_heads",
        "what is the output of each head alone when the keys are longer or shorter?",
    ),
    Claim(
        "question 4",
        "The weights of four different keys are equal.",
        check_uniform,
        "answer_uniform",
        "in which direction may the keys differ without changing q . k?",
    ),
    Claim(
        "question 5",
        "The longest key has the smallest weight.",
        check_longest_loses,
        "answer_longest_loses",
        "which sign must its product with q have?",
    ),
)
