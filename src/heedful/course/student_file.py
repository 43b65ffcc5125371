"""A student's file: imports it, and finds the function or class that is meant."""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from heedful.contracts.subject import NotApplicable

ADAPTERS = "adapters.py"

SIZE_NAMES = {
    "width": "n_embd d_model embed_dim hidden_size dim d emb_dim embedding_dim n_embed width hidden_dim "
    "d_in model_dim",
    "heads": "n_head n_heads num_heads heads num_attention_heads h nhead",
    "length": "block_size max_len max_length seq_len context_length n_positions max_position_embeddings "
    "max_seq_len n_ctx ctx_len",
    "head": "d_k d_head head_dim head_size dim_k d_q d_v key_dim query_dim key_size",
    "vocabulary": "vocab_size n_vocab vocab num_embeddings n_tokens",
    "layers": "n_layer n_layers num_layers num_hidden_layers layers depth",
    "inner": "intermediate_size d_ff n_inner ffn_dim mlp_dim dim_feedforward ff_dim",
    "labels": "num_labels n_classes num_classes classes n_labels",
}
"""What students call the sizes of a model."""
DROPOUT_NAMES = [
    "attn_pdrop",
    "resid_pdrop",
    "embd_pdrop",
    "dropout",
    "attention_dropout",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "classifier_dropout",
    "drop_rate",
]


@dataclass(frozen=True)
class Operation:
    """A function that carries out an operation of a suite, and facts about what it calls."""

    function: Callable[..., Any]
    facts: dict[str, Any] = field(default_factory=dict)


class StudentFile:
    """An imported file with its functions and classes; a `script` does its work when it is run."""

    def __init__(self, path: Path, *, script: bool = False) -> None:
        self.path = Path(path).resolve()
        if str(self.path.parent) not in sys.path:
            sys.path.insert(0, str(self.path.parent))
        self.module = import_file(self.path, script)
        self.source = self.path.read_text("utf-8", errors="replace")
        adapters = self.path.parent / ADAPTERS
        self.adapters = import_file(adapters) if adapters.is_file() and adapters != self.path else self.module

    @classmethod
    def from_source(cls, source: str, name: str, *, script: bool = False) -> StudentFile:
        """Return a file that exists only as text; it is executed in this process."""
        file = cls.__new__(cls)
        file.path, file.source = Path(f"{name}.py"), source
        file.module = file.adapters = ModuleType(f"student_{re.sub(r'[^a-z0-9]', '_', name)}")
        sys.modules[file.module.__name__] = file.module
        with suppress(Exception, SystemExit) if script else nullcontext():
            exec(compile(source, str(file.path), "exec"), vars(file.module))
        return file

    def adapter(self, operation: str) -> Callable[..., Any] | None:
        """Return the function of `adapters.py` that is called like the operation."""
        if self.adapters is self.module:
            return None
        candidate = getattr(self.adapters, operation, None)
        own = inspect.isfunction(candidate) and candidate.__module__ == self.adapters.__name__
        return candidate if own else None

    def constant(self, name: str, default: Any = None) -> Any:
        """Return a constant of `adapters.py` or of the file."""
        return getattr(self.adapters, name, getattr(self.module, name, default))

    def functions(self) -> dict[str, Callable[..., Any]]:
        """Return the functions that the file defines."""
        return {n: f for n, f in vars(self.module).items() if inspect.isfunction(f) and self.is_own(f)}

    def classes(self) -> dict[str, type]:
        """Return the classes that the file defines."""
        return {n: c for n, c in vars(self.module).items() if inspect.isclass(c) and self.is_own(c)}

    def is_own(self, thing: Any) -> bool:
        return getattr(thing, "__module__", None) == self.module.__name__

    def find(self, names: Sequence[str], *, kind: str = "any", parameters: Sequence[str] = ()) -> Any:
        """Return the function or class with one of these names, in their order; None if there is none.

        Names are compared without case and underscores. Without a name that fits, the only function whose
        first parameters are `parameters` is taken.
        """
        kinds: dict[str, Mapping[str, Any]] = {
            "any": {**self.functions(), **self.classes()},
            "function": self.functions(),
            "class": self.classes(),
        }
        things = kinds[kind]
        by_name = {simplify(name): thing for name, thing in things.items()}
        for name in names:
            if simplify(name) in by_name:
                return by_name[simplify(name)]
        if parameters:
            fitting = [t for t in things.values() if has_parameters(t, parameters)]
            if len(fitting) == 1:
                return fitting[0]
        return None


