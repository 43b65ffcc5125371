"""`heedful.tokenizer.train`: train a tokenizer on text."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heedful.errors import UserError

if TYPE_CHECKING:
    from heedful.text import Tokenizer

Kind = Literal["bpe", "wordpiece", "unigram", "word", "char"]
Corpus = str | os.PathLike[str] | Iterable[str]


def train(
    *corpus: Corpus,
    out: str | os.PathLike[str] | None = None,
    kind: Kind = "bpe",
    vocab_size: int | None = None,
    min_count: int | None = None,
    lowercase: bool = False,
    punctuation: bool = False,
    sentinels: int | None = None,
    overwrite: bool = False,
) -> Tokenizer:
    """Train a tokenizer; the same corpus gives the same bytes.

    Parameters
    ----------
    corpus
        Text files, folders of them, CSV, TSV, JSON lines or Parquet files, names of tasks, or lists of texts.
    out
        Folder to write, in a form that heedful and transformers load: tokenizer.json, tokenizer_config.json,
        special_tokens_map.json. By default nothing is written.
    kind
        bpe works on bytes and can encode every text; wordpiece is used by BERT, unigram by T5; word and char
        use whole words and single characters.
    vocab_size
        Vocabulary size, special tokens included. By default 8000; unlimited for word and char.
    min_count
        How often a pair (bpe, wordpiece), word or character must occur. By default 2; 1 for char.
    lowercase
        Convert the text to lower case first.
    punctuation
        With word: split words from the punctuation around them.
    sentinels
        Number of <extra_id_N> tokens for span corruption. By default 100; 0 for word and char.
    overwrite
        Write into a folder that is not empty.

    Examples
    --------
    >>> tokenizer = heedful.tokenizer.train("notes.txt", vocab_size=4000, out="my-tokenizer")
    >>> tokenizer.pieces(tokenizer.encode("A text of yours.").ids)

    """
    from heedful import text
    from heedful.runs.files import write_error

    if not corpus:
        raise UserError("heedful.tokenizer.train: needs text: files, names of tasks or lists of texts")
    folder = None if out is None else Path(out)
    new = folder is not None and not folder.exists()
    if folder is not None:
        refuse_used_folder(folder, overwrite)
        try:
            folder.mkdir(parents=True, exist_ok=True)  # what cannot be written is found before the training
        except OSError as error:
            raise write_error(folder, error) from None
    try:
        tokenizer = text.train(
            read_texts(corpus),
            kind=kind,
            vocab_size=vocab_size,
            min_count=min_count,
            lowercase=lowercase,
            punctuation=punctuation,
            sentinels=sentinels,
        )
        if folder is not None:
            tokenizer.save(folder)
    except BaseException:
        if folder is not None and new:
            with suppress(OSError):
                folder.rmdir()
        raise
    return tokenizer


def refuse_used_folder(out: Path, overwrite: bool) -> None:
    if out.is_file():
        raise UserError(f"--out {out}: is a file; a tokenizer is saved as a folder")
    if out.is_dir() and any(out.iterdir()) and not overwrite:
        raise UserError(f"--out {out}: is not empty; choose another folder, or --overwrite")


def read_texts(corpus: Iterable[Corpus]) -> Iterator[str]:
    from heedful.data import corpus_texts
    from heedful.progress import track

    for source in corpus:
        if isinstance(source, str | os.PathLike):
            yield from track(corpus_texts(os.fspath(source)), f"reading {os.fspath(source)}")
        else:
            yield from source
