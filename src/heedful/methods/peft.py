"""Adapters in peft's format: what it can express, written and read through the checkpoint tables.

peft names a tensor by its place in transformers' model. LoRA's q, k and v of GPT-2 have one place, `c_attn`:
side by side as blocks they are one adapter of a multiple of the rank, exactly. A prefix is cached keys to
transformers, which lets the text's positions begin after it. A prompt's first vector is what encoders pool.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heedful import checkpoints
from heedful.checkpoints.tables import Family, Row
from heedful.errors import UserError, shorten
from heedful.methods.base import Method, Trainee, head_names
from heedful.methods.lora import Lora
from heedful.methods.prefix import Prefix
from heedful.methods.prompt import Prompt
from heedful.models.bodies import ROLES

TASKS = {"classify": "SEQ_CLS", "causal": "CAUSAL_LM", "text2text": "SEQ_2_SEQ_LM"}
LAYER_NUMBER = re.compile(r"\.stack\.layers\.(\d+)\.")
ALWAYS = {"SEQ_CLS": ["classifier", "score"]}
"""The modules that peft saves for a task whether they are named or not."""


def why_not_peft(model: Trainee, method: Method) -> str | None:
    """Return why peft cannot hold this adapter, in one line; None if it can."""
    if not isinstance(method, Lora | Prefix | Prompt):
        if getattr(model, "words", None) is not None:
            return "peft has no head that reads words"
        return f"peft has no {method.name}; the whole model can be exported (--merge)"
    if model.config.family not in checkpoints.FAMILIES:
        return (
            f"peft's format is written for {', '.join(checkpoints.FAMILIES)}, not for {model.config.family}"
        )
    form = checkpoints.find_form(model)
    if form.loads_with != "transformers":
        whole = isinstance(method, Lora) and form.loads_with != "heedful"
        remedy = f"; the whole model can be exported for {form.loads_with} (--merge)" if whole else ""
        return f"peft acts on a transformers class: {form.why}{remedy}"
    if model.kind not in TASKS or (model.kind != "classify" and head_names(model)):
        return f"peft does not keep the new head of a {model.kind} model"
    if isinstance(method, Lora):
        return None
    if model.kind != "classify":
        return f"a {method.name} is exported for classifiers alone"
    refusal = checkpoints.FAMILIES[model.config.family].peft_refusals.get(method.name)
    if refusal is not None:
        return refusal
    if isinstance(method, Prefix):
        return None if method.shift else "peft's text begins after the prefix's positions; use shift=True"
    return None if method.pool == "first" else 'peft pools the first virtual token; use pool="first"'


def to_peft(model: Trainee, method: Method, base: str) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the adapter as adapter_config.json and adapter_model.safetensors hold it."""
    family, config = checkpoints.FAMILIES[model.config.family], model.config
    task, state = TASKS[model.kind], method.state(model)
    names = set(head_names(model))
    head = {theirs: row for theirs, row in all_rows(model, family).items() if names.issuperset(row.ours)}
    prefix = "base_model.model." if isinstance(method, Lora) else "base_model."
    tensors = {prefix + theirs: row.write(state) for theirs, row in head.items()}
    modules = {theirs.removeprefix(family.prefixes[model.kind]).split(".")[0] for theirs in head}
    facts: dict[str, Any] = {
        "task_type": task,
        "base_model_name_or_path": base,
        "inference_mode": True,
        "modules_to_save": sorted(modules.union(ALWAYS.get(task, []))) or None,
    }
    if isinstance(method, Lora):
        more, adapters = lora_to_peft(method, state, target_rows(model, family))
        tensors.update(adapters)
        return facts | more, tensors
    facts |= {
        "num_virtual_tokens": method.options()["length"],
        "token_dim": config.d_model,
        "num_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "num_transformer_submodules": 1,
    }
    if isinstance(method, Prefix):
        facts |= {"peft_type": "PREFIX_TUNING", "prefix_projection": False}
        facts["encoder_hidden_size"] = config.d_model
        values = state["body.stack.prefix.values"]  # [n_layers, 2, h, p, d]
        tensors["prompt_embeddings"] = values.permute(3, 0, 1, 2, 4).flatten(1).contiguous()
    else:
        facts |= {"peft_type": "PROMPT_TUNING", "prompt_tuning_init": "RANDOM"}
        tensors["prompt_embeddings"] = state["body.prompt.vectors"]
    return facts, tensors


