"""BERT as students write it: blocks, encoders, classifiers and masked language models."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heedful.contracts.suites.transformer import SIZES
from heedful.course.forms.blocks import find_block
from heedful.course.forms.gpt import pick_outputs
from heedful.course.forms.model_roles import find_model_roles, has_own_positions, is_complete, to_ids
from heedful.course.forms.roles import PACKINGS, Slot, is_norm
from heedful.course.forms.tiny_bert import (
    THEIR_NAMES,
    TinyBert,
    fill_encoder,
    find_encoder,
    make_their_config,
    save_their_model,
)
from heedful.course.student_file import Operation, StudentFile, build, parameters_of, pick_parameter, simplify

CLASSIFIERS = [
    "BertForSequenceClassification",
    "BertClassifier",
    "BertForClassification",
    "SentimentClassifier",
    "SequenceClassifier",
    "TextClassifier",
    "Classifier",
]
MASKED_MODELS = [
    "BertForMaskedLanguageModel",
    "BertForMaskedLM",
    "BertForMLM",
    "MaskedLanguageModel",
    "BertMLM",
    "MaskedLM",
]
ENCODERS = ["BertModel", "Bert", "BertEncoder", "TransformerEncoder", "Encoder", "EncoderModel"]
ENCODER_NAMES = [
    "encoder",
    "bert",
    "backbone",
    "base",
    "basemodel",
    "model",
    "body",
    "transformer",
    "pretrainedmodel",
    "bertmodel",
]
PATH_NAMES = [
    "modelname",
    "modelnameorpath",
    "pretrained",
    "checkpoint",
    "name",
    "path",
    "modelpath",
    "pretrainedname",
    "bertname",
]
CONFIG_NAMES = ["config", "cfg", "bertconfig", "args"]
STYLES = ("transformers", "tensor")


class BertForm:
    """How to build and call one student's class.

    Its first parameter may be a configuration (of transformers if the class is theirs), an encoder, or a
    name or folder for `from_pretrained`; our tiny BERT is given where an encoder is expected.
    """

    def __init__(self, kind: type[nn.Module], more: Mapping[str, Any] | None = None) -> None:
        self.kind, self.more = kind, dict(more or {})
        self.names = parameters_of(kind)
        self.mask_name = pick_parameter(self.names[1:], "attention_mask", "mask", "attn_mask", "padding_mask")
        self.labels_name = pick_parameter(self.names[1:], "labels", "label", "targets", "target", "y")
        self.problem = ""

    def arguments(self, style: str) -> dict[str, Any]:
        """Return what the class is built from; sizes are left to `build`."""
        found: dict[str, Any] = {}
        for name, parameter in inspect.signature(self.kind).parameters.items():
            simple = simplify(name)
            if simple in CONFIG_NAMES:
                theirs = any(base.__module__.startswith("transformers") for base in self.kind.__mro__)
                if theirs or uses_transformers(self.kind):
                    found[name] = make_their_config()
                    for key, value in self.more.items():
                        setattr(found[name], key, value)
            elif simple in ENCODER_NAMES and parameter.annotation not in (str, "str"):
                found[name] = TinyBert(style)
            elif simple in PATH_NAMES or simple in ENCODER_NAMES:
                found[name] = str(save_their_model(Path(tempfile.mkdtemp(prefix="tiny-bert-"))))
        return found

    @cached_property
    def model(self) -> nn.Module:
        """The model in evaluation mode, with an encoder of the style that it can use."""
        error: Exception | None = None
        for style in STYLES:
            torch.manual_seed(0)
            try:
                module: nn.Module = self.construct(style)
                module.eval()
                ids = torch.ones(2, 4, dtype=torch.long)
                module(ids, **({self.mask_name: ids.clone()} if self.mask_name else {}))
                return module
            except Exception as failed:  # another style may fit
                error = error or failed
        if error is None or not self.labels_name:
            raise error or TypeError("it cannot be built")
        return self.construct(STYLES[0]).eval()

    def construct(self, style: str) -> nn.Module:
        """Build one model; parameters that are not named here get sizes."""
        sizes = {**SIZES, "head": SIZES["width"] // SIZES["heads"], "dropout": 0.1, **self.more}
        arguments = self.arguments(style)
        rest = inspect.signature(self.kind).parameters
        if not arguments:
            return build_module(self.kind, sizes)

        def create(**others: Any) -> Any:
            return self.kind(**arguments, **others)

        create.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [p.replace(kind=p.KEYWORD_ONLY) for n, p in rest.items()
             if n not in arguments and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        )  # fmt: skip
        return build_module(create, sizes)

    @cached_property
    def slots(self) -> tuple[dict[str, Slot], list[str]]:
        """The parameters outside the encoder by their roles, and those that are unknown."""
        module = self.model
        encoder = find_encoder(module)
        inside = {id(p) for p in encoder.parameters()} if encoder is not None else set()
        slots: dict[str, Slot] = {}
        unknown = []
        last = ""
        for name, parameter in module.named_parameters():
            if id(parameter) in inside:
                continue
            parent = module.get_submodule(name.rpartition(".")[0])
            role = name_head_role(name, parameter, parent, last)
            if role is None or role in slots:
                unknown.append(name)
            else:
                slots[role], last = Slot(parameter), role
        return slots, unknown

    def fill(self, parameters: Mapping[str, Tensor], packing: str) -> None:
        """Copy parameters into the encoder and the heads, as far as their roles are known."""
        encoder = find_encoder(self.model)
        if encoder is not None:
            fill_encoder(encoder, parameters)
            for role, slot in self.slots[0].items():
                slot.fill(parameters[role])
            return
        roles = find_model_roles(self.model, SIZES)
        if is_complete(roles, ()):
            roles.fill(parameters, SIZES["heads"], packing)

    def call_model(
        self,
        input_ids: Tensor,
        mask: Tensor | None = None,
        labels: Tensor | None = None,
        parameters: Mapping[str, Tensor] | None = None,
        packing: str = PACKINGS[0],
        backward: bool = False,
        training: bool = False,
        **_: Any,
    ) -> dict[str, Any]:
        """Carry out the operation of a model."""
        module = self.model
        if parameters:
            self.fill(parameters, packing)
        module.train(training)
        module.zero_grad()
        arguments: dict[str, Any] = {}
        if self.mask_name is not None:
            arguments[self.mask_name] = (torch.ones_like(input_ids) if mask is None else mask).long()
        if labels is not None and self.labels_name is not None:
            arguments[self.labels_name] = to_ids(labels)
        returned = module(to_ids(input_ids), **arguments)
        module.eval()
        if hasattr(returned, "last_hidden_state"):
            return {"out": returned.last_hidden_state}
        logits, loss = pick_outputs(returned)
        answer: dict[str, Any] = {"out": logits}
        if loss is not None and labels is not None:
            answer["loss"] = loss
            first = returned[0] if isinstance(returned, tuple | list) else loss
            answer["loss_first"] = bool(isinstance(first, Tensor) and first.numel() == 1)
        if backward and loss is not None:
            loss.mean().backward()  # type: ignore[no-untyped-call]
            answer["without_gradient"] = [
                n for n, p in module.named_parameters()
                if p.requires_grad and p.grad is None and "pool" not in n and "token_type" not in n
            ]  # fmt: skip
        return answer

    def facts(self) -> dict[str, Any]:
        """Return what was understood."""
        facts: dict[str, Any] = {"found": self.kind.__name__, "roles": [], "packings": []}
        facts |= {"masks": self.mask_name is not None, "labels": self.labels_name is not None}
        try:
            module = self.model
        except Exception as error:  # told when the operation is carried out
            return facts | {"problem": f"{type(error).__name__}: {error}"[:300]}
        if (encoder := find_encoder(module)) is not None:
            slots, unknown = self.slots
            facts["unknown"] = unknown
            names = [*THEIR_NAMES.values(), *slots]
            if not has_pooler(encoder):
                names = [n for n in names if not n.startswith("pool")]
            return facts | ({} if unknown else {"roles": names})
        roles = find_model_roles(module, SIZES)
        facts["unknown"] = roles.unknown
        if roles.blocks:
            facts["layers"] = len(roles.blocks)
        if is_complete(roles) and not has_own_positions(module):
            facts |= {"roles": roles.names(), "packings": list(PACKINGS) if roles.packed else []}
        return facts


def has_pooler(encoder: nn.Module) -> bool:
    return isinstance(encoder, TinyBert) or getattr(encoder, "pooler", None) is not None


def build_module(thing: Any, sizes: Mapping[str, Any]) -> nn.Module:
    module = build(thing, sizes)
    if not isinstance(module, nn.Module):
        raise TypeError("it is not an nn.Module")
    return module


def uses_transformers(kind: type) -> bool:
    """Whether the class builds a model of transformers from its configuration."""
    module = inspect.getmodule(kind)
    names = getattr(vars(kind).get("__init__"), "__code__", simplify.__code__).co_names
    return any(
        str(getattr(getattr(module, name, None), "__module__", "")).startswith("transformers")
        for name in names
    )


def name_head_role(name: str, parameter: Tensor, parent: nn.Module, last: str) -> str | None:
    """Return the role of a parameter of a head; None if it is unknown."""
    width, vocabulary, labels = SIZES["width"], SIZES["vocabulary"], SIZES["labels"]
    shape, kind = tuple(parameter.shape), "bias" if name.endswith("bias") else "weight"
    if is_norm(name.split(".")[:-1], parent) and shape == (width,):
        return f"head_norm_{kind}"
    if shape == (width,):
        return "transform_bias" if last == "transform_weight" else None
    roles = {(vocabulary, width): "head_weight", (vocabulary,): "head_bias", (labels, width): "class_weight",
             (labels,): "class_bias", (width, width): "transform_weight"}  # fmt: skip
    return roles.get(shape)


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operations that the file has: a block, an encoder, a classifier, a masked language model."""
    operations = find_block(file, causal=False)
    for operation, names in (
        ("encode", ENCODERS),
        ("classify", CLASSIFIERS),
        ("predict_masked", MASKED_MODELS),
    ):
        kind = file.find(names, kind="class")
        if kind is None or not issubclass(kind, nn.Module) or not parameters_of(kind):
            continue
        form = BertForm(kind)
        operations[operation] = Operation(form.call_model, form.facts())
    return operations
