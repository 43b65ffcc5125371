"""Token ids of a corpus or a split: computed once on all cores, kept in the cache, memory-mapped."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from heedful.data import cache
from heedful.data.corpus import Corpus, open_corpus
from heedful.data.splits import Split
from heedful.data.workers import TextBatch, encode_in_processes
from heedful.errors import UserError
from heedful.options.types import LongTexts
from heedful.progress import progress
from heedful.runs.environment import usable_cores
from heedful.runs.json_files import read_json_object

if TYPE_CHECKING:
    from heedful.text import Tokenizer
    from heedful.text.bulk_encoder import BulkEncoder, EncodedTexts

FORMAT = 1
BATCH_CHARS = 2**19
BATCH_TEXTS = 4096
ALONE_CHARS = 4 * 2**20
"""Number of characters encoded before other processes start: most sources are smaller and need none."""


class Tokens:
    """Token ids of many texts in one array on disk. `tokens[i]` are the ids of text i."""

    def __init__(self, folder: Path) -> None:
        facts = read_json_object(folder / "facts.json")
        self.folder = folder
        self.truncated_rows: int = facts["truncated_rows"]
        self.ids: npt.NDArray[np.unsignedinteger] = map_array(folder / "ids.bin", facts["dtype"])
        self.offsets: npt.NDArray[np.int64] = map_array(folder / "offsets.bin", "int64")
        self.all_types: npt.NDArray[np.uint8] | None = (
            map_array(folder / "types.bin", "uint8") if facts["types"] else None
        )

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, item: int) -> npt.NDArray[np.unsignedinteger]:
        row = range(len(self))[item]
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def types(self, item: int) -> npt.NDArray[np.uint8]:
        """Return the token types of text `item`: 1 in the second text of a pair, if the model has types."""
        row = range(len(self))[item]
        start, end = self.offsets[row], self.offsets[row + 1]
        return np.zeros(end - start, np.uint8) if self.all_types is None else self.all_types[start:end]

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return np.diff(self.offsets)

    def counts(self, vocab_size: int) -> npt.NDArray[np.int64]:
        """Return how often each id occurs, counted in constant memory."""
        counts = np.zeros(vocab_size, np.int64)
        for start in range(0, len(self.ids), 2**22):
            counts += np.bincount(self.ids[start : start + 2**22], minlength=vocab_size)
        return counts


def map_array(path: Path, dtype: str) -> npt.NDArray[Any]:
    """Map a file as an array; an empty file, which cannot be mapped, gives an empty array."""
    return np.memmap(path, dtype, "r") if path.stat().st_size else np.empty(0, dtype)


def tokenize(
    source: Split | Corpus | str | Path,
    tokenizer: Tokenizer,
    *,
    max_len: int | None = None,
    special: bool = True,
    long_texts: LongTexts = "cut",
) -> Tokens:
    """Return the ids of all texts of a split or corpus, computed once for its content and these options."""
    texts = open_corpus(source) if isinstance(source, str | Path) else source
    content = texts.fingerprint
    how = [] if long_texts == "cut" or max_len is None else [long_texts]  # entries of older versions stay
    key = cache.digest("tokens", FORMAT, content, tokenizer.fingerprint, max_len, special, *how)

    def fill(folder: Path) -> None:
        write_tokens(folder, texts, tokenizer, max_len, special, long_texts)
        if texts.fingerprint != content:
            raise UserError(f"{texts.name}: changed while it was being read; try again when it is complete")

    return Tokens(cache.build_once("tokens", key, fill))


def write_tokens(
    folder: Path,
    texts: Split | Corpus,
    tokenizer: Tokenizer,
    max_len: int | None,
    special: bool,
    long_texts: LongTexts,
) -> None:
    dtype = "uint16" if tokenizer.vocab_size <= 2**16 else "uint32"
    typed = isinstance(texts, Split) and texts.pairs is not None
    bulk = tokenizer.bulk(paired=typed, max_len=max_len, special=special, long_texts=long_texts)
    unit, whole = ("rows", len(texts)) if isinstance(texts, Split) else ("MB", texts.megabytes)
    total, truncated, done = 0, 0, 0.0
    with (
        (folder / "ids.bin").open("wb") as ids,
        (folder / "types.bin").open("wb") as types,
        (folder / "offsets.bin").open("wb") as offsets,
        progress(f"tokenizing {Path(texts.name).name} ({unit})", whole) as bar,
        closing(encode_batches(bulk, group_texts(texts))) as results,
    ):
        offsets.write(np.zeros(1, np.int64).tobytes())
        for batch, encoded in results:
            ids.write(encoded.ids)
            types.write(encoded.types or b"")
            ends = total + np.cumsum(encoded.lengths)
            offsets.write(ends.astype(np.int64).tobytes())
            total, truncated = int(ends[-1]), truncated + encoded.truncated_rows
            done += len(encoded.lengths) if isinstance(texts, Split) else sum(map(len, batch[0])) / 10**6
            bar.advance(int(done) - bar.done, f"{total:,} tokens")
    facts = {"dtype": dtype, "types": typed, "truncated_rows": truncated}
    (folder / "facts.json").write_text(json.dumps(facts), "utf-8")


def encode_batches(
    bulk: BulkEncoder, items: Iterator[TextBatch]
) -> Generator[tuple[TextBatch, EncodedTexts], None, None]:
    """Yield each batch with its ids; other processes start if there is more than the first megabytes."""
    cores, size = usable_cores(), 0
    for batch in items:
        yield batch, bulk.encode(*batch)
        size += sum(len(text) for part in batch for text in part or ())
        if size >= ALONE_CHARS and cores > 1:
            break
    if (following := next(items, None)) is not None:
        yield from encode_in_processes(bulk, chain([following], items), cores)


def group_texts(texts: Split | Corpus) -> Iterator[TextBatch]:
    """Yield batches of about half a million characters, because a tokenizer's output takes much memory."""
    paired = isinstance(texts, Split) and texts.pairs is not None
    scan = texts.iterate_texts() if isinstance(texts, Split) else (([text], None) for text in texts)
    batch: list[str] = []
    seconds: list[str] = []
    size = 0
    for many, pairs in scan:
        for i, text in enumerate(many):
            batch.append(text)
            if pairs is not None:
                seconds.append(pairs[i])
            size += len(text) + (len(pairs[i]) if pairs is not None else 0)
            if size >= BATCH_CHARS or len(batch) >= BATCH_TEXTS:
                yield batch, seconds if paired else None
                batch, seconds, size = [], [], 0
    if batch:
        yield batch, seconds if paired else None