def lora_to_peft(
    method: Lora, state: Mapping[str, Tensor], targets: Mapping[str, Row]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Convert LoRA: one pair of matrices per transformers layer; several of ours in one are its blocks."""
    tensors: dict[str, Tensor] = {}
    ranks: dict[str, int] = {}
    alphas: dict[str, float] = {}
    for name, row in targets.items():
        ours = [layer.removesuffix(".weight") for layer in row.ours]
        there = [layer for layer in ours if f"{layer}.lora_a" in state]
        blocks = [state[f"{layer}.lora_b"] for layer in there]
        b = blocks[0].new_zeros(len(blocks[0]) * len(ours), method.rank * len(there))
        for i, (layer, block) in enumerate(zip(there, blocks, strict=True)):
            top = ours.index(layer) * len(block)
            b[top : top + len(block), i * method.rank : (i + 1) * method.rank] = block
        tensors[f"base_model.model.{name}.lora_A.weight"] = torch.cat([state[f"{n}.lora_a"] for n in there])
        tensors[f"base_model.model.{name}.lora_B.weight"] = b
        if len(there) > 1:
            ranks[name] = method.rank * len(there)
            alphas[name] = method.alpha * (math.sqrt(len(there)) if method.rank_stabilized else len(there))
    return {
        "peft_type": "LORA",
        "r": method.rank,
        "lora_alpha": method.alpha,
        "lora_dropout": method.dropout,
        "use_rslora": method.rank_stabilized,
        "target_modules": sorted(targets),
        "rank_pattern": ranks,
        "alpha_pattern": alphas,
        "fan_in_fan_out": any(row.transpose for row in targets.values()),
        "bias": "none",
    }, tensors


def target_rows(model: Trainee, family: Family) -> dict[str, Row]:
    """Return the layers of transformers' model that have an adapter, with the row of their weight."""
    names = [name for name, _ in model.named_parameters() if "lora_a" in name]
    adapted = {name.removesuffix("lora_a") + "weight" for name in names}
    rows = body_rows(model, family).items()
    return {theirs.removesuffix(".weight"): row for theirs, row in rows if adapted.intersection(row.ours)}


def body_rows(model: Trainee, family: Family) -> dict[str, Row]:
    """Return the rows of the body's tensors by the names that they have in transformers' class."""
    prefix = family.prefixes[model.kind]
    return {prefix + row.theirs: row.with_prefix("body.") for row in family.rows(model.config)}


def all_rows(model: Trainee, family: Family) -> dict[str, Row]:
    return body_rows(model, family) | {row.theirs: row for row in family.heads.get(model.kind, [])}


def from_peft(
    model: Trainee, facts: Mapping[str, Any], tensors: Mapping[str, Tensor], where: Path
) -> tuple[Method, dict[str, Tensor]]:
    """Return a method and its state, from an adapter that peft or `to_peft` wrote."""
    if model.config.family not in checkpoints.FAMILIES or model.kind not in TASKS:
        raise UserError(
            f"{where}: a peft adapter fits no {model.kind} model of the family {model.config.family}"
        )
    family = checkpoints.FAMILIES[model.config.family]
    kind = facts.get("peft_type")
    rest = {name.removeprefix("base_model.").removeprefix("model."): t for name, t in tensors.items()}
    state: dict[str, Tensor] = {}
    rows = all_rows(model, family)
    for theirs in [name for name in rest if name in rows]:
        state |= rows[theirs].read(rest.pop(theirs))
    if kind == "LORA":
        method, adapters = lora_from_peft(model, family, facts, rest, where)
        return method, {**adapters, **state}
    vectors = rest.pop("prompt_embeddings", None)
    if vectors is None or rest or kind not in ("PREFIX_TUNING", "PROMPT_TUNING"):
        raise UserError(f"{where}: heedful does not read peft's {shorten(str(kind))} adapters of this form")
    if kind == "PROMPT_TUNING":
        state["body.prompt.vectors"] = vectors
        return Prompt(length=len(vectors), pool="first"), state
    heads = (len(vectors), model.config.n_layers, 2, model.config.n_heads, model.config.d_head)
    if vectors.numel() != math.prod(heads):
        raise UserError(f"{where}: its prefix is of shape {tuple(vectors.shape)} and not for this model")
    state["body.stack.prefix.values"] = vectors.view(heads).permute(1, 2, 3, 0, 4).contiguous()
    return Prefix(length=len(vectors)), state


def lora_from_peft(
    model: Trainee, family: Family, facts: Mapping[str, Any], rest: dict[str, Tensor], where: Path
) -> tuple[Lora, dict[str, Tensor]]:
    """Convert LoRA; one adapter of peft may be several here."""
    rows = {theirs.removesuffix(".weight"): row for theirs, row in body_rows(model, family).items()}
    base_rank, alphas = facts.get("r"), facts.get("alpha_pattern") or {}
    state: dict[str, Tensor] = {}
    adapted: set[str] = set()
    scales: list[float] = []
    for name in sorted(n.removesuffix(".lora_A.weight") for n in rest if n.endswith(".lora_A.weight")):
        a, b = rest.pop(f"{name}.lora_A.weight"), rest.pop(f"{name}.lora_B.weight", None)
        if name not in rows or b is None or not isinstance(base_rank, int) or base_rank < 1:
            raise UserError(f'{where}: "{shorten(name)}" is no linear layer of this model')
        exceptions = [alpha for key, alpha in alphas.items() if name == key or name.endswith(f".{key}")]
        alpha = exceptions[0] if exceptions else facts.get("lora_alpha", base_rank)
        scales.append(float(alpha) / (math.sqrt(len(a)) if facts.get("use_rslora") else len(a)))
        ours = [layer.removesuffix(".weight") for layer in rows[name].ours]
        for layer, (low, high) in split_blocks(ours, a, b, base_rank).items():
            state |= {f"{layer}.lora_a": low, f"{layer}.lora_b": high}
            adapted.add(layer)
    ranks = {len(t) for name, t in state.items() if name.endswith("lora_a")}
    if rest or len(ranks) != 1 or not math.isclose(min(scales), max(scales), rel_tol=1e-9):
        odd = f'"{shorten(next(iter(rest)))}"' if rest else "several ranks or scales"
        raise UserError(f"{where}: heedful's lora has one rank and scale for linear layers; this has {odd}")
    rank, scale = ranks.pop(), scales[0]
    stabilized = bool(facts.get("use_rslora"))
    roles = [role for role, ends in ROLES.items() if any(layer.endswith(ends) for layer in adapted)]
    method = Lora(
        rank=rank,
        alpha=scale * (math.sqrt(rank) if stabilized else rank),
        targets=",".join(roles),
        dropout=float(facts.get("lora_dropout") or 0.0),
        rank_stabilized=stabilized,
        layers=count_upper_layers(adapted, model.config.n_layers),
    )
    return method, state


def count_upper_layers(adapted: set[str], total: int) -> int:
    """Return how many upper layers have adapters, if the layers below have none; 0 for all layers."""
    numbers = {int(found[1]) for name in adapted if (found := LAYER_NUMBER.search(name))}
    count = len(numbers)
    return count if count < total and numbers == set(range(total - count, total)) else 0


def split_blocks(ours: list[str], a: Tensor, b: Tensor, rank: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Split one adapter on several of our layers, into blocks of the rank if it is made of them."""
    highs = b.chunk(len(ours))
    count = len(a) // rank
    if len(ours) > 1 and count * rank == len(a):
        lows = a.chunk(count)
        for chosen in combinations(range(len(ours)), count):
            kept = {j: i for i, j in enumerate(chosen)}
            mask = torch.ones_like(b, dtype=torch.bool)
            for j, i in kept.items():
                mask[j * len(highs[j]) : (j + 1) * len(highs[j]), i * rank : (i + 1) * rank] = False
            if not bool(b[mask].any()):
                return {
                    ours[j]: (lows[i].clone(), highs[j][:, i * rank : (i + 1) * rank].clone())
                    for j, i in kept.items()
                }
    return {layer: (a.clone(), high.clone()) for layer, high in zip(ours, highs, strict=True)}
