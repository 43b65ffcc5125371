"""`heedful tokenizer train`: train a tokenizer on files or a task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heedful.api.tokenizer import train as train_tokenizer
from heedful.cli.output import Flag, Json, describe_from, print_facts, print_json
from heedful.options.types import Count, Positive

Kind = Literal["bpe", "wordpiece", "unigram", "word", "char"]


@describe_from(train_tokenizer)
def command(
    *corpus: Annotated[str, Parameter(required=True)],
    out: Path,
    kind: Kind = "bpe",
    vocab_size: Positive | None = None,
    min_count: Positive | None = None,
    lowercase: Flag = False,
    punctuation: Flag = False,
    sentinels: Count | None = None,
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Train a tokenizer, saved so that heedful and transformers load it.

    The same corpus gives the same bytes. Texts are streamed and need little memory.

    Examples:
      heedful tokenizer train notes.txt more/ --vocab-size 8000 --out mine
      heedful tokenizer train boolq --kind wordpiece --lowercase --out boolq-tok
      heedful tokenizer train birthplaces --kind char --out characters

    Parameters
    ----------
    corpus
        Text files, folders of them, CSV, TSV, JSON lines or Parquet files, or names of tasks.
    out
        Folder to write: tokenizer.json, tokenizer_config.json, special_tokens_map.json.
    """
    tokenizer = train_tokenizer(
        *corpus,
        out=out,
        kind=kind,
        vocab_size=vocab_size,
        min_count=min_count,
        lowercase=lowercase,
        punctuation=punctuation,
        sentinels=sentinels,
        overwrite=overwrite,
    )
    ids = sorted(tokenizer.special_ids - set(tokenizer.sentinel_ids))
    specials = dict(zip(tokenizer.pieces(ids), ids, strict=True))
    facts = {
        "folder": str(out),
        "kind": tokenizer.kind,
        "vocab_size": tokenizer.vocab_size,
        "special_tokens": specials,
        "sentinels": len(tokenizer.sentinel_ids),
        "fingerprint": tokenizer.fingerprint,
    }
    if json:
        print_json(facts)
        return
    fewer = vocab_size is not None and vocab_size > tokenizer.vocab_size
    asked = f" (asked for {vocab_size:,}: the text has no more)" if fewer else ""
    shown = {
        "vocabulary": f"{tokenizer.vocab_size:,}{asked}",
        "special tokens": ", ".join(f"{token} {i}" for token, i in specials.items()),
        "sentinels": len(tokenizer.sentinel_ids) or "none",
        "fingerprint": tokenizer.fingerprint[:16],
        "look at it": f'heedful tokenizer show {out} "a text of yours"',
    }
    print_facts(f"{kind} tokenizer in {out}", shown)