def import_file(path: Path, script: bool = False) -> ModuleType:
    """Import a Python file by its path; a script may end early, for example for want of its data."""
    name = re.sub(r"\W", "_", path.stem)
    specification = importlib.util.spec_from_file_location(f"student_{name}", path)
    if specification is None or specification.loader is None:
        raise ImportError(f"{path} cannot be imported: it is not a .py file")
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    with suppress(Exception, SystemExit) if script else nullcontext():
        specification.loader.exec_module(module)
    return module


def simplify(name: str) -> str:
    return name.replace("_", "").lower()


def forward_of(thing: Any) -> Any:
    """Return what is called: a function itself, or a class's `forward`; None if it has none."""
    return getattr(thing, "forward", None) if inspect.isclass(thing) else thing


def parameters_of(thing: Any) -> list[str]:
    """Return the names of the parameters of a function, or of a class's `forward`."""
    function = forward_of(thing)
    if function is None:
        return []
    return [name for name in inspect.signature(function).parameters if name != "self"]


def has_parameters(thing: Any, wanted: Sequence[str]) -> bool:
    names = [simplify(n) for n in parameters_of(thing)[: len(wanted)]]
    return len(names) == len(wanted) and all(
        n == simplify(w) or n[:1] == w[:1] for n, w in zip(names, wanted, strict=True)
    )


def required_parameters(thing: Any) -> list[str]:
    """Return the parameters of a function, or of a class's `forward`, that have no default."""
    function = forward_of(thing)
    if function is None:
        return []
    empty, variable = (
        inspect.Parameter.empty,
        (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL),
    )
    parameters = inspect.signature(function).parameters.items()
    return [n for n, p in parameters if n != "self" and p.default is empty and p.kind not in variable]


def pick_parameter(names: Iterable[str], *alternatives: str) -> str | None:
    """Return the parameter that has one of these names; a name that contains one counts too."""
    names = list(names)
    by_name = {simplify(name): name for name in names}
    for alternative in alternatives:
        if simplify(alternative) in by_name:
            return by_name[simplify(alternative)]
    for alternative in alternatives:
        for simple, name in by_name.items():
            if len(alternative) > 2 and simplify(alternative) in simple:
                return name
    return None


class Config:
    """A configuration with every usual name of each size, for classes that are built from one object."""

    def __init__(self, sizes: Mapping[str, Any]) -> None:
        for name, value in sizes.items():
            for alias in [name, *SIZE_NAMES.get(name, "").split()]:
                setattr(self, alias, value)
        for name in DROPOUT_NAMES:
            setattr(self, name, sizes.get("dropout", 0.1))
        self.bias = True
        self.layer_norm_eps = self.layer_norm_epsilon = 1e-5
        self.hidden_act = "gelu"

    def __contains__(self, name: str) -> bool:
        return hasattr(self, name)

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def build(thing: Callable[..., Any], sizes: Mapping[str, Any]) -> Any:
    """Build an object of a class from sizes, through its parameters' names or one configuration.

    Raises `NotApplicable` if a parameter without a default has a name that is not known.
    """
    config = Config(sizes)
    arguments: dict[str, Any] = {}
    missing: list[str] = []
    for name, parameter in inspect.signature(thing).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if name in ("config", "cfg", "args", "conf", "model_config"):
            arguments[name] = config
        elif name in ("device",):
            arguments[name] = "cpu"
        elif hasattr(config, name):
            arguments[name] = getattr(config, name)
        elif "drop" in name:
            arguments[name] = sizes.get("dropout", 0.1)
        elif parameter.default is parameter.empty:
            missing.append(name)
    if missing:
        raise NotApplicable(
            f"{getattr(thing, '__name__', thing)} needs {', '.join(missing)}, whose meaning is unknown; "
            f"write a function in {ADAPTERS} that builds it"
        )
    return thing(**arguments)
