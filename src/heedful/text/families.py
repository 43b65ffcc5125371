"""How each family of models splits text and frames it, for tokenizers shipped as bare vocabularies."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend

from heedful.errors import UserError, shorten
from heedful.text import sentencepiece
from heedful.text.tokenizer import NO_TYPES, WITH_TYPES

BERT_ROLES = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ROBERTA_ROLES = {
    "pad": "<pad>",
    "unk": "<unk>",
    "bos": "<s>",
    "eos": "</s>",
    "cls": "<s>",
    "sep": "</s>",
    "mask": "<mask>",
}
GPT2_ROLES = {"unk": "<|endoftext|>", "bos": "<|endoftext|>", "eos": "<|endoftext|>"}
T5_ROLES = {"pad": "<pad>", "unk": "<unk>", "eos": "</s>"}
T5_SENTINELS = 100


@dataclass(frozen=True)
class Family:
    """A family's special tokens, the inputs its models take, and how a bare vocabulary is used."""

    name: str
    roles: dict[str, str]
    inputs: list[str]
    build: Callable[[list[Path], Mapping[str, Any]], Backend]
    frame: Callable[[Callable[[str], tuple[str, int]]], processors.PostProcessor]


def bert(files: list[Path], settings: Mapping[str, Any]) -> Backend:
    """WordPiece over cleaned words (Devlin et al. 2019), from vocab.txt.

    Where the settings do not say whether text is lowercased, the vocabulary does: a cased one has capitals.
    """
    lines = read_text(files[0]).split("\n")
    if lines[-1] == "":
        lines.pop()
    if not any(lines):
        raise UserError(f"{files[0]}: is empty")
    vocabulary = {piece: i for i, piece in enumerate(lines)}
    unk = named(settings.get("unk_token"), "[UNK]")
    if unk not in vocabulary:
        raise UserError(f"{files[0]}: has no {unk}; vocab.txt is one piece a line, as BERT ships it")
    cased = any(re.search("[A-Z]", piece) for piece in vocabulary if not piece.startswith("["))
    backend = Backend(models.WordPiece(vocabulary, unk_token=unk))
    backend.normalizer = bert_normalizer(settings, {"lowercase": not cased})
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece(prefix="##")
    return backend


def bert_normalizer(settings: Mapping[str, Any], default: Mapping[str, Any]) -> normalizers.BertNormalizer:
    """Build BERT's normaliser: what tokenizer_config.json says, else `default`, else BERT's own."""
    names = {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "handle_chinese_chars",
    }
    stated = {ours: settings[theirs] for theirs, ours in names.items() if theirs in settings}
    options = {"clean_text": True, **default, **stated}
    return normalizers.BertNormalizer(**{k: v for k, v in options.items() if k != "type"})


def byte_level(files: list[Path], settings: Mapping[str, Any]) -> Backend:
    """Byte-level BPE (Radford et al. 2019), from vocab.json and merges.txt."""
    vocabulary = read_vocabulary(files[0])
    backend = Backend(models.BPE(vocabulary, read_merges(files[1], vocabulary)))
    spaced = bool(settings.get("add_prefix_space", False))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaced)
    backend.decoder = decoders.ByteLevel()
    return backend


def t5(files: list[Path], settings: Mapping[str, Any]) -> Backend:
    """Sentencepiece with sentinels (Raffel et al. 2020), from spiece.model."""
    return sentencepiece.build(sentencepiece.read(files[0]), int(settings.get("extra_ids", T5_SENTINELS)))


def bert_frame(token: Callable[[str], tuple[str, int]]) -> processors.PostProcessor:
    """Frame as `[CLS] a [SEP] b [SEP]`, the second text with token type 1."""
    cls, sep = token("cls"), token("sep")
    return processors.TemplateProcessing(
        single=[f"{cls[0]}:0", "$A:0", f"{sep[0]}:0"],
        pair=[f"{cls[0]}:0", "$A:0", f"{sep[0]}:0", "$B:1", f"{sep[0]}:1"],
        special_tokens=[cls, sep],
    )


def roberta_frame(token: Callable[[str], tuple[str, int]]) -> processors.PostProcessor:
    """Frame as `<s> a </s></s> b </s>`, all of token type 0."""
    return processors.RobertaProcessing(token("sep"), token("cls"), trim_offsets=True, add_prefix_space=False)


def gpt2_frame(token: Callable[[str], tuple[str, int]]) -> processors.PostProcessor:
    """Leave the texts as they are."""
    return processors.TemplateProcessing(single=["$A:0"], pair=["$A:0", "$B:1"], special_tokens=[])


