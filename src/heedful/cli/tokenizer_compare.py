"""`heedful tokenizer compare`: compare tokenizers on one corpus, and advise whether to train another."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_json, print_table
from heedful.options.types import Positive


def command(
    *tokenizer: Annotated[str, Parameter(required=True)],
    on: str,
    vocab_size: Positive | None = None,
    json: Json = False,
) -> None:
    """Compare tokenizers on your text, and answer: should I train my own?

    A tenth of the lines, chosen by a hash of their content, is held out to measure on. A byte-level BPE
    tokenizer is trained on the rest for comparison. Only the first 32 MB of a large corpus are read.

    Examples:
      heedful tokenizer compare minilm --on notes.txt
      heedful tokenizer compare minilm gpt2 mine --on boolq

    Parameters
    ----------
    tokenizer
        Tokenizers or models: folders, files, minilm, or Hub ids.
    on
        A text file, a folder, a table, or the name of a task.
    vocab_size
        Vocabulary size of the new tokenizer. By default that of the best of the others.
    """
    from rich.text import Text

    from heedful.data import corpus_texts
    from heedful.progress import track
    from heedful.text import load
    from heedful.text.compare import HELD_OUT, has_model, split_sample
    from heedful.text.compare import compare as measure_all

    loaded = {name: load(name) for name in dict.fromkeys(tokenizer)}
    sample = split_sample(track(corpus_texts(on), f"reading {on}"))
    bare = [name for name in loaded if not has_model(name)]
    measured, answer = measure_all(loaded, sample, vocab_size, bare=bare)
    if json:
        rows = [{field: getattr(one, field) for field in COLUMNS} for one in measured]
        verdict = asdict(answer)
        held_out = {"lines": len(sample.held_out), "corpus_bytes": sample.bytes, "corpus_cut": sample.cut}
        print_json({"tokenizers": rows, "answer": verdict, "held_out": held_out})
        return
    of = f"the {'first ' if sample.cut else ''}{sample.bytes / 2**20:.1f} MB"
    titles = tuple(COLUMNS.values())
    print_table(
        f"{len(sample.held_out):,} held-out lines (one in {HELD_OUT}) of {of}",
        titles,
        [
            (
                one.name,
                one.kind,
                f"{one.vocab_size:,}",
                f"{one.tokens_per_word:.2f}",
                f"{100 * one.unknown:.2f} %",
                f"{100 * one.whole_words:.1f} %",
                f"{one.bytes_per_token:.2f}",
                f"{100 * one.vocab_used:.1f} %",
                f"{one.mb_per_second:.1f} MB/s",
            )
            for one in measured
        ],
        right=titles[2:],
    )
    out = console()
    out.print()
    out.print(Text(f"Should I train my own? {WORDS[answer.train_own]}:", style="bold"))
    out.print(Text(f"{answer.reason}."))


COLUMNS = {
    "name": "tokenizer",
    "kind": "kind",
    "vocab_size": "vocabulary",
    "tokens_per_word": "tokens/word",
    "unknown": "unknown",
    "whole_words": "whole words",
    "bytes_per_token": "bytes/token",
    "vocab_used": "vocabulary used",
    "mb_per_second": "speed",
}
"""The titles of the fields that are shown."""
WORDS = {"no": "No", "only from nothing": "Only if you pretrain from scratch", "yes": "Yes"}
