"""Random features whose product is exp(q . k) on average: FAVOR+ (Choromanski et al. 2021, section 2).

A feature map has three parts, because a stabilizer is in the middle: `project` gives numbers u, `top` the
logarithm of the largest size that a row's features have, and `lift` the features divided by e^reference.
Everything is written down to its gradient, for functions that compute features again instead of keeping them.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Kind = Literal["positive", "hyperbolic", "trigonometric"]


class FeatureMap:
    """phi(x) for draws w [r, d]. The constant 1/sqrt(features) is left out: it cancels in attention.

    - positive: exp(w.x - |x|^2/2), one feature per draw (lemma 1);
    - hyperbolic: exp(+-w.x - |x|^2/2), two features per draw, less variance;
    - trigonometric: exp(|x|^2/2) (cos w.x, sin w.x), two features per draw, of either sign.
    """

    def __init__(self, w: Tensor, kind: Kind) -> None:
        self.w, self.kind = w, kind
        self.m = w.shape[0] * (1 if kind == "positive" else 2)

    def project(self, x: Tensor) -> Tensor:
        """Return w.x and, except for trigonometric features, the exponents made of it."""
        u = torch.matmul(x, self.w.mT)  # [..., r]
        if self.kind == "trigonometric":
            return u
        half = 0.5 * (x * x).sum(-1, keepdim=True)
        return u.sub_(half) if self.kind == "positive" else torch.cat([u - half, -u - half], -1)

    def top(self, u: Tensor, x: Tensor) -> Tensor:
        """Return the logarithm of a bound on the row's features [...]; a constant for the gradient."""
        return 0.5 * (x * x).sum(-1) if self.kind == "trigonometric" else u.amax(-1)

    def lift(self, u: Tensor, x: Tensor, reference: Tensor) -> Tensor:
        """Return the features divided by e^reference [..., m]; u is overwritten."""
        if self.kind != "trigonometric":
            return u.sub_(reference[..., None]).exp_()
        size = torch.exp(0.5 * (x * x).sum(-1) - reference)[..., None]
        return torch.cat([u.cos(), u.sin()], -1).mul_(size)

    def input_gradient(self, grad: Tensor, phi: Tensor, x: Tensor) -> Tensor:
        """Return the gradient of x from that of the features phi, which is overwritten."""
        if self.kind == "trigonometric":
            (c, s), (dc, ds) = phi.chunk(2, -1), grad.chunk(2, -1)
            dx = torch.matmul(ds * c - dc * s, self.w)
            return dx.add_(x * (dc * c + ds * s).sum(-1, keepdim=True))
        du = grad.mul_(phi)
        total = du.sum(-1, keepdim=True)
        if self.kind == "hyperbolic":
            up, down = du.chunk(2, -1)
            du = up - down
        return torch.matmul(du, self.w).sub_(x * total)


def draw_directions(n: int, d: int, orthogonal: bool, generator: torch.Generator | None) -> Tensor:
    """Draw n Gaussian directions; orthogonal ones come in groups of d, each with a Gaussian's norm."""
    w = torch.randn(n, d, generator=generator, dtype=torch.float64)
    if not orthogonal:
        return w
    groups = torch.randn(-(-n // d), d, d, generator=generator, dtype=torch.float64)
    basis, triangle = torch.linalg.qr(groups)
    # Signs of the triangle make the basis uniform over all rotations; without them the estimate has a bias.
    basis = basis * triangle.diagonal(dim1=-2, dim2=-1).sign()[:, None]
    directions: Tensor = basis.mT.flatten(0, 1)[:n] * torch.linalg.vector_norm(w, dim=-1, keepdim=True)
    return directions