def t5_frame(token: Callable[[str], tuple[str, int]]) -> processors.PostProcessor:
    """Frame as `a </s> b </s>`."""
    eos = token("eos")
    return processors.TemplateProcessing(
        single=["$A:0", f"{eos[0]}:0"],
        pair=["$A:0", f"{eos[0]}:0", "$B:0", f"{eos[0]}:0"],
        special_tokens=[eos],
    )


BERT = Family("BERT", BERT_ROLES, WITH_TYPES, bert, bert_frame)
DISTILBERT = Family("DistilBERT", BERT_ROLES, NO_TYPES, bert, bert_frame)
ROBERTA = Family("RoBERTa", ROBERTA_ROLES, NO_TYPES, byte_level, roberta_frame)
GPT2 = Family("GPT-2", GPT2_ROLES, NO_TYPES, byte_level, gpt2_frame)
T5 = Family("T5", T5_ROLES, NO_TYPES, t5, t5_frame)

# By tokenizer_class without "Tokenizer" and "Fast", or by model_type; "-" and "_" left out.
FAMILIES = {
    "bert": BERT,
    "electra": BERT,
    "mobilebert": BERT,
    "convbert": BERT,
    "distilbert": DISTILBERT,
    "roberta": ROBERTA,
    "longformer": ROBERTA,
    "bart": ROBERTA,
    "gpt2": GPT2,
    "gptneo": GPT2,
    "gptj": GPT2,
    "t5": T5,
    "mt5": T5,
    "umt5": T5,
    "longt5": T5,
}
FORMS: tuple[tuple[tuple[str, ...], Callable[..., Backend]], ...] = (
    (("spiece.model",), t5),
    (("vocab.txt",), bert),
    (("vocab.json", "merges.txt"), byte_level),
    (("encoder.json", "vocab.bpe"), byte_level),
)


def find(settings: Mapping[str, Any], model_type: str | None) -> tuple[Family | None, str | None]:
    """Find the family that a model's files name, and the name they use; (None, None) when they name none."""
    by_class = re.sub(r"Tokenizer(Fast)?$", "", str(settings.get("tokenizer_class") or ""))
    names = [name for name in (model_type, by_class) if name and name != "PreTrained"]
    for name in names:
        if family := FAMILIES.get(re.sub("[-_]", "", name).lower()):
            return family, name
    return None, names[0] if names else None


def from_vocabulary(
    files: list[Path], make: Callable[..., Backend], settings: Mapping[str, Any], model_type: str | None
) -> tuple[Backend, Family]:
    """Build a tokenizer from bare vocabulary files, by the family that the model's files name."""
    family, name = find(settings, model_type)
    form = " and ".join(path.name for path in files)
    if name is not None and (family is None or family.build is not make):
        raise UserError(
            f'{files[0].parent}: how "{shorten(name)}" uses {form} is not known here; '
            "save its fast tokenizer (tokenizer.json) into the folder with transformers"
        )
    if family is None:
        family = guess(files, make)
    return family.build(files, settings), family


def guess(files: list[Path], make: Callable[..., Backend]) -> Family:
    """Guess the family from the files alone: byte-level vocabularies differ by their special tokens."""
    if make is byte_level:
        vocabulary = read_vocabulary(files[0])
        return ROBERTA if all(token in vocabulary for token in ROBERTA_ROLES.values()) else GPT2
    return BERT if make is bert else T5


def read_text(path: Path) -> str:
    """Read a file as UTF-8, or say that it is none."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 (byte {error.start:,})") from None


def read_vocabulary(path: Path) -> dict[str, int]:
    """Read vocab.json: each piece with its id."""
    found = read_json(path)
    if not found or not all(type(i) is int and i >= 0 for i in found.values()):
        raise UserError(f"{path}: is not a vocabulary; it must map each piece to its id")
    return found


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object, or name the file and the line at fault."""
    import json

    try:
        found = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path} line {error.lineno}: broken JSON: {error.msg}") from None
    except RecursionError:
        raise UserError(f"{path}: JSON nested too deeply") from None
    if not isinstance(found, dict):
        raise UserError(f"{path}: is not a JSON object")
    return found


def read_merges(path: Path, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    """Read merges.txt: one merge a line, the first applied first."""
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


def named(value: Any, default: str) -> str:
    """Take a special token as tokenizer_config.json writes it: a string, or an object with its content."""
    content = value.get("content") if isinstance(value, dict) else value
    return content if isinstance(content, str) and content else default


def as_added(token: str, value: Any, special: bool = True) -> AddedToken:
    """Turn an entry of tokenizer_config.json into an added token with its flags."""
    flags = value if isinstance(value, dict) else {}
    options = {
        name: bool(flags.get(name, False)) for name in ("lstrip", "rstrip", "single_word", "normalized")
    }
    return AddedToken(token, special=special, **options)
