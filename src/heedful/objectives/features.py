"""Runs a frozen model once over the texts of a split; the states are kept in the cache. Grade: same bits."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from heedful.data.features import Array, Features, load_or_compute
from heedful.errors import UserError
from heedful.objectives.base import Ints, evaluation_mode, iterate_by_length
from heedful.runs.environment import cpu_name, versions

if TYPE_CHECKING:
    from heedful.objectives.classify import Classify


def compute_pooled(objective: Classify, model: Any, split: str, rows: Ints) -> Features:
    """Return what the body of a model gives to its head, for some texts of a split [len(rows), d_model]."""
    key = find_key(objective, model, split, rows, ["pooled"], model.body.state_dict())
    shape = (len(rows), model.config.pooled_width)
    fill = partial(fill_pooled, objective, model, split, rows)
    return load_or_compute(key, shape, "float32", fill, in_memory=True)


def fill_pooled(objective: Classify, model: Any, split: str, rows: Ints, states: Array) -> None:
    """Write what the body gives to the head into an array [len(rows), d_model]."""
    with evaluation_mode(model) as device:
        for batch in iterate_by_length(objective.lengths[split][rows], device, f"features of {split}"):
            t = objective.inputs(split, rows[batch]).to(device).tensors
            states[batch] = model.body.pooled(t["ids"], t["mask"], t.get("types")).float().cpu().numpy()


def compute_token_states(
    objective: Classify, model: Any, split: str, rows: Ints, layers: int, dtype: str
) -> Features:
    """Return the states of the tokens of some texts after this many layers [tokens, d_model]."""
    lengths = objective.lengths[split][rows]
    starts = np.cumsum(lengths) - lengths

    def fill(states: Array) -> None:
        with evaluation_mode(model) as device:
            for batch in iterate_by_length(lengths, device, f"lower layers of {split}"):
                t = objective.inputs(split, rows[batch]).to(device).tensors
                padded = model.body.run_lower(t["ids"], t["mask"], t.get("types"), layers)
                real = t["mask"].bool().cpu()
                values = padded.cpu()[real].to(getattr(torch, dtype))
                if not bool(values.isfinite().all()):
                    raise UserError(
                        f"the states of this model are too large for {dtype}; give --no-cache-features"
                    )
                positions = starts[batch][:, None] + np.arange(real.shape[1])
                states[positions[real.numpy()]] = values.numpy()

    upper = tuple(f"stack.layers.{i}." for i in range(layers, len(model.body.stack.layers)))
    upper = (*upper, "stack.norm.", "pooler.")
    weights = {n: tensor for n, tensor in model.body.state_dict().items() if not n.startswith(upper)}
    key = find_key(objective, model, split, rows, ["tokens", layers, dtype], weights)
    return load_or_compute(key, (int(lengths.sum()), model.config.d_model), dtype, fill)


def find_key(
    objective: Classify, model: Any, split: str, rows: Ints, what: list[Any], weights: dict[str, torch.Tensor]
) -> str:
    """Return the name of features: a hash of all that can change a bit of them.

    These are the model's configuration and weights, the tokenized texts (named by the content of the texts,
    the tokenizer, --max-len and --long-texts), the rows among them, which are computed in batches, and the
    machine with its packages and threads.
    """
    device = next(model.parameters()).device
    precision = torch.get_autocast_dtype(device.type) if torch.is_autocast_enabled(device.type) else None
    place = [
        str(precision),
        device.type,
        cpu_name(),
        torch.backends.cpu.get_cpu_capability(),
        torch.get_num_threads(),
    ]
    if device.type == "cuda":
        place.append(torch.cuda.get_device_name(device))
    packages = {name: version for name, version in versions().items() if name in ("heedful", "torch")}
    texts = [objective.tokens[split].folder.name, objective.with_types, objective.pad_id]
    parts = [what, type(model.body).__name__, str(model.config), texts, place, packages]
    digest = blake2b(repr(parts).encode(), digest_size=16)
    digest.update(rows.astype(np.int64).tobytes())
    for name, tensor in weights.items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()
