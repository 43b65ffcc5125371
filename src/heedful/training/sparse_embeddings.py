"""Only the embedding rows that occur are trained.

A row that occurs in no training batch has no gradient, so its moments stay zero, and embeddings do not decay:
whatever the optimizer, the row never moves. Yet a dense step fills, measures and updates all of them, which
for a small model on short texts is a good part of the whole.
Grade: same mathematics (the gradient's norm is summed in another order).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.objectives.base import Ints

WORTH = 0.75
"""Above this share of rows that occur there is little to gain."""


class OccurringRows(nn.Embedding):
    """A token table in another order: the rows that occur come first, and they alone are the parameter.

    The parameter is a view of the whole table, so that evaluation, where any row may occur, sees every step.
    """

    weight: nn.Parameter

    def __init__(self, whole: nn.Embedding, used: Tensor) -> None:
        rest = torch.ones(whole.num_embeddings, dtype=torch.bool, device=used.device)
        rest[used] = False
        order = torch.cat([used, rest.nonzero()[:, 0]])
        table = whole.weight.detach()[order]
        super().__init__(len(used), whole.embedding_dim, _weight=table[: len(used)])
        self.whole = [whole]  # in a list, so that it is no part of the model
        self.table, self.order, self.position = table, order, order.argsort()

    def forward(self, ids: Tensor) -> Tensor:
        """Look ids up; while training, an id that was not announced is an error."""
        rows = self.weight if self.training and torch.is_grad_enabled() else self.table
        return F.embedding(self.position[ids], rows)

    def restore_table(self) -> nn.Embedding:
        (whole,) = self.whole
        with torch.no_grad():
            whole.weight[self.order] = self.table
        return whole


def use_occurring_rows(
    model: nn.Module, parameters: dict[str, nn.Parameter], ids: Ints | None
) -> OccurringRows | None:
    """Replace the token table by its occurring rows, in the model and among the parameters, where it pays.

    Not where the table is frozen, or also the output layer: then every row moves. Nor in a model of
    transformers, whose table we can see but not replace.
    """
    embed = getattr(getattr(model, "body", None), "embed", None)
    table = getattr(embed, "tokens", None)
    if ids is None or not isinstance(embed, nn.Module) or type(table) is not nn.Embedding:
        return None
    names = [name for name, p in parameters.items() if p is table.weight]
    holders = [m for m in model.modules() for p in m.parameters(recurse=False) if p is table.weight]
    if not names or len(holders) > 1:
        return None
    config = model.config
    added = {0, getattr(config, "pad_id", None), getattr(config, "start_id", None)} - {None}
    used = torch.tensor(sorted({*ids.tolist(), *added}), device=table.weight.device)
    if len(used) > WORTH * table.num_embeddings:
        return None
    embed.tokens = rows = OccurringRows(table, used)
    parameters[names[0]] = rows.weight
    return rows
