"""Load the tokenizer that a model ships, in any of the usual forms."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from heedful.errors import UserError, shorten
from heedful.paths import expand_path
from heedful.runs.json_files import check_facts, read_json_object, read_text
from heedful.text.model_folders import TOKENIZER_FILES, find_folder
from heedful.text.schemas import AddedTokens, NamesFamily, TokenizerSettings
from heedful.text.tokenizer import NO_TYPES, ROLES, WITH_TYPES, Tokenizer
from heedful.text.tokenizer_forms import (
    VOCABULARY_FILES,
    TokenizerForm,
    bert_normalizer,
    builds_from,
    find_form,
    from_vocabulary,
    make_added_token,
    token_text,
)

# For a tokenizer.json without a word about roles: the names in use, by role.
USUAL_NAMES = {
    "pad": ("[PAD]", "<pad>", "<PAD>", "<|pad|>"),
    "unk": ("[UNK]", "<unk>", "<UNK>"),
    "bos": ("<s>", "<bos>", "<START>", "<|endoftext|>"),
    "eos": ("</s>", "<eos>", "<STOP>", "<|endoftext|>"),
    "cls": ("[CLS]", "<cls>"),
    "sep": ("[SEP]", "<sep>"),
    "mask": ("[MASK]", "<mask>", "<MASK>"),
}


def load(name: str | Path, other_names: Iterable[str] = ()) -> Tokenizer:
    """Load a tokenizer by folder, file, or a model's name (`minilm`, `$HEEDFUL_MODELS/<name>`, a Hub id).

    Reads tokenizer.json, spiece.model, vocab.txt, vocab.json with merges.txt, or GPT-2's first names for
    these (encoder.json, vocab.bpe). Padding and truncation stored in a tokenizer.json are switched off.
    `other_names` are further names the caller understands, for the error message alone.
    """
    path = expand_path(name)
    if path.is_file():
        return from_files(path.parent, path.name)
    return from_files(find_folder(str(name), TOKENIZER_FILES, other_names))


def from_files(folder: Path, only: str | None = None) -> Tokenizer:
    """Load from a folder: from the file `only`, else from the first form that is there."""
    settings = read_optional_json(folder / "tokenizer_config.json", TokenizerSettings)
    tokens = read_optional_json(folder / "special_tokens_map.json", TokenizerSettings)
    settings = {**tokens, **settings}
    model_type = read_optional_json(folder / "config.json", NamesFamily).get("model_type")
    if only is None and (folder / "tokenizer.json").is_file():
        only = "tokenizer.json"
    if only is not None and only.endswith(".json") and only not in ("vocab.json", "encoder.json"):
        return from_json(folder / only, settings, model_type)
    for names, build in VOCABULARY_FILES:
        files = [folder / file for file in names]
        if all(file.is_file() for file in files) if only is None else only in names:
            if missing := [file.name for file in files if not file.is_file()]:
                raise UserError(f"{folder}: {only} needs {missing[0]} beside it")
            backend, form = from_vocabulary(files, build, settings, model_type)
            return add_frame(
                backend, form, settings, read_optional_json(folder / "added_tokens.json", AddedTokens), folder
            )
    if only is not None:
        raise UserError(f"{folder / only}: is not a tokenizer's file; known are {known_files()}")
    raise UserError(f"{folder}: has no tokenizer; looked for {known_files()}")


def known_files() -> str:
    return ", ".join(["tokenizer.json", *(" + ".join(names) for names, _ in VOCABULARY_FILES)])


def read_optional_json(path: Path, schema: type[Any] | None = None) -> dict[str, Any]:
    """Return the object of a JSON file, whose fields are as the schema says; an empty one for no file."""
    if not os.path.lexists(path):
        return {}
    facts = read_json_object(path)
    return facts if schema is None else check_facts(schema, facts, str(path))


def from_json(path: Path, settings: Mapping[str, Any], model_type: str | None) -> Tokenizer:
    """Load a tokenizer.json; what tokenizer_config.json says of case and accents comes first."""
    text = read_text(path)
    with builds_from(path):
        backend = Backend.from_str(text)
    if backend.normalizer is not None and type(backend.normalizer).__name__ == "BertNormalizer":
        with builds_from(
            path
        ):  # its own form is a line; reading the whole file again takes longer than a text
            stored = json.loads(backend.normalizer.__getstate__())
            backend.normalizer = bert_normalizer(settings, stored)
    with builds_from(path):  # what loads may still fail on its first text
        backend.encode("a", "a")
    form, _ = find_form(settings, model_type)
    roles = read_roles(settings)
    if not roles:
        special = {str(t.content) for t in backend.get_added_tokens_decoder().values() if t.special}
        defaults = form.roles if form else {}
        for role, names in USUAL_NAMES.items():
            choices = (defaults[role],) if role in defaults else () if form else names
            if present := [token for token in choices if token in special]:
                roles[role] = present[0]
    add_special_tokens(backend, roles, settings)
    return Tokenizer(backend, roles, add_input_names(settings, form, backend))


def add_frame(
    backend: Backend, form: TokenizerForm, settings: Mapping[str, Any], added: Mapping[str, Any], folder: Path
) -> Tokenizer:
    """Complete a tokenizer built from a bare vocabulary: special and added tokens, the form's frame."""
    vocabulary = backend.get_vocab()
    stated = read_roles(settings)
    roles = {role: token for role, token in form.roles.items() if token in vocabulary} | stated
    roles = {role: token for role, token in roles.items() if settings.get(f"{role}_token", "") is not None}
    add_special_tokens(backend, roles, settings, mask_takes_space=form.mask_takes_space)
    later = {int(i): value for i, value in (settings.get("added_tokens_decoder") or {}).items()}
    later |= {i: token for token, i in added.items() if i not in later}
    for i, value in sorted(later.items()):
        token = token_text(value, "")
        special = isinstance(value, dict) and bool(value.get("special"))
        backend.add_tokens([make_added_token(token, value, special or token in roles.values())])
        if backend.token_to_id(token) != i:
            raise UserError(
                f'{folder}: added token "{shorten(token)}" should have id {i:,}; the vocabulary differs'
            )

    def holder(role: str) -> tuple[str, int]:
        i = backend.token_to_id(roles[role]) if role in roles else None
        if i is None:
            raise UserError(f"{folder}: the vocabulary has no {role} token, which {form.name} needs")
        return roles[role], i

    backend.post_processor = form.frame(holder)
    return Tokenizer(backend, roles, add_input_names(settings, form, backend))


