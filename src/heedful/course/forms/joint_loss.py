"""Joint losses as students write them: a function of logits and labels, or a model with two heads."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.subject import NotApplicable
from heedful.course.forms.bert import BertForm
from heedful.course.forms.gpt import pick_outputs
from heedful.course.forms.model_roles import to_ids
from heedful.course.forms.tiny_bert import TinyBert
from heedful.course.student_file import Operation, StudentFile, parameters_of, pick_parameter, simplify

FUNCTIONS = ["joint_loss", "combined_loss", "combine_losses", "multitask_loss", "joint_objective", "cls_mlm_loss", "total_loss",
             "compute_joint_loss", "compute_loss"]  # fmt: skip
MODELS = ["BertForCLSMLM", "BertForClsMlm", "BertForJointCLSMLM", "BertForJoint", "JointModel", "JointBert", "BertJoint",
          "MultiTaskBert", "BertCLSMLM", "BertForMultiTask"]  # fmt: skip
ALPHA_NAMES = [
    "mlm_alpha",
    "alpha",
    "mlm_weight",
    "weight",
    "lambda_mlm",
    "lam",
    "lambda_",
    "mlm_lambda",
    "beta",
    "mlm_coef",
]
TOKEN_WORDS = ("mlm", "token", "masked", "lm", "vocab")


class LossForm:
    """How to call one student's function of two logits and two labels."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.places = self.find_places(list(inspect.signature(function).parameters))

    def find_places(self, names: list[str]) -> dict[str, str]:
        """Return which parameter gets which input, by their names."""
        places: dict[str, str] = {}
        for name in names:
            simple = simplify(name)
            tokens = any(word in simple for word in TOKEN_WORDS)
            if simple in map(simplify, ALPHA_NAMES):
                places["alpha"] = name
            elif any(word in simple for word in ("label", "target", "gold")) or simple in ("y", "ymlm"):
                places["token_labels" if tokens else "labels"] = name
            elif any(word in simple for word in ("logit", "pred", "score", "output")):
                places["token_logits" if tokens else "class_logits"] = name
        return places

    def combine(self, **inputs: Any) -> dict[str, Any]:
        """Carry out the operation `combine`."""
        missing = {"class_logits", "labels", "token_logits", "token_labels", "alpha"} - set(self.places)
        if missing:
            raise NotApplicable(f"it has no parameter for {', '.join(sorted(missing))}")
        returned = self.function(**{name: inputs[place] for place, name in self.places.items()})
        if isinstance(returned, tuple | list):
            returned = returned[0]
        if isinstance(returned, Mapping):
            returned = returned["loss"]
        return {"out": torch.as_tensor(returned)}


class JointForm(BertForm):
    """How to build and call one student's model; alpha is an argument or an attribute of the configuration."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__(kind)
        self.with_alpha = cache(lambda alpha: BertForm(kind, dict.fromkeys(ALPHA_NAMES[:4], alpha)))
        names = parameters_of(kind)
        self.alpha_name = pick_parameter(names, *ALPHA_NAMES)
        self.masked_names = {
            "mlm_input_ids": pick_masked(names, "inputids", "ids", "inputs", "input", "tokens"),
            "mlm_mask": pick_masked(names, "attentionmask", "attnmask", "mask"),
            "mlm_labels": pick_masked(names, "labels", "label", "targets"),
        }
        plain = [n for n in names if n not in self.masked_names.values()]
        self.labels_name = pick_parameter(plain[1:], "labels", "label", "cls_labels", "targets")
        self.mask_name = pick_parameter(plain[1:], "attention_mask", "mask")

    def joint_model(
        self, input_ids: Tensor, alpha: float, mask: Tensor | None = None, labels: Tensor | None = None,
        parameters: Mapping[str, Tensor] | None = None, **masked: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Carry out the operation `joint_model`."""
        form = self if self.alpha_name else self.with_alpha(float(alpha))
        module = form.model
        if parameters:
            form.fill(parameters, "")
        module.eval()
        arguments: dict[str, Any] = {self.alpha_name: alpha} if self.alpha_name else {}
        if self.mask_name and mask is not None:
            arguments[self.mask_name] = mask.long()
        if labels is not None:
            if self.labels_name is None or not self.masked_names["mlm_labels"]:
                raise NotApplicable("which of its parameters are both kinds of labels is unknown")
            arguments[self.labels_name] = to_ids(labels)
            for place, name in self.masked_names.items():
                if name:
                    arguments[name] = masked[place].long()
        logits, loss = pick_outputs(module(to_ids(input_ids), **arguments))
        return {"out": logits} | ({"loss": loss} if loss is not None and labels is not None else {})

    def facts(self) -> dict[str, Any]:
        """Return what was understood: roles, and the number of encoders."""
        form = self if self.alpha_name else self.with_alpha(1.0)
        facts = BertForm.facts(form)
        if "problem" not in facts:
            encoders = [
                m for m in form.model.modules() if isinstance(m, TinyBert) or type(m).__name__ == "BertModel"
            ]
            facts["encoders"] = len({id(next(iter(m.parameters()))) for m in encoders})
            if facts["encoders"] != 1:
                facts["roles"] = []
        return facts


def pick_masked(names: list[str], *alternatives: str) -> str | None:
    """Return the parameter of masked texts with one of these meanings."""
    for name in names:
        simple = simplify(name)
        for word in ("mlm", "maskedlm", "masked", "lm", "unlabeled"):
            if word in simple and simple.replace(word, "", 1) in alternatives:
                return name
    return None


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operations that the file has: a function, a model."""
    operations: dict[str, Operation] = {}
    function = file.find(FUNCTIONS, kind="function")
    if function is not None:
        operations["combine"] = Operation(LossForm(function).combine, {"found": function.__name__})
    kind = file.find(MODELS, kind="class")
    if kind is not None and issubclass(kind, nn.Module) and parameters_of(kind):
        form = JointForm(kind)
        operations["joint_model"] = Operation(form.joint_model, form.facts())
    return operations
