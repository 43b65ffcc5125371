"""Fingerprints of code: what hides a copy, and what is no copy."""

from __future__ import annotations

from heedful.course.similarity import find_similar, normalize

STARTER = '''
import math
import torch


def attend(q, k, v, mask=None):
    """Return the attention of q over k and v."""
    raise NotImplementedError


def count(model):
    raise NotImplementedError
'''
ADA = STARTER.replace(
    "    raise NotImplementedError\n\n\ndef",
    """    width = q.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.sqrt(width)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    for row in range(weights.shape[0]):
        if not weights[row].isfinite().all():
            weights[row] = torch.nan_to_num(weights[row], nan=0.0)
    return weights @ v


def""",
).replace("raise NotImplementedError", "return sum(p.numel() for p in model.parameters() if p.requires_grad)")
RENAMED = (
    ADA.replace("width", "d_k")
    .replace("scores", "logits")
    .replace("weights", "alpha")
    .replace("row", "i")
    .replace("nan=0.0", "nan=0.00")
    .replace("    if mask", "    # mask the future\n    if mask")
)
OTHER = STARTER.replace(
    "    raise NotImplementedError\n\n\ndef",
    """    result = []
    for b in range(len(q)):
        dots = torch.einsum("td,sd->ts", q[b], k[b]) * q.size(2) ** -0.5
        if mask is not None:
            dots = torch.where(mask[b], dots, torch.full_like(dots, -1e30))
        top = dots.max(1, keepdim=True).values
        e = torch.exp(dots - top)
        result.append((e / e.sum(1, keepdim=True)) @ v[b])
    return torch.stack(result)


def""",
).replace(
    "raise NotImplementedError",
    "total = 0\n    for name, parameter in model.named_parameters():\n        total += parameter.numel()\n    return total",
)


def test_a_copy_with_other_names_comments_and_numbers_is_found_and_other_code_is_not() -> None:
    (pair,) = find_similar({"ada": ADA, "bob": OTHER, "eve": RENAMED}, STARTER)
    assert (pair.first, pair.second) == ("ada", "eve")
    assert pair.share > 0.9
    body = ADA[: ADA.index("transpose")].count("\n") + 1
    assert body in pair.first_lines


def test_what_the_starter_has_is_no_sign_of_copying() -> None:
    assert not find_similar({"ada": STARTER, "bob": STARTER}, STARTER)
    long = STARTER + ADA
    assert not find_similar({"ada": long, "bob": long}, long)


def test_what_most_of_the_class_wrote_is_no_sign_of_copying() -> None:
    assert not find_similar({f"student-{i}": ADA for i in range(20)}, STARTER)


def test_broken_code_and_docstrings_do_not_disturb() -> None:
    assert normalize("def f(:\n    '''") is not None
    with_docs = normalize('def f(x):\n    """Says what."""\n    return x\n')
    assert [t.text for t in with_docs] == [t.text for t in normalize("def g(y):\n    return y\n")]
