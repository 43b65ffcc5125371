"""Masking functions as students write them: of tokens and a tokenizer, or of tokens and ids."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.contracts.subject import NotApplicable
from heedful.course.student_file import Operation, StudentFile, pick_parameter, simplify

NAMES = [
    "mask_tokens",
    "torch_mask_tokens",
    "mask_inputs",
    "create_masked_lm_inputs",
    "random_masking",
    "apply_mask",
    "apply_masking",
    "mlm_mask",
    "mask_for_mlm",
    "mask_input_ids",
    "corrupt_tokens",
    "mask",
]


class FakeTokenizer:
    """A tokenizer with those attributes of transformers' that masking functions use; it has no text."""

    def __init__(self, mask_id: int, pad_id: int, special_ids: Sequence[int], vocab_size: int) -> None:
        self.mask_token, self.pad_token, self.cls_token, self.sep_token = "[MASK]", "[PAD]", "[CLS]", "[SEP]"
        self.unk_token = "[UNK]"
        self._pad_token = self.pad_token
        self.mask_token_id, self.pad_token_id = mask_id, pad_id
        others = [i for i in special_ids if i not in (mask_id, pad_id)]
        self.unk_token_id, self.cls_token_id, self.sep_token_id = (*others, *others, *others)[:3]
        self.all_special_ids, self.vocab_size = list(special_ids), vocab_size
        self.all_special_tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

    def __len__(self) -> int:
        return self.vocab_size

    def get_vocab(self) -> dict[str, int]:
        words = {f"word{i}": i for i in range(self.vocab_size)}
        return words | {token: self.convert_tokens_to_ids(token) for token in self.all_special_tokens}

    def convert_tokens_to_ids(self, token: Any) -> Any:
        """Return the id of a special token, or of each in a list."""
        if isinstance(token, list | tuple):
            return [self.convert_tokens_to_ids(t) for t in token]
        names = {self.mask_token: self.mask_token_id, self.pad_token: self.pad_token_id,
                 self.cls_token: self.cls_token_id, self.sep_token: self.sep_token_id}  # fmt: skip
        return names.get(token, self.unk_token_id)

    def get_special_tokens_mask(
        self, token_ids_0: Sequence[int], token_ids_1: Any = None, already_has_special_tokens: bool = False
    ) -> list[int]:
        """Return 1 for each special token; as transformers' does."""
        return [int(int(i) in self.all_special_ids) for i in token_ids_0]


class MaskingForm:
    """How to call one student's masking function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.parameters = inspect.signature(function).parameters

    def arguments(self, tokens: Tensor, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments after the tokens, by their names."""
        special_ids = given["special_ids"]
        special = torch.isin(tokens, torch.tensor(special_ids))
        tokenizer = FakeTokenizer(given["mask_id"], given["pad_id"], special_ids, given["vocab_size"])
        values = {
            "tokenizer tok": tokenizer,
            "args config cfg": SimpleNamespace(
                mlm_probability=given["rate"], mlm_prob=given["rate"], mlm=True, device="cpu"
            ),
            "mlm_probability mlm_prob mask_prob probability prob rate mask_rate mask_ratio p": given["rate"],
            "mask_token_id mask_id mask_idx mask_token mask_index": given["mask_id"],
            "pad_token_id pad_id pad_idx pad_token pad_index": given["pad_id"],
            "cls_token_id cls_id": tokenizer.cls_token_id,
            "sep_token_id sep_id": tokenizer.sep_token_id,
            "vocab_size n_vocab vocabulary_size num_tokens": given["vocab_size"],
            "special_tokens_mask special_mask special_token_mask is_special": special,
            "special_ids special_tokens special_token_ids all_special_ids": special_ids,
            "attention_mask padding_mask": (tokens != given["pad_id"]).long(),
            "device": "cpu",
        }
        by_name = {simplify(name): value for names, value in values.items() for name in names.split()}
        arguments, missing = {}, []
        for name, parameter in list(self.parameters.items())[1:]:
            if simplify(name) in by_name:
                arguments[name] = by_name[simplify(name)]
            elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                missing.append(name)
        if missing:
            raise NotApplicable(f"the meaning of its parameters {', '.join(missing)} is unknown")
        return arguments

    def mask(self, tokens: Tensor, **given: Any) -> dict[str, Any]:
        """Carry out the operation `mask`; a function of one row is called for each."""
        try:
            return self.pick(self.function(tokens.clone(), **self.arguments(tokens, given)), tokens.shape)
        except NotApplicable:
            raise
        except Exception as error:
            try:
                rows = [self.run_row(row, given) for row in tokens]
            except Exception:
                raise error from None
        return {name: torch.stack([row[name] for row in rows]) for name in ("inputs", "labels")}

    def run_row(self, row: Tensor, given: Mapping[str, Any]) -> dict[str, Tensor]:
        arguments = self.arguments(row, given)
        try:
            return self.pick(self.function(row.clone(), **arguments), row.shape)
        except Exception:
            return self.pick(self.function(row.tolist(), **arguments), row.shape)

    def pick(self, returned: Any, shape: torch.Size) -> dict[str, Tensor]:
        """Return inputs and labels among what the function returned."""
        if isinstance(returned, Mapping):
            labels = pick_parameter(returned, "labels", "targets", "mlm_labels")
            inputs = pick_parameter(
                [n for n in returned if n != labels], "input_ids", "inputs", "tokens", "masked"
            )
            returned = [returned[inputs or ""], returned[labels or ""]]
        if not isinstance(returned, tuple | list) or len(returned) < len(("inputs", "labels")):
            raise TypeError(f"it returns {type(returned).__name__}, not inputs and labels")
        pair = [to_tensor(value) for value in returned[:2]]
        return {"inputs": pair[0], "labels": pair[1]}


def to_tensor(value: Any) -> Tensor:
    """Return a list, an array or a tensor as a tensor of whole numbers."""
    if isinstance(value, Tensor):
        return value.long()
    return torch.as_tensor(np.asarray(value)).long()


def find_operations(file: StudentFile) -> dict[str, Operation]:
    """Return the operation `mask` if the file has a function for it."""
    function = file.find(NAMES, kind="function")
    if function is None:
        return {}
    return {"mask": Operation(MaskingForm(function).mask, {"found": function.__name__})}
