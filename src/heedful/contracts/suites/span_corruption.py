"""Span corruption in its character form: prefix MASK suffix MASK span, and targets shifted by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.contracts.asking import collect
from heedful.contracts.subject import Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.verdicts import RefutedError

MASK, PAD = 0x2047, 0x25A1
"""The code points of the mask and padding characters of the course."""
BLOCK, REPEATS, SHORTEST = 64, 400, 4
LONGEST = BLOCK * 7 // 8
LETTERS = [chr(i) for i in range(0x61, 0x24F) if chr(i).isalpha() and chr(i) != "µ"]
DOCUMENT = "".join(LETTERS[:100])
"""No letter is in it twice, so that it is clear where a piece of it comes from."""
SHORT = "".join(LETTERS[100:110])
IGNORED = (-100, -1)


@dataclass(frozen=True)
class Drawn:
    """Rows that came back for one document, as code points."""

    x: Tensor
    y: Tensor

    def texts(self) -> list[str]:
        """Return each row as characters: the inputs, and the last target."""
        whole = torch.cat([self.x, self.y[:, -1:]], 1).tolist()
        return ["".join(chr(c) if 0 < c < 0x110000 else "?" for c in row) for row in whole]


@dataclass(frozen=True)
class Parsed:
    """A row `prefix MASK suffix MASK span [MASK] PAD ...`, taken apart."""

    pieces: tuple[str, ...]
    """Between masks, without padding at the end."""

    @property
    def masks(self) -> int:
        return len(self.pieces) - 1

    @property
    def parts(self) -> tuple[str, str, str] | None:
        """Prefix, suffix and span; None if there are not two or three masks in their places."""
        if self.masks == 3 and self.pieces[3] == "":
            return self.pieces[0], self.pieces[1], self.pieces[2]
        return (self.pieces[0], self.pieces[1], self.pieces[2]) if self.masks == 2 else None

    @property
    def document(self) -> str | None:
        """The text with the span back in its place."""
        return None if self.parts is None else self.parts[0] + self.parts[2] + self.parts[1]


def parse(text: str) -> Parsed:
    return Parsed(tuple(text.rstrip(chr(PAD)).split(chr(MASK))))


def draw(subject: Subject, document: str = DOCUMENT, repeats: int = REPEATS, seed: int = 0) -> Drawn:
    """Corrupt a document many times; the rows must be integers of one length."""
    answer = call(subject, document, repeats, seed)
    if "lengths" in answer:
        raise RefutedError(
            "the rows have different lengths", inputs={"document": document, "block_size": BLOCK},
            got={"lengths of x": answer["lengths"][:8]}, expected=f"{BLOCK - 1} every time (the block, shifted by one)",
            hint="pad the whole string to block_size before you cut it into x and y",
        )  # fmt: skip
    x, y = answer["x"], answer["y"]
    if x.shape != y.shape or x.shape[1] not in (BLOCK - 1, BLOCK):
        raise RefutedError(
            f"x and y have lengths {x.shape[1]} and {y.shape[1]} instead of {BLOCK - 1}",
            inputs={"document": document, "block_size": BLOCK}, got=[x.shape[1], y.shape[1]], expected=[BLOCK - 1] * 2,
        )  # fmt: skip
    return take(answer)


def call(subject: Subject, document: str, repeats: int, seed: int = 0) -> dict[str, Any]:
    return subject.call("corrupt", {"text": document, "block_size": BLOCK, "repeats": repeats, "seed": seed})


def take(answer: dict[str, Any]) -> Drawn:
    """Return the rows, with padding where a target is ignored."""
    y = answer["y"].long()
    for ignored in IGNORED:
        y = y.masked_fill(y == ignored, PAD)
    return Drawn(answer["x"].long(), y)


def refute(text: str, message: str, expected: str, document: str = DOCUMENT) -> RefutedError:
    return RefutedError(
        message, inputs={"document": document, "block_size": BLOCK}, got=text.rstrip(chr(PAD)) + " (and padding)",
        expected=expected,
    )  # fmt: skip


FORM = f"prefix {chr(MASK)} suffix {chr(MASK)} span {chr(PAD)}{chr(PAD)}..."


def check_shape(subject: Subject) -> str:
    """Check rows of one length, for long and short documents, of the type that embeddings take."""
    widths = {draw(subject, document, 20).x.shape[1] for document in (DOCUMENT, SHORT)}
    if len(widths) > 1:
        raise RefutedError("long and short documents give other lengths", inputs={"block_size": BLOCK},
                           got=sorted(widths), expected=BLOCK - 1)  # fmt: skip
    return f"x and y have {widths.pop()} characters for a block of {BLOCK}"


def check_shift(subject: Subject) -> str:
    """Targets must be the inputs, one character later."""
    drawn = draw(subject, repeats=50)
    wrong = (drawn.y[:, :-1] != drawn.x[:, 1:]) & (drawn.y[:, :-1] != PAD)
    rows = wrong.any(1).nonzero().flatten()
    if len(rows):
        row = int(rows[0])
        x, y = ("".join(chr(c) for c in values[row, :12].tolist()) for values in (drawn.x, drawn.y))
        raise RefutedError(
            "y is not x shifted by one character", inputs={"document": DOCUMENT, "the first 12 of x": x}, got=y,
            expected=x[1:] + "...", hint="x = whole[:-1] and y = whole[1:]",
        )  # fmt: skip
    return "y is x, one character later"


def check_sentinels(subject: Subject) -> str:
    """Two masks (or three, the last after the span) must be in each row, in their places."""
    for text in draw(subject).texts():
        parsed = parse(text)
        if parsed.parts is None:
            raise refute(text, f"a row has {parsed.masks} mask characters instead of 2", FORM)
        if chr(PAD) in text.rstrip(chr(PAD)):
            raise refute(text, "there is padding inside the row", FORM)
    return f"every row is {FORM}"


def check_content(subject: Subject) -> str:
    """With the span back in its place a row must be a piece of the document."""
    for document in (SHORT, DOCUMENT):
        for text in draw(subject, document, 100).texts():
            parsed = parse(text)
            if parsed.document is None or parsed.document not in document or not parsed.document:
                raise refute(text, "prefix + span + suffix is not a piece of the document",
                             "the pieces of the document, with the span moved behind the second mask", document)  # fmt: skip
    return "the span put back gives the document again"


def lengths_of(drawn: Drawn) -> tuple[Tensor, Tensor, Tensor]:
    """Return the length of the cut document, of the span, and the span's beginning, for each parsed row."""
    rows = [p.parts for p in map(parse, drawn.texts()) if p.parts is not None]
    if not rows:
        raise RefutedError(f"no row is {FORM}", inputs={"document": DOCUMENT})
    table = torch.tensor([[len("".join(parts)), len(parts[2]), len(parts[0])] for parts in rows]).double()
    return table[:, 0], table[:, 1], table[:, 2]