def read_roles(settings: Mapping[str, Any]) -> dict[str, str]:
    roles = {role: token_text(settings.get(f"{role}_token"), "") for role in ROLES}
    return {role: token for role, token in roles.items() if token}


def add_special_tokens(
    backend: Backend, roles: Mapping[str, str], settings: Mapping[str, Any], mask_takes_space: bool = False
) -> None:
    """Register the special tokens, so that they are never split; those already registered stay."""
    registered = {str(token.content) for token in backend.get_added_tokens_decoder().values()}
    tokens: dict[str, AddedToken] = {}
    for role, token in roles.items():
        value = settings.get(f"{role}_token")
        if role == "mask" and mask_takes_space and not isinstance(value, dict):
            value = {"lstrip": True}
        tokens.setdefault(token, make_added_token(token, value))
    more = settings.get("additional_special_tokens") or settings.get("extra_special_tokens") or []
    for value in more.values() if isinstance(more, dict) else more:
        tokens.setdefault(token_text(value, ""), make_added_token(token_text(value, ""), value))
    new = [token for content, token in tokens.items() if content and content not in registered]
    backend.add_special_tokens(new)


def add_input_names(
    settings: Mapping[str, Any], form: TokenizerForm | None, backend: Backend
) -> dict[str, Any]:
    """Add the inputs that the model takes: transformers asks the tokenizer's class, which is not saved."""
    types = set(backend.encode("a", "a").type_ids) != {0}
    inputs = form.inputs if form else WITH_TYPES if types else NO_TYPES
    return {"model_input_names": inputs, **settings}
