"""Options from Python's keywords: the signature of a function that takes the options of a command.

A function such as `heedful.adapt` has one parameter per field of one or several dataclasses, with the same
default. `scripts/write_api.py` writes these signatures down for editors and type checkers.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, get_args, get_origin

from cyclopts import Parameter

from heedful.errors import UserError, unknown
from heedful.options.types import CommaSeparated
from heedful.options.values import convert_value, members, type_hints

TRANSFORMERS_NAMES = {
    "learning_rate": "lr",
    "num_train_epochs": "epochs",
    "num_epochs": "epochs",
    "n_epochs": "epochs",
    "max_steps": "steps",
    "per_device_train_batch_size": "batch_size",
    "per_gpu_train_batch_size": "batch_size",
    "train_batch_size": "batch_size",
    "gradient_accumulation_steps": "accumulate",
    "max_length": "max_len",
    "max_seq_length": "max_len",
    "max_seq_len": "max_len",
    "model_max_length": "max_len",
    "block_size": "block",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
    "num_warmup_steps": "warmup",
    "lr_scheduler_type": "schedule",
    "optim": "optimizer",
    "max_grad_norm": "clip",
    "label_smoothing_factor": "label_smoothing",
    "mlm_probability": "mask_rate",
    "hidden_dropout_prob": "dropout",
    "attn_implementation": "attention",
    "eval_steps": "eval_every",
    "early_stopping_patience": "patience",
    "metric_for_best_model": "metric",
    "output_dir": "out",
    "overwrite_output_dir": "overwrite",
    "resume_from_checkpoint": "resume",
    "report_to": "track",
    "model_name_or_path": "model",
    "pretrained_model_name_or_path": "model",
    "model_name": "model",
    "dataset_name": "task",
    "train_dataset": "task",
    "task_name": "task",
    "tokenizer_name": "tokenizer",
    "processing_class": "tokenizer",
    "random_state": "seed",
    "class_weight": "class_weights",
    "peft_config": "method_options",
    "nproc_per_node": "processes",
    "bs": "batch_size",
    "logging_steps": "eval_every",
}
"""Our names of options that transformers, peft, torchrun and scikit-learn call otherwise."""
TRANSFORMERS_VALUES = {
    "fp16": 'use precision="auto"',
    "bf16": 'use precision="bfloat16"',
    "use_cpu": 'use device="cpu"',
    "no_cuda": 'use device="cpu"',
    "load_best_model_at_end": 'use select="best"',
    "dataloader_num_workers": "the data needs no workers",
    "num_labels": "the labels are counted in the data",
    "evaluation_strategy": "use eval_every=100, which is after this many steps; by default after every epoch",
    "eval_strategy": "use eval_every=100, which is after this many steps; by default after every epoch",
    "save_strategy": 'use select="best" (the default) or select="last"',
    "save_steps": 'use select="best" (the default) or select="last"',
    "lora_r": 'use method="lora" with method_options={"rank": 8}',
    "lora_rank": 'use method="lora" with method_options={"rank": 8}',
    "r": 'use method="lora" with method_options={"rank": 8}',
    "lora_alpha": 'use method="lora" with method_options={"alpha": 16}',
    "lora_dropout": 'use method="lora" with method_options',
    "target_modules": 'use method="lora" with method_options={"targets": "q,v"}',
}
"""What to write for options of theirs that are no option of ours by themselves."""


@dataclass(frozen=True)
class Option:
    """One parameter of a function: a field of a dataclass of options."""

    name: str
    owner: type[Any]
    hint: Any
    default: Any
    about: str

    @property
    def marks(self) -> tuple[Any, ...]:
        return get_args(self.hint)[1:] if get_origin(self.hint) is Annotated else ()

    @property
    def comma_separated(self) -> bool:
        return any(isinstance(mark, CommaSeparated) for mark in self.marks)

    @property
    def decided(self) -> bool:
        """Whether the command line does not have the option, as an argument or because a study decides it."""
        return any(isinstance(mark, Parameter) and mark.parse is False for mark in self.marks)

    def annotation(self) -> Any:
        """Return the type that a function accepts, which is wider than the option's own."""
        if self.comma_separated:
            return str | float | Sequence[str] | Sequence[float]
        kinds = [kind for kind, _ in members(self.hint)]
        accepted: Any = None
        for kind in kinds:
            wider: Any = kind
            if kind is Path:
                wider = str | os.PathLike[str]
            elif get_origin(kind) is tuple:
                wider = Sequence[str] | Mapping[str, Any] if self.name in TABLES else Sequence[str]
            accepted = wider if accepted is None else accepted | wider
        return accepted

    def convert(self, value: Any, where: str) -> Any:
        """Return a value from Python as the option's type; a mistake is a `UserError` in one line."""
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
            value = value.item()
        if self.comma_separated and not isinstance(value, str):
            several = value if isinstance(value, Sequence) else [value]
            value = ",".join(str(os.fspath(i) if isinstance(i, os.PathLike) else i) for i in several)
        if self.name in TABLES and isinstance(value, Mapping):
            value = [f"{key}={item}" for key, item in value.items()]
        return convert_value(self.hint, value, f"{where}: {self.name}")


