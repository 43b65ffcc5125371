"""Hidden claims: other sizes than the public ones, drawn from a seed that only the teacher has."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from heedful.contracts import Claim, RefutedError, Subject

SEED = 20
"""Another number gives other inputs; `heedful course new` draws one."""
TOLERANCE = 1e-4


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(SEED + seed))


def check_cross_attention(subject: Subject) -> str:
    """Compare with torch for more keys than queries, under a random mask."""
    q, k, v = draw(3, 5, 8), draw(3, 9, 8, seed=1), draw(3, 9, 8, seed=2)
    mask = draw(3, 5, 9, seed=3) > 0
    mask[:, :, 0] = True
    got = subject.call("attend", {"q": q, "k": k, "v": v, "mask": mask})["out"]
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return require_close(got, expected, {"q": q, "k": k, "v": v, "mask": mask})


def check_small_scores(subject: Subject) -> str:
    """Compare with torch for vectors that are nearly equal, where the scale hardly shows."""
    q, k, v = 3 * draw(2, 6, 16), 3 * draw(2, 6, 16, seed=4), draw(2, 6, 16, seed=5)
    got = subject.call("attend", {"q": q, "k": k, "v": v})["out"]
    return require_close(got, F.scaled_dot_product_attention(q, k, v), {"q": q, "k": k, "v": v})


def require_close(got: torch.Tensor, expected: torch.Tensor, inputs: dict[str, torch.Tensor]) -> str:
    if got.shape != expected.shape:
        raise RefutedError(f"the shape is {list(got.shape)} instead of {list(expected.shape)}", inputs=inputs)
    apart = float((got - expected).abs().max())
    if not apart <= TOLERANCE:
        raise RefutedError(
            f"the largest difference from torch is {apart:.3g}", inputs=inputs, got=got, expected=expected
        )
    return f"agrees with torch to {apart:.1g}"


CLAIMS = (
    Claim(
        "more keys than queries",
        "With more keys than queries and a random mask the output is torch's.",
        check_cross_attention,
        "attend",
        "which length is which in your shapes?",
    ),
    Claim(
        "wide vectors",
        "For wide vectors and large scores the output is torch's.",
        check_small_scores,
        "attend",
        "by what are the scores divided?",
    ),
)
