"""How a family's tokenizer splits and frames text, and how it is built from a bare vocabulary.

Each family declares its own `TokenizerForm`; what several share, the kinds of vocabulary files, is here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from heedful.errors import UserError, shorten
from heedful.families import FAMILIES
from heedful.runs.json_files import read_json_object, read_text
from heedful.text import sentencepiece

SENTINELS = 100
LARGEST_ID = 2**31

SpecialToken = Callable[[str], tuple[str, int]]
"""From a role, such as "cls", to the token that has it and its id."""


@dataclass(frozen=True)
class TokenizerForm:
    """Declares a family's special tokens, the inputs its models take, and how a bare vocabulary is used."""

    name: str
    """The family's name in messages."""
    kind: str
    """What `heedful tokenizer train` calls a tokenizer of this kind: wordpiece, bpe or unigram."""
    roles: Mapping[str, str]
    """The special token of each role."""
    inputs: list[str]
    build: Callable[[list[Path], Mapping[str, Any]], Backend]
    """From vocabulary files, with the settings of tokenizer_config.json, to a tokenizer without a frame."""
    frame: Callable[[SpecialToken], processors.PostProcessor]
    """Adds the special tokens around one text or a pair."""
    framing_roles: tuple[str, ...] = ()
    """The roles of the special tokens that a pretrained model expects around every text."""
    shared_by: tuple[str, ...] = ()
    """Other names, of model types or of tokenizer classes, whose tokenizers have this form."""
    default: Literal["never", "special tokens", "always"] = "never"
    """Whether this form is chosen when the files name no family: never, if their vocabulary has all the
    special tokens, or always."""
    mask_takes_space: bool = False
    """The mask token takes the space before it."""


def wordpiece(files: list[Path], settings: Mapping[str, Any]) -> Backend:
    """Build a WordPiece tokenizer over cleaned words (Devlin et al. 2019), from vocab.txt.

    If the settings do not say whether text is lowercased, the vocabulary does: a cased one has capitals.
    """
    lines = read_text(files[0]).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not any(lines):
        raise UserError(f"{files[0]}: is empty")
    vocabulary = {piece: i for i, piece in enumerate(lines)}
    unk = token_text(settings.get("unk_token"), "[UNK]")
    if unk not in vocabulary:
        raise UserError(f"{files[0]}: has no {unk}; vocab.txt has one piece per line, as BERT ships it")
    cased = any(re.search("[A-Z]", piece) for piece in vocabulary if not piece.startswith("["))
    with builds_from(files[0]):
        backend = Backend(models.WordPiece(vocabulary, unk_token=unk))
    backend.normalizer = bert_normalizer(settings, {"lowercase": not cased})
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    return backend


def bert_normalizer(settings: Mapping[str, Any], default: Mapping[str, Any]) -> normalizers.BertNormalizer:
    """Build BERT's normalizer from tokenizer_config.json, then from `default`, then from BERT's settings."""
    names = {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "handle_chinese_chars",
    }
    stated = {ours: settings[theirs] for theirs, ours in names.items() if theirs in settings}
    options = {"clean_text": True, **default, **stated}
    return normalizers.BertNormalizer(**{k: v for k, v in options.items() if k != "type"})


def byte_level(files: list[Path], settings: Mapping[str, Any]) -> Backend:
    """Build a byte-level BPE tokenizer (Radford et al. 2019), from vocab.json and merges.txt."""
    vocabulary = read_vocabulary(files[0])
    rules = read_merges(files[1], vocabulary)
    with builds_from(files[0]):
        backend = Backend(models.BPE(vocabulary, rules))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=bool(settings.get("add_prefix_space")))
    backend.decoder = decoders.ByteLevel()
    return backend


def sentencepiece_vocabulary(files: list[Path], settings: Mapping[str, Any]) -> Backend:
    """Build a Unigram tokenizer with sentinels (Raffel et al. 2020), from spiece.model."""
    with builds_from(files[0]):
        return sentencepiece.build(sentencepiece.read(files[0]), int(settings.get("extra_ids", SENTINELS)))