def check_truncation(subject: Subject) -> str:
    """A long document must be cut to a random length, from 4 to 7/8 of the block."""
    cut, _, _ = lengths_of(draw(subject))
    least, most, mean = int(cut.min()), int(cut.max()), float(cut.mean())
    found = f"documents are cut to {least} to {most} characters, {mean:.1f} on average"
    about = {"document": DOCUMENT, "block_size": BLOCK}
    if most > LONGEST or least < SHORTEST:
        raise RefutedError(f"{found}; allowed are {SHORTEST} to {LONGEST} (7/8 of the block)", inputs=about,
                           got=[least, most], expected=[SHORTEST, LONGEST])  # fmt: skip
    if len(set(cut.tolist())) < 10:
        raise RefutedError(f"{found}: the length is not random", inputs=about, got=sorted(set(cut.tolist()))[:10],
                           expected=f"any length from {SHORTEST} to {LONGEST}")  # fmt: skip
    return found


def check_span(subject: Subject) -> str:
    """The span must be a random quarter of the cut document, at any place."""
    cut, span, start = lengths_of(draw(subject))
    long = cut >= 16
    if not bool(long.any()):
        raise RefutedError("every document is cut to less than 16 characters", inputs={"document": DOCUMENT})
    share, about = (span / cut)[long], {"document": DOCUMENT, "block_size": BLOCK}
    mean = float(share.mean())
    if float(span.min()) < 1:
        raise RefutedError("a span is empty", inputs=about, got=0, expected="at least one character")
    if abs(mean - 0.25) > 0.05:
        raise RefutedError(
            f"a span has {mean:.0%} of the document on average",
            inputs=about,
            got=f"{mean:.3f}",
            expected="0.25",
        )
    if float(share.std()) < 0.03:
        raise RefutedError("the share of the span is the same every time", inputs=about, got=f"{mean:.3f} +- {float(share.std()):.3f}",
                           expected="a random length, a quarter on average")  # fmt: skip
    place = (start / (cut - span).clamp_min(1))[long]
    if float(place.std()) < 0.1:
        raise RefutedError("the span is at the same place every time", inputs=about, got=f"at {float(place.mean()):.0%} of the document",
                           expected="a random place")  # fmt: skip
    return f"the span has {mean:.1%} of the document on average, at {float(place.min()):.0%} to {float(place.max()):.0%} of it"