TABLES = ("method_options", "model_options")
"""Options that may be a dictionary, where the command line has option=value."""


@dataclass(frozen=True)
class Signature:
    """The parameters of a function that takes the options of a command.

    Parameters
    ----------
    function
        The name of the function, for errors.
    groups
        The dataclasses of options; of a name that several have, the first one's is taken.
    arguments
        Options that are given by position.
    leave_out
        Options that the function decides itself.

    """

    function: str
    groups: tuple[type[Any], ...]
    arguments: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()

    def options(self) -> dict[str, Option]:
        """Return the options by name: the arguments, then the others in the order of their dataclasses."""
        options: dict[str, Option] = {}
        for group in self.groups:
            hints, about = type_hints(group), read_field_docs(group)
            for field in fields(group):
                option = Option(
                    field.name, group, hints[field.name], field.default, about.get(field.name, "")
                )
                if field.name in self.arguments or not (
                    option.decided or field.name in options or field.name in self.leave_out
                ):
                    options[field.name] = option
        return {name: options[name] for name in (*self.arguments, *options)}

    def parse(self, keywords: Mapping[str, Any]) -> list[Any]:
        """Return an instance of each dataclass with the values of the keywords."""
        options = self.options()
        values: dict[type[Any], dict[str, Any]] = {group: {} for group in self.groups}
        for name, value in keywords.items():
            if name not in options:
                raise unknown_option(self.function, name, options)
            option = options[name]
            values[option.owner][name] = option.convert(value, self.function)
        return [group(**values[group]) for group in self.groups]

    def describe(self, width: int = 106) -> str:
        """Return the section `Parameters` of a docstring."""
        lines = ["Parameters", "----------"]
        for option in self.options().values():
            about = python_words(option.about)
            lines += [option.name, *wrap(about, width, initial_indent="    ", subsequent_indent="    ")]
        return "\n".join(lines)


def unknown_option(function: str, name: str, options: Mapping[str, Any]) -> UserError:
    """Return the error about an unknown keyword; a name that transformers uses is answered with ours."""
    ours = TRANSFORMERS_NAMES.get(name)
    if ours in options:
        return UserError(f"{function}: {name} is called {ours} here")
    if name in TRANSFORMERS_VALUES:
        return UserError(f"{function}: there is no {name} here; {TRANSFORMERS_VALUES[name]}")
    return UserError(f"{function}: {unknown('option', name, options)}")


def python_words(about: str) -> str:
    """Return the description of an option with the names that its neighbors have in Python."""
    return re.sub(r"--([a-z][a-z-]*)", lambda flag: flag[1].replace("-", "_"), about)


def read_field_docs(kind: type[Any]) -> dict[str, str]:
    """Return the text below each field of a dataclass, also of inherited fields, on one line."""
    about: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        about |= module_field_docs(base.__module__).get(base.__name__, {})
    return about


@cache
def module_field_docs(module: str) -> dict[str, dict[str, str]]:
    """Return the texts below the fields of all classes of a module."""
    try:
        tree = ast.parse(inspect.getsource(import_module(module)))
    except (OSError, TypeError):  # built in, or installed without its source
        return {}
    return {node.name: class_field_docs(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def class_field_docs(node: ast.ClassDef) -> dict[str, str]:
    docs = {}
    for field, text in pairwise(node.body):
        described = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if described and isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            docs[field.target.id] = " ".join(ast.literal_eval(text.value).split())  # type: ignore[attr-defined]
    return docs
