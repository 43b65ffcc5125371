"""Setting parameters from the tensors of a file, once their shapes and types are checked."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from heedful.checkpoints.tables import Row
from heedful.errors import UserError


def set_weights(parameters: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in state.items():
            parameters[name].copy_(tensor)


def convert_tensor(
    row: Row, tensor: Tensor, parameters: Mapping[str, Tensor], where: str
) -> dict[str, Tensor]:
    wanted = list(parameters[row.ours[0]].shape)
    wanted[0] = sum(parameters[name].shape[0] for name in row.ours)
    if row.transpose and len(wanted) == 2:
        wanted.reverse()
    if list(tensor.shape) != wanted:
        raise shape_error(row, tensor, tuple(wanted), where)
    if parameters[row.ours[0]].is_floating_point() and not tensor.is_floating_point():
        raise UserError(
            f'{where}: "{row.theirs}" holds {tensor.dtype}; weights are floating-point numbers'.replace(
                "torch.", ""
            )
        )
    return row.read(tensor)


def shape_error(row: Row, tensor: Tensor, wanted: tuple[int, ...], where: str) -> UserError:
    return UserError(
        f'{where}: "{row.theirs}" has shape {tuple(tensor.shape)}; config.json calls for {wanted}'
    )
