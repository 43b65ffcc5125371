"""A language model that continues text: prompts into tokens, and what follows back into text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from heedful.errors import UserError, shorten
from heedful.inference.generation import Sampling, Stopped, context_length, generate
from heedful.models import EncoderDecoder, LanguageModel
from heedful.text import Tokenizer

UNFINISHED = "\N{REPLACEMENT CHARACTER}"
"""What a byte-level tokenizer shows of a character whose last bytes are still to come."""


@dataclass(frozen=True)
class Continuation:
    prompt: str
    text: str
    """The new text; for an encoder-decoder, its output."""
    tokens: int
    stopped: Stopped
    log_probability: float
    """As the model itself sees it, the token that ended the text included."""


class Writer:
    def __init__(self, model: LanguageModel, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer = model, tokenizer
        self.whole = isinstance(model.body, EncoderDecoder)

    @property
    def context(self) -> int:
        """The number of tokens that the model reads at once."""
        return context_length(self.model)

    def encode_prompt(self, prompt: str) -> list[int]:
        """Return the ids of a prompt, with the token that begins a text and without the one that ends it."""
        ids = self.tokenizer.encode(prompt).ids
        if not self.whole and ids and ids[-1] in (self.tokenizer.eos_id, self.tokenizer.sep_id):
            ids = ids[:-1]
        if not ids:
            no_start = "this tokenizer has no token that begins a text"
            raise UserError(f"the prompt is empty, and {no_start}; write one")
        return ids

    def unknown(self, prompt: str) -> list[str]:
        """Return the characters (or words, if the tokenizer is not char) that the vocabulary lacks."""
        if self.tokenizer.unk_id is None or self.tokenizer.unk_id not in self.tokenizer.encode(prompt).ids:
            return []
        parts = list(prompt) if self.tokenizer.kind == "char" else prompt.split()
        unknown = [p for p in parts if self.tokenizer.unk_id in self.tokenizer.encode(p, special=False).ids]
        return list(dict.fromkeys(unknown))

    def stop_ids(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids that end a text: the tokenizer's end and padding, and tokens by their spelling."""
        stops = [i for i in (self.tokenizer.eos_id, self.tokenizer.pad_id) if i is not None]
        for token in tokens:
            ids = self.tokenizer.encode(token, special=False).ids
            if len(ids) != 1:
                raise UserError(f'--stop "{shorten(token)}": is {len(ids)} tokens; one token ends a text')
            stops += ids
        return stops

    def write(
        self,
        prompts: Sequence[str],
        *,
        samples: int = 1,
        max_tokens: int = 100,
        sampling: Sampling | None = None,
        stop: Iterable[str] = (),
        slide: bool = False,
        seen: Callable[[str], None] | None = None,
    ) -> list[Continuation]:
        """Continue each prompt `samples` times, those of one prompt side by side.

        `seen` gets the new text of the first sample piece by piece, as it comes. With `slide`, a decoder
        whose room is full goes on from the second half of what it reads.
        """
        if samples < 1:
            raise UserError(f"--samples {samples}: must be at least 1")
        asked = [prompt for prompt in prompts for _ in range(samples)]
        encoded = [self.encode_prompt(prompt) for prompt in asked]
        live = Live(self, encoded[0], seen) if seen is not None and encoded else None
        generated = generate(
            self.model,
            encoded,
            max_tokens=max_tokens,
            stop_ids=self.stop_ids(stop),
            sampling=sampling or Sampling(),
            slide=slide,
            seen=live.token if live is not None else None,
        )
        if live is not None:
            live.finish()
        return [
            Continuation(prompt, self.new_text(ids, g.ids), len(g.ids), g.stopped, g.log_probability)
            for prompt, ids, g in zip(asked, encoded, generated, strict=True)
        ]

    def new_text(self, prompt: Sequence[int], ids: Sequence[int]) -> str:
        """Return the text of new tokens, spaced as after the prompt."""
        if self.whole:
            return self.tokenizer.decode(ids)
        before = self.tokenizer.decode(prompt, skip_special=False)
        return self.tokenizer.decode([*prompt, *ids], skip_special=False)[len(before) :]


class Live:
    """New text of the first row as its tokens come; half a character waits for its other half."""

    def __init__(self, writer: Writer, prompt: list[int], seen: Callable[[str], None]) -> None:
        self.writer, self.prompt, self.seen = writer, prompt, seen
        self.ids: list[int] = []
        self.shown = ""

    def token(self, row: int, token: int) -> None:
        if row == 0:
            self.ids.append(token)
            text = self.writer.new_text(self.prompt, self.ids)
            if not text.endswith(UNFINISHED):
                self.show(text)

    def show(self, text: str) -> None:
        self.seen(text[len(self.shown) :])
        self.shown = text

    def finish(self) -> None:
        self.show(self.writer.new_text(self.prompt, self.ids))


def harmless(text: str) -> str:
    """Text that may go to a terminal: line breaks and tabs stay, other control characters are shown."""
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