VOCABULARY_FILES: tuple[tuple[tuple[str, ...], Callable[..., Backend]], ...] = (
    (("spiece.model",), sentencepiece_vocabulary),
    (("vocab.txt",), wordpiece),
    (("vocab.json", "merges.txt"), byte_level),
    (("encoder.json", "vocab.bpe"), byte_level),
)


def find_form(settings: Mapping[str, Any], model_type: str | None) -> tuple[TokenizerForm | None, str | None]:
    """Return the form that a model's files name, and the name they use; (None, None) if they name none."""
    by_class = re.sub(r"Tokenizer(Fast)?$", "", str(settings.get("tokenizer_class") or ""))
    names = [name for name in (model_type, by_class) if name and name != "PreTrained"]
    for name in names:
        if form := form_of(re.sub("[-_]", "", name).lower()):
            return form, name
    return None, names[0] if names else None


def form_of(name: str) -> TokenizerForm | None:
    """Return the form of a family, or of the family that shares its form with `name`."""
    if name in FAMILIES:
        return FAMILIES[name].tokenizer
    forms = (family.tokenizer for family in FAMILIES.values())
    return next((form for form in forms if form is not None and name in form.shared_by), None)


def from_vocabulary(
    files: list[Path], build: Callable[..., Backend], settings: Mapping[str, Any], model_type: str | None
) -> tuple[Backend, TokenizerForm]:
    """Build a tokenizer from bare vocabulary files, in the form that the model's files name."""
    form, name = find_form(settings, model_type)
    if name is not None and (form is None or form.build is not build):
        names = " and ".join(path.name for path in files)
        raise UserError(
            f'{files[0].parent}: how "{shorten(name)}" uses {names} is not known here; '
            "save its fast tokenizer (tokenizer.json) into the folder with transformers"
        )
    if form is None:
        form = guess_form(files, build)
    return form.build(files, settings), form


def guess_form(files: list[Path], build: Callable[..., Backend]) -> TokenizerForm:
    """Guess the form from the files alone: byte-level vocabularies differ by their special tokens."""
    declared = [family.tokenizer for family in FAMILIES.values()]
    forms = [form for form in declared if form is not None and form.build is build]
    for form in forms:
        if form.default == "special tokens":
            vocabulary = read_vocabulary(files[0])
            if all(token in vocabulary for token in form.roles.values()):
                return form
    return next(form for form in forms if form.default == "always")


def read_vocabulary(path: Path) -> dict[str, int]:
    vocabulary = read_json_object(path)
    if not vocabulary or not all(type(i) is int and 0 <= i < LARGEST_ID for i in vocabulary.values()):
        raise UserError(f"{path}: is not a vocabulary; it must map each piece to its id")
    return vocabulary


def read_merges(path: Path, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    """Read merges.txt: one merge per line, the first applied first."""
    merges = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip() or (number == 1 and line.startswith("#version")):
            continue
        parts = line.split(" ")
        if len(parts) != 2 or not all(part in vocabulary for part in (*parts, "".join(parts))):
            raise UserError(
                f'{path} line {number}: "{shorten(line)}" is not a merge of two pieces of the vocabulary'
            )
        merges.append((parts[0], parts[1]))
    return merges


@contextmanager
def builds_from(path: Path) -> Iterator[None]:
    """Turn what the tokenizers' library raises about a file into one line; it raises bare exceptions."""
    try:
        yield
    except UserError:
        raise
    except BaseException as error:
        if not is_library_error(error):
            raise
        raise UserError(f"{path}: is not a tokenizer's file: {shorten(str(error), 100)}") from None


def is_library_error(error: BaseException) -> bool:
    """Whether an error is the tokenizers' library's own; its panics are no `Exception`."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def token_text(value: Any, default: str) -> str:
    """Return a special token as tokenizer_config.json writes it: a string, or an object with its content."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) and content else default


def make_added_token(token: str, value: Any, special: bool = True) -> AddedToken:
    flags = value if isinstance(value, dict) else {}
    names = ("lstrip", "rstrip", "single_word", "normalized")
    return AddedToken(token, special=special, **{name: bool(flags.get(name, False)) for name in names})