def check_fresh(subject: Subject) -> str:
    """The same document must be corrupted in another way every time."""
    number = len(set(draw(subject, repeats=20).texts()))
    if number < 10:
        raise RefutedError(f"20 draws of one document give {number} different rows", inputs={"document": DOCUMENT},
                           got=number, expected=20, hint="no seed inside, and no corruption in __init__")  # fmt: skip
    return f"20 draws give {number} different rows"


def is_prefix_kept(text: str) -> float:
    """Return whether what stands before the first mask is a piece of the document."""
    return float(text.split(chr(MASK))[0] in DOCUMENT)


def fingerprint(subject: Subject) -> Fingerprint:
    """Shares of rows, and of lengths."""
    answer = call(subject, DOCUMENT, REPEATS)
    drawn = take(answer)
    taken = collect({"lengths": lambda: lengths_of(drawn)})
    texts = drawn.texts()
    bare = [t.rstrip(chr(PAD)) for t in texts]
    parsed = [parse(t) for t in texts]
    n = len(texts)
    found: dict[str, Any] = {
        "uneven": float("lengths" in answer),
        "masks": min(sum(p.masks for p in parsed) / n, 9.0),
        "shifted": float((drawn.y[:, :-1] == drawn.x[:, 1:]).double().mean()),
        "equal": float((drawn.y == drawn.x).all()),
        "before": sum(map(is_prefix_kept, texts)) / n,
        "whole": sum(p.document is not None and p.document in DOCUMENT for p in parsed) / n,
        "padding inside": sum(chr(PAD) in t for t in bare) / n,
        "ends in a mask": sum(t.endswith(chr(MASK)) for t in bare) / n,
        "filled": sum(len(t) for t in bare) / n / BLOCK,
        "different": min(1.0, len(set(texts)) / 50),
        "letters twice": sum(
            len(set(t)) < len(t) - p.masks + bool(p.masks) for t, p in zip(bare, parsed, strict=True)
        )
        / n,
    }
    if "lengths" in taken:
        cut, span, start = taken["lengths"]
        share, place = span / cut.clamp_min(1), start / (cut - span).clamp_min(1)
        found |= {"cut": float(cut.mean() / BLOCK), "cut varies": float(cut.std() / BLOCK), "longest": float(cut.max() / BLOCK),
                  "shortest": min(float(cut.min()) / SHORTEST, 2.0),
                  "span": float(share.mean()), "span varies": float(share.std()),
                  "place": float(place.mean()), "place varies": float(place.std())}  # fmt: skip
    return found


SUITE = Suite(
    "span-corruption",
    f"span corruption of characters: {FORM}, targets shifted by one",
    {
        "corrupt": "text (a document), block_size and repeats; returns x and y [repeats, block_size - 1], code points "
        f"of characters, with {chr(MASK)} (U+2047) as mask and {chr(PAD)} (U+25A1) as padding",
    },
    (
        Claim("row shapes", "x and y have block_size - 1 characters, for any document.", check_shape, "corrupt"),
        Claim("shift", "y is x, one character later.", check_shift, "corrupt", "x = whole[:-1] and y = whole[1:]"),
        Claim("sentinels", f"Every row is {FORM} (a third mask may end the span).", check_sentinels, "corrupt",
              "the mask character stands in the place of the span, and again before the span at the end"),
        Claim("content", "The span put back into its place gives a piece of the document.", check_content, "corrupt",
              "prefix, span and suffix are three neighboring slices of the cut document"),
        Claim("truncation", "A document is cut to a random length, from 4 to 7/8 of the block.", check_truncation, "corrupt",
              "draw the length with both ends included, and no more than the document has"),
        Claim("span", "The span is a random quarter of the document on average, at a random place.", check_span, "corrupt",
              "draw its length between bounds whose mean is a quarter, then its beginning"),
        Claim("fresh rows", "The same document is corrupted in another way every time.", check_fresh, "corrupt"),
    ),
    fingerprint,
    {"masks": 0.05, "shifted": 0.04, "before": 0.05, "whole": 0.05, "padding inside": 0.05, "ends in a mask": 0.05,
     "filled": 0.04, "letters twice": 0.05, "cut": 0.04, "cut varies": 0.03, "longest": 0.03, "shortest": 1.1, "span": 0.03,
     "span varies": 0.025, "place": 0.08, "place varies": 0.08, "different": 0.3},
    remembers=True,
)  # fmt: skip
