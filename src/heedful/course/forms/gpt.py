"""GPT models as students write them: built from a configuration or sizes, called with ids and targets."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.suites.transformer import SIZES
from heedful.course.forms.blocks import find_block
from heedful.course.forms.model_roles import (
    ModelRoles,
    find_model_roles,
    has_own_positions,
    is_complete,
    to_ids,
)
from heedful.course.forms.projections import find_self_attention
from heedful.course.forms.roles import PACKINGS
from heedful.course.student_file import Operation, StudentFile, build, parameters_of, pick_parameter

NAMES = [
    "GPT",
    "GPTLanguageModel",
    "MiniGPT",
    "NanoGPT",
    "GPTModel",
    "GPT2",
    "TransformerLM",
    "LanguageModel",
    "TransformerLanguageModel",
    "TransformerDecoder",
    "Decoder",
    "DecoderLM",
]
OUTPUTS = ("logits", "out", "output")


class GPTForm:
    """How to build and call one student's model."""

    def __init__(self, kind: type[nn.Module]) -> None:
        self.kind = kind
        names = parameters_of(kind)
        self.labels_name = pick_parameter(names[1:], "labels")
        self.targets_name = self.labels_name or pick_parameter(names[1:], "targets", "target", "y", "yb")
        default = inspect.Parameter.empty
        parameters = inspect.signature(kind.forward).parameters
        self.needs_targets = (
            self.targets_name is not None and parameters[self.targets_name].default is default
        )

    @cached_property
    def model(self) -> tuple[nn.Module, ModelRoles]:
        """The model in evaluation mode, and the roles of its parameters."""
        torch.manual_seed(0)
        module = build(self.kind, {**SIZES, "head": SIZES["width"] // SIZES["heads"], "dropout": 0.1})
        return module.eval(), find_model_roles(module, SIZES)

    def next_token(
        self,
        input_ids: Tensor,
        targets: Tensor | None = None,
        parameters: Mapping[str, Tensor] | None = None,
        packing: str = PACKINGS[0],
        backward: bool = False,
        training: bool = False,
        **_: Any,
    ) -> dict[str, Any]:
        """Carry out the operation `next_token`; the model is given targets where it can take them.

        Models that have no targets may return the last position alone, which is no answer to compare.
        """
        module, roles = self.model
        if parameters and is_complete(roles, ()):
            roles.fill(parameters, SIZES["heads"], packing)
        module.train(training)
        module.zero_grad()
        ids = to_ids(input_ids)
        arguments: dict[str, Any] = {}
        if self.targets_name is not None:
            arguments[self.targets_name] = ids.clone() if targets is None else to_ids(targets)
        logits, loss = pick_outputs(module(ids, **arguments))
        answer: dict[str, Any] = {"out": shape_logits(logits, ids)}
        if loss is not None and targets is not None:
            answer["loss"] = loss
        if backward and loss is not None:
            loss.mean().backward()  # type: ignore[no-untyped-call]
            answer["without_gradient"] = [
                name for name, p in module.named_parameters() if p.requires_grad and p.grad is None
            ]
        module.eval()
        return answer

    def facts(self) -> dict[str, Any]:
        """Return what was understood."""
        facts: dict[str, Any] = {"found": self.kind.__name__, "roles": [], "packings": []}
        facts |= {"targets": self.targets_name is not None, "shifts": self.labels_name is not None}
        try:
            module, roles = self.model
        except Exception as error:  # told when the operation is carried out
            return facts | {"problem": f"{type(error).__name__}: {error}"}
        if roles.blocks:
            facts["layers"] = len(roles.blocks)
        if is_complete(roles) and not has_own_positions(module):
            facts |= {"roles": roles.names(), "packings": list(PACKINGS) if roles.packed else []}
        return facts | {"unknown": roles.unknown}


def pick_outputs(returned: Any) -> tuple[Tensor, Tensor | None]:
    """Return the logits and the loss among what a model returned."""
    if isinstance(returned, Tensor):
        return returned, None
    if hasattr(returned, "logits"):
        return returned.logits, getattr(returned, "loss", None)
    if isinstance(returned, Mapping):
        name = pick_parameter(returned, *OUTPUTS)
        return returned[name or ""], returned.get("loss")
    if not isinstance(returned, tuple | list):
        raise TypeError(f"it returns {type(returned).__name__}, not logits")
    tensors = [part for part in returned if isinstance(part, Tensor)]
    logits = max(tensors, key=lambda part: part.dim())
    return logits, next((part for part in tensors if part.numel() == 1 and part is not logits), None)


def shape_logits(logits: Tensor, ids: Tensor) -> Tensor:
    """Return logits [b, t, vocabulary]; models that flatten them for the loss return [b t, vocabulary]."""
    if logits.dim() == 2 and len(logits) == ids.numel():
        return logits.reshape(*ids.shape, -1)
    return logits


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operations that the file has: attention, a block, a model."""
    operations = {**find_self_attention(file), **find_block(file, causal=True)}
    kind = file.find(NAMES, kind="class")
    if kind is not None and issubclass(kind, nn.Module) and parameters_of(kind):
        form = GPTForm(kind)
        operations["next_token"] = Operation(form.next_token, form.facts())
    return operations
