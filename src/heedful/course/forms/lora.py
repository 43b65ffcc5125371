"""LoRA, bottleneck adapters and soft prompts as students write them."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.contracts.subject import NotApplicable
from heedful.course.student_file import Operation, StudentFile, build, parameters_of, simplify

NAMES = [
    "LoRALinear",
    "LinearWithLoRA",
    "LinearLoRA",
    "LoRALinearLayer",
    "LowRankLinear",
    "LoRALayer",
    "LoRA",
    "LoRAModule",
    "LoRAAdapter",
    "LowRankAdapter",
]
ADAPTERS = ["Adapter", "BottleneckAdapter", "AdapterLayer", "HoulsbyAdapter", "Bottleneck"]
PROMPTS = [
    "SoftPrompt",
    "PromptEmbedding",
    "PromptTuning",
    "SoftEmbedding",
    "PrefixEmbedding",
    "SoftPromptEmbedding",
]
LAYER_NAMES = [
    "linear",
    "base",
    "layer",
    "original",
    "baselayer",
    "module",
    "linearlayer",
    "originallayer",
    "pretrained",
    "frozen",
    "wrapped",
]
MERGES, UNMERGES = (
    ("merge", "mergeweights", "fuse", "merged", "mergeandunload", "fold"),
    ("unmerge", "unmergeweights", "unfuse"),
)
INNER_NAMES = [
    "bottleneck",
    "bottleneckdim",
    "bottlenecksize",
    "m",
    "hidden",
    "reduction",
    "adaptersize",
    "adapterdim",
    "downdim",
    "dimbottleneck",
    "rank",
    "r",
]
LENGTH_NAMES = [
    "length",
    "nprompt",
    "nprompts",
    "nprefix",
    "npromptt",
    "prefixlength",
    "promptlength",
    "ntokens",
    "numvirtualtokens",
    "nvirtual",
    "numtokens",
    "n",
]


class LoRAForm:
    """How to build one student's layer, fill its two factors, and merge it."""

    def __init__(self, kind: type[nn.Module]) -> None:
        self.kind = kind
        self.problem = ""

    def build_layer(
        self, weight: Tensor, bias: Tensor, rank: int, alpha: float
    ) -> tuple[nn.Module, nn.Linear]:
        """Return a new layer around a linear one; both have the weights."""
        out_size, in_size = weight.shape
        base = nn.Linear(in_size, out_size)
        base.weight.data.copy_(weight)
        base.bias.data.copy_(bias)
        sizes: dict[str, Any] = {"dropout": 0.1, "p": 0.1}
        for names, value in (
            ("r rank lora_rank lora_r low_rank lora_dim", rank),
            ("alpha lora_alpha", alpha),
            ("in_features in_dim d_in input_dim in_size input_size", in_size),
            ("out_features out_dim d_out output_dim out_size output_size", out_size),
        ):
            sizes |= dict.fromkeys(names.split(), value)
        arguments = {n: base for n in inspect.signature(self.kind).parameters if simplify(n) in LAYER_NAMES}
        layer = build(self.kind, {**sizes, **arguments})
        if not isinstance(layer, nn.Module):
            raise NotApplicable(f"{self.kind.__name__} is not an nn.Module")
        if not arguments:
            self.fill_base(layer, weight, bias)
        return layer, base

    def fill_base(self, layer: nn.Module, weight: Tensor, bias: Tensor) -> None:
        """Copy the frozen weight and bias into a layer that has its own."""
        for parameter in self.find_base(layer).values():
            value = bias if parameter.dim() == 1 else weight
            parameter.data.copy_(value if parameter.shape == value.shape else value.T)

    def find_base(self, layer: nn.Module) -> dict[str, Tensor]:
        """Return the layer's own weight and bias, also after they were put into another place."""
        tensors = [*layer.named_parameters(), *layer.named_buffers()]
        shapes = {"weight": ((5, 6), (6, 5)), "bias": ((5,),)}
        return {
            name: tensor
            for name, wanted in shapes.items()
            for path, tensor in tensors
            if tuple(tensor.shape) in wanted and not ("lora" in path.lower() and name == "weight")
        }

    def find_factors(self, layer: nn.Module, rank: int) -> dict[str, list[Tensor]]:
        """Return the parameters of the shapes of A and of B."""
        shapes = {"a": ((rank, 6), (6, rank)), "b": ((5, rank), (rank, 5))}
        return {
            name: [p for p in layer.parameters() if tuple(p.shape) in wanted]
            for name, wanted in shapes.items()
        }

    def fill(self, layer: nn.Module, rank: int, values: Mapping[str, Tensor]) -> None:
        factors = self.find_factors(layer, rank)
        if any(len(found) != 1 for found in factors.values()):
            raise NotApplicable("which of its parameters are the two thin matrices is unknown")
        for name, (parameter,) in factors.items():
            value = values[name]
            parameter.data.copy_(value if parameter.shape == value.shape else value.T)

    def call_layer(self, layer: nn.Module, base: nn.Linear, x: Tensor) -> Tensor:
        """Return the output; that of the frozen layer is added if this one has none of its own."""
        out: Tensor = layer(x)
        return out if self.find_base(layer).get("weight") is not None else out + base(x)

    def adapt_linear(
        self, weight: Tensor, bias: Tensor, x: Tensor, rank: int, alpha: float, a: Tensor | None = None,
        b: Tensor | None = None, **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Carry out the operation `adapt_linear`."""
        layer, base = self.build_layer(weight, bias, rank, alpha)
        if a is not None and b is not None:
            self.fill(layer, rank, {"a": a, "b": b})
        layer.eval()
        return {"out": self.call_layer(layer, base, x)}

    def train_adapter(
        self,
        weight: Tensor,
        bias: Tensor,
        x: Tensor,
        rank: int,
        alpha: float,
        target: Tensor,
        steps: int,
        **_: Any,
    ) -> dict[str, Any]:
        """Carry out the operation `train_adapter`: steps of gradient descent on all that has requires_grad."""
        layer, base = self.build_layer(weight, bias, rank, alpha)
        learning = {n: p for n, p in layer.named_parameters() if p.requires_grad}
        before = {n: p.detach().clone() for n, p in learning.items()}
        layer.train()
        optimizer = torch.optim.SGD(list(learning.values()), lr=0.02)
        for _step in range(steps):
            optimizer.zero_grad()
            F.mse_loss(self.call_layer(layer, base, x), target).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        layer.eval()
        own = self.find_base(layer)
        units = torch.eye(weight.shape[1])
        answer: dict[str, Any] = {"trained": sum(p.numel() for p in learning.values())}
        answer["still"] = [n for n, p in learning.items() if torch.equal(p, before[n])]
        for name, value in (("weight", weight), ("bias", bias)):
            if (tensor := own.get(name)) is not None:
                answer[name] = tensor.detach() if tensor.shape == value.shape else tensor.detach().T
        return answer | {"at_units": self.call_layer(layer, base, units),
                         "at_zero": self.call_layer(layer, base, torch.zeros_like(units))}  # fmt: skip

    def merge(
        self, weight: Tensor, bias: Tensor, x: Tensor, rank: int, alpha: float, a: Tensor, b: Tensor, undo: bool = False,
        **_: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """Carry out the operation `merge`; a method may change the layer or return another one."""
        layer, base = self.build_layer(weight, bias, rank, alpha)
        self.fill(layer, rank, {"a": a, "b": b})
        layer.eval()
        method = pick_method(self.kind, MERGES)
        returned = getattr(layer, method or "")()
        merged = returned if isinstance(returned, nn.Module) else layer
        answer: dict[str, Any] = {"out": self.call_layer(merged, base, x)}
        if (tensor := self.find_base(merged).get("weight")) is not None:
            answer["weight"] = (
                tensor.detach().clone() if tensor.shape == weight.shape else tensor.detach().T.clone()
            )
        if undo and (back := pick_method(self.kind, UNMERGES)) is not None:
            getattr(layer, back)()
            answer["undone"] = self.call_layer(layer, base, x)
        return answer

    def facts(self) -> dict[str, Any]:
        """Return what was understood: whether the two factors are known."""
        facts: dict[str, Any] = {"found": self.kind.__name__, "factors": False}
        try:
            layer, _ = self.build_layer(torch.zeros(5, 6), torch.zeros(5), 2, 8.0)
        except Exception as error:  # told when the operation is carried out
            return facts | {"problem": f"{type(error).__name__}: {error}"[:300]}
        factors = self.find_factors(layer, 2)
        return facts | {"factors": all(len(found) == 1 for found in factors.values())}


def pick_method(kind: type, names: tuple[str, ...]) -> str | None:
    own = {
        simplify(n): n for n in dir(kind) if callable(getattr(kind, n, None)) and not hasattr(nn.Module, n)
    }
    return next((own[name] for name in names if name in own), None)


class AdapterForm:
    """How to build one student's bottleneck adapter or soft prompt."""

    def __init__(self, kind: type[nn.Module], names: list[str]) -> None:
        self.kind, self.names = kind, names

    def build_module(self, width: int, size: int) -> nn.Module:
        """Build it for a width and a bottleneck (or a number of vectors)."""
        sizes: dict[str, Any] = {"width": width, "dropout": 0.0, "scale": 1.0, "init_scale": 1e-3}
        for name in inspect.signature(self.kind).parameters:
            if simplify(name) in self.names:
                sizes[name] = width // size if "reduction" in name else size
            elif simplify(name) in ("inputdim", "indim", "size", "inputsize", "infeatures"):
                sizes[name] = width
        module: nn.Module = build(self.kind, sizes)
        return module.eval()

    def bottleneck(self, x: Tensor, bottleneck: int, randomize: bool = False, **_: Any) -> dict[str, Any]:
        """Carry out the operation `bottleneck`."""
        module = self.build_module(x.shape[-1], bottleneck)
        if randomize:
            for parameter in module.parameters():
                parameter.data.copy_(torch.randn_like(parameter))
        return {"out": module(x), "trained": count_trained(module)}

    def soft_prompt(self, x: Tensor, length: int, **_: Any) -> dict[str, Any]:
        """Carry out the operation `soft_prompt`; a class that takes no states is called without them."""
        module = self.build_module(x.shape[-1], length)
        names = parameters_of(self.kind)
        if not names or simplify(names[0]) in ("batchsize", "batch", "b", "bsz"):
            prompt: Tensor = module(*([len(x)] if names else []))
            prompt = (
                prompt.expand(len(x), -1, -1) if prompt.dim() == 3 else prompt[None].expand(len(x), -1, -1)
            )
            return {"out": torch.cat([prompt, x], 1), "trained": count_trained(module)}
        returned = module(x)
        return {
            "out": returned[0] if isinstance(returned, tuple) else returned,
            "trained": count_trained(module),
        }


def count_trained(module: nn.Module) -> int:
    return sum(p.numel() for p in module.parameters() if p.requires_grad)


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operations that the file has: LoRA, an adapter, a prompt."""
    operations: dict[str, Operation] = {}
    kind = file.find(NAMES, kind="class")
    if kind is not None and issubclass(kind, nn.Module):
        form = LoRAForm(kind)
        operations["adapt_linear"] = Operation(form.adapt_linear, form.facts())
        operations["train_adapter"] = Operation(form.train_adapter, {"found": kind.__name__})
        if pick_method(kind, MERGES) is not None:
            operations["merge"] = Operation(form.merge, {"found": kind.__name__})
    for operation, names, sizes in (
        ("bottleneck", ADAPTERS, INNER_NAMES),
        ("soft_prompt", PROMPTS, LENGTH_NAMES),
    ):
        kind = file.find(names, kind="class")
        if kind is not None and issubclass(kind, nn.Module):
            found = AdapterForm(kind, sizes)
            operations[operation] = Operation(getattr(found, operation), {"found": kind.__name__})
    return operations
