"""`heedful tokenizer show`: show the tokens of a text, and for BPE the merges that made them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.text import Text

from heedful.cli.output import Json, console, print_json
from heedful.errors import one_line

if TYPE_CHECKING:
    from heedful.text import Tokenizer
    from heedful.text.merges import Word

STYLES = [f"black on bright_{color}" for color in ("cyan", "yellow", "green", "magenta")]
SPECIAL = "white on grey37"


def command(tokenizer: str, text: str, pair: str | None = None, *, json: Json = False) -> None:
    """Show the tokens of a text with their ids; for BPE also the merges, in their order.

    Examples:
      heedful tokenizer show minilm "Attention is all you need"
      heedful tokenizer show mine "a question?" "and its passage"

    Parameters
    ----------
    tokenizer
        A tokenizer or a model: a folder, a file, minilm, or a Hub id.
    text
        The text to tokenize.
    pair
        A second text, joined to the first as the model expects pairs.
    """
    from heedful.text import load
    from heedful.text.merges import format_piece, merge_words

    loaded = load(tokenizer)
    encoded = loaded.encode(text, pair)
    pieces = loaded.pieces(encoded.ids)
    texts = [text] if pair is None else [text, pair]
    words = merge_words(loaded, *texts) if loaded.kind == "bpe" else []
    if json:
        facts: dict[str, Any] = {"kind": loaded.kind, "vocab_size": loaded.vocab_size, "ids": encoded.ids}
        facts |= {"pieces": pieces, "types": encoded.types}
        if loaded.kind == "bpe":
            steps = [[{"rule": s.rule, "left": s.left, "right": s.right} for s in w.steps] for w in words]
            facts["merges"] = [
                {"symbols": w.symbols, "steps": each} for w, each in zip(words, steps, strict=True)
            ]
        print_json(facts)
        return
    out = console()
    title = f"{loaded.kind}, {loaded.vocab_size:,} tokens; this text is {len(encoded.ids)}"
    out.print(Text(title, style="bold"))
    cells = [one_line(format_piece(loaded, piece)) for piece in pieces]
    special = [i in loaded.special_ids for i in encoded.ids]
    for line in piece_lines(cells, encoded.ids, special, out.width, colored=out.is_terminal):
        out.print(line, no_wrap=True, crop=False, soft_wrap=True)
    if words:
        out.print()
        out.print(Text("merges, in the order they were applied (rule 1 was learned first)", style="bold"))
        for word in words:
            for row in word_lines(loaded, word):
                out.print(Text(row), soft_wrap=True)


def piece_lines(
    cells: Sequence[str], ids: Sequence[int], special: Sequence[bool], width: int, *, colored: bool
) -> list[Text]:
    """Lay pieces out with their ids beneath: on colored ground, or between bars where there is no color."""
    lines: list[Text] = []
    bar = "" if colored else "|"
    gap = 1 if colored else 0
    top, bottom, used, ordinary = Text(bar), Text(bar), len(bar), 0
    for cell, i, is_special in zip(cells, ids, special, strict=True):
        wide = max(cell_len(cell), len(str(i))) + gap
        if used > len(bar) and used + wide + len(bar) > width:
            lines += [top, bottom]
            top, bottom, used = Text(bar), Text(bar), len(bar)
        style = SPECIAL if is_special else STYLES[ordinary % len(STYLES)]
        ordinary += not is_special
        top.append(cell, style=style if colored else "")
        top.append(" " * (wide - cell_len(cell)) + bar)
        bottom.append(str(i).ljust(wide), style="dim" if colored else "")
        bottom.append(bar)
        used += wide + len(bar)
    return [*lines, top, bottom] if used > len(bar) else lines


def word_lines(tokenizer: Tokenizer, word: Word) -> list[str]:
    """Write one word's merges, a line each: the rule, its two sides, the pieces after it."""
    from heedful.text.merges import format_piece

    def plain(pieces: Sequence[str]) -> str:
        return " ".join(one_line(format_piece(tokenizer, piece)) for piece in pieces)

    lines = [f"  {plain(word.symbols)}"]
    for number, step in enumerate(word.steps, 1):
        sides = f"{plain([step.left])} + {plain([step.right])}"
        lines.append(f"    {number:>2}. {sides:<16} rule {step.rule + 1:>6,}   {plain(step.pieces)}")
    return lines
