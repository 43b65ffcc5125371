"""Architectures outside the native families: modules of transformers behind our interface (extra `hub`).

ELECTRA, MPNet, DeBERTa, ALBERT and others. No remote code is ever run: only what transformers itself holds,
filled with tensors that we read. Methods find the linear layers by role; what needs the inside of a layer
(prefix, other attention) is refused.
"""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch import Tensor, nn

from heedful.errors import UserError
from heedful.models import Classifier, TransformerConfig
from heedful.models.bodies import ROLES, Body
from heedful.models.heads import HeadForm
from heedful.models.pooled_position import PooledPosition

WORKS = "full, head, lora, bitfit and prompt work"
ROLE_NAMES = {
    "q": re.compile(r"(query|query_proj|q|q_proj|q_lin|q_head)"),
    "k": re.compile(r"(key|key_proj|k|k_proj|k_lin|k_head)"),
    "v": re.compile(r"(value|value_proj|v|v_proj|v_lin|v_head)"),
    "o": re.compile(r"(output\.dense|dense|o|o_proj|out_proj|out_lin|post_proj|Wo)"),
    "ff": re.compile(
        r"((intermediate|output)\.dense|ffn|ffn_output|fc1|fc2|lin1|lin2|linear_1|linear_2"
        r"|fc_in|fc_out|dense_h_to_4h|dense_4h_to_h|up_proj|gate_proj|down_proj|wi|wi_0|wi_1|wo|Wi|Wo)"
    ),
}
"""What architectures call their linear layers: the last one or two parts of a name."""
INSIDE_ATTENTION = re.compile(r"attn|attention", re.IGNORECASE)


class HubBody(Body):
    """A model of transformers without a head. Nothing inside its layers is ours."""

    table: Any
    """The names of the tensors (`heedful.checkpoints.tables.Family`)."""
    pools_states: bool = True
    """Whether the pooler, if there is one, precedes the head."""

    def __init__(self, module: Any, config: TransformerConfig) -> None:
        nn.Module.__init__(self)
        self.config, self.module = config, module
        self.register_module("prompt", None)
        self.accepts = frozenset(inspect.signature(module.forward).parameters)
        self.pools = ("text", "first") if config.kind == "encoder" else ("text",)

    @property
    def embed(self) -> Any:  # type: ignore[override]
        """The token embeddings, under our name; not a module, since they are part of one already."""
        return SimpleNamespace(tokens=self.module.get_input_embeddings())

    def stacks(self) -> Any:
        raise UserError(
            f"prefix puts keys and values into every layer, which heedful cannot do in {self.config.family}; "
            f"{WORKS} there"
        )

    def roles(self) -> dict[str, list[str]]:
        layers_of: dict[str, list[str]] = {role: [] for role in ROLES}
        for name, part in self.named_modules():
            role = role_of(name) if isinstance(part, nn.Linear) else None
            if role is not None:
                layers_of[role].append(name)
        if not any(layers_of.values()):
            raise UserError(
                f"which layers of {self.config.family} are q, k, v, o and ff is not known to heedful, "
                f"so lora does not work there; full, head, bitfit and prompt do"
            )
        return layers_of

    def run(self, ids: Tensor, mask: Tensor | None, types: Tensor | None) -> Tensor:
        """Return the last hidden states [b, p + t, d_model], those of the prompt first."""
        config, p = self.config, self.ahead
        if config.position != "relative" and p + ids.shape[1] > config.max_len:
            raise UserError(
                f"a text of {ids.shape[1]} tokens{f' after {p} virtual ones' if p else ''}; "
                f"this model has {config.max_len} positions"
            )
        keys = self.real_keys(mask)
        inputs: dict[str, Any] = {"attention_mask": None if keys is None else keys.long()}
        if types is not None and config.n_types:
            inputs["token_type_ids"] = nn.functional.pad(types, (p, 0))
        if self.prompt is None:
            inputs["input_ids"] = ids
        else:
            if "inputs_embeds" not in self.accepts:
                raise UserError(f"prompt: transformers' {config.family} takes no embedded text")
            front = self.prompt.vectors.expand(len(ids), -1, -1)
            inputs["inputs_embeds"] = torch.cat([front, self.embed.tokens(ids)], dim=1)
        states: Tensor = self.module(**inputs)[0]
        return states

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        return self.run(input_ids, attention_mask, token_type_ids)[:, self.ahead :]

    def pooled(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        states = self.run(input_ids, attention_mask, token_type_ids)
        whole = self.prompt is not None and self.prompt.pool == "first"
        return self.pool(states if whole else states[:, self.ahead :], input_ids, attention_mask)

    def pool(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return a state per text: a decoder's last real token's, else the first's (through their pooler)."""
        if self.config.kind == "decoder":
            if attention_mask is None:
                return states[:, -1]
            last = (torch.arange(input_ids.shape[1], device=states.device) * attention_mask).argmax(1)
            return PooledPosition(last).take(states)[:, 0]
        pooler = getattr(self.module, "pooler", None)
        if pooler is None or not self.pools_states:
            return states[:, 0]
        if isinstance(pooler, nn.Linear):  # ALBERT's and BigBird's have their non-linearity beside it
            beside = "pooler_activation" if hasattr(self.module, "pooler_activation") else "activation"
            pooled: Tensor = getattr(self.module, beside)(pooler(states[:, 0]))
        else:
            pooled = pooler(states)
        return pooled


class BodyStandIn(nn.Module):
    """Takes the place of the body in a classifier of transformers: its input is the body's output."""

    def forward(self, *args: Any, inputs_embeds: Tensor, **more: Any) -> Any:
        """Return states [b, 1, d_model] as the last hidden ones, and the first of them as the pooled one."""
        from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

        return BaseModelOutputWithPoolingAndCrossAttentions(
            last_hidden_state=cast(Any, inputs_embeds), pooler_output=cast(Any, inputs_embeds[:, 0])
        )


class FamilyHead(nn.Module):
    """The head of a classifier of transformers, whatever it is: the classifier without its body."""

    def __init__(self, theirs: Any) -> None:
        super().__init__()
        setattr(theirs, theirs.base_model_prefix, BodyStandIn())
        self.theirs = theirs

    def forward(self, pooled: Tensor) -> Tensor:
        logits: Tensor = self.theirs(inputs_embeds=pooled[:, None]).logits
        return logits


class HubModel(Classifier):
    """A classifier on any text architecture of transformers, with its own head or a linear one."""

    table: Any
    """The names of the tensors (`heedful.checkpoints.tables.Family`)."""

    def __init__(self, body: HubBody, n_classes: int, form: HeadForm, theirs: Any) -> None:
        super().__init__(cast(Any, body), n_classes, "linear")
        if form == "family":
            self.form, self.head = form, cast(Any, FamilyHead(theirs))


def role_of(name: str) -> str | None:
    parts = name.split(".")
    if not any(part.isdigit() for part in parts):
        return None
    inside = any(INSIDE_ATTENTION.search(part) for part in parts[:-1])
    for role in ("q", "k", "v", "o") if inside else ("ff",):
        if any(ROLE_NAMES[role].fullmatch(".".join(parts[-n:])) for n in (1, 2)):
            return role
    return None
