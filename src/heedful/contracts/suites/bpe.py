"""Byte-pair encoding: the order of the merges, how they are applied, and that nothing of the text is lost."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from heedful.contracts.asking import collect
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.suites.bpe_reference import (
    STYLES,
    Pair,
    Style,
    apply_merges,
    find_style,
    strip_marks,
)
from heedful.contracts.verdicts import RefutedError

CORPORA = (
    (["ab ab ac"], 1),
    (["aaa aab"], 2),
    (["low low low lower lower newest newest newest newest widest"], 4),
    (["the cat sat on the mat", "the hat of the cat", "that is the cat that sat there"], 8),
    (["hug " * 10 + "pug " * 5 + "pun " * 12 + "bun " * 4 + "hugs " * 5], 6),
    (["pbcd qbce rbcf sbcg tbch xabd yabe zabf wabi"], 2),
    (["banana bandana banana cabana banana ananas banana"], 4),
)
"""Texts and the number of merges, in the order of their size."""
TEXTS = ("abc", "the cat", "that hat", "bananana", "a newer pun", "hugs abcd", "mat the lower")
TRICKY = "héllo ✓ ñandú"
"""Characters that no corpus has, of two and three bytes."""


def learn(subject: Subject, texts: Sequence[str], number: int) -> list[Pair]:
    """Return the merges that are learned, as pairs of texts."""
    answer = subject.call("learn", {"texts": list(texts), "merges": number})
    merges = answer.get("merges")
    if not isinstance(merges, list) or not all(isinstance(m, list) and len(m) == len("ab") for m in merges):
        raise RefutedError("the merges are no list of pairs", inputs={"texts": list(texts)}, got=merges)
    return [(str(a), str(b)) for a, b in merges]


def encode(subject: Subject, text: str, corpus: int = 3) -> tuple[list[str], str]:
    """Return the pieces of a text after learning from a corpus, and the text that they give back."""
    texts, number = CORPORA[corpus]
    answer = subject.call("encode", {"texts": texts, "merges": number, "text": text})
    return [str(piece) for piece in answer["pieces"]], str(answer["text"])


def check_order(subject: Subject) -> str:
    """Each merge must be a most frequent pair of what the merges before it left."""
    rules = set()
    for texts, number in CORPORA:
        merges = learn(subject, texts, number)
        style, step, counts = find_style(texts, merges)
        if style is None:
            best = max(counts, key=lambda pair: counts[pair]) if counts else None
            pair = merges[step]
            raise RefutedError(
                f'merge {step + 1} is "{pair[0]}" + "{pair[1]}", which occurs {counts.get(pair, 0)} times then; '
                + ("" if best is None else f'"{best[0]}" + "{best[1]}" occurs {counts[best]} times'),
                inputs={"texts": texts, "merges before it": [" + ".join(m) for m in merges[:step]]},
                got=" + ".join(pair), expected="nothing" if best is None else " + ".join(best),
            )  # fmt: skip
        rules.add(style.name)
    return f"every merge is a most frequent pair ({', '.join(sorted(rules))})"


def check_number(subject: Subject) -> str:
    """As many merges as were asked for must be learned, while there are pairs."""
    facts = subject.operations["learn"]
    if facts.get("counts") != "merges":
        raise NotApplicable("it is told the size of the vocabulary, not the number of merges")
    for texts, number in CORPORA[2:]:
        merges = learn(subject, texts, number)
        if len(merges) != number:
            raise RefutedError(f"{len(merges)} merges are learned instead of {number}", inputs={"texts": texts}, got=len(merges),
                               expected=number)  # fmt: skip
    return "as many merges as were asked for"


def check_again(subject: Subject) -> str:
    """Learning twice must give the same merges, also where pairs occur equally often."""
    texts = ["ab cd ef gh ij kl mn op"]
    first, second = (
        subject.call("learn", {"texts": texts, "merges": 4, "seed": seed})["merges"] for seed in (0, 1)
    )
    if first != second:
        raise RefutedError("of equally frequent pairs another one is merged the second time", inputs={"texts": texts}, got=second,
                           expected=first, hint="a set has no order; choose by count, and then by the pair itself")  # fmt: skip
    return "equally frequent pairs are merged in the same order every time"


def find_learned_style(subject: Subject, corpus: int = 3) -> tuple[Style, list[Pair]]:
    texts, number = CORPORA[corpus]
    merges = learn(subject, texts, number)
    style, _, _ = find_style(texts, merges)
    if style is None:
        raise NotApplicable("the merges are wrong already")
    return style, merges


def check_encoding(subject: Subject) -> str:
    """Apply the learned merges in their order, and compare the pieces."""
    for corpus in (5, 6, 2, 3):
        style, merges = find_learned_style(subject, corpus)
        for text in sorted(TEXTS, key=len):
            got, _ = encode(subject, text, corpus)
            options = [apply_merges(text, other, merges) for other in (style, *STYLES)]
            if [strip_marks(p) for p in got] not in [[strip_marks(p) for p in o] for o in options]:
                raise RefutedError(
                    f'the pieces of "{text}" are not what the merges give in the order in which they were learned',
                    inputs={"text": text, "merges": [" + ".join(m) for m in merges]}, got=got, expected=options[0],
                )  # fmt: skip
    return "the merges are applied in the order in which they were learned"


def check_whole(subject: Subject) -> str:
    """All pieces together must have every character of the text."""
    for text in sorted(TEXTS, key=len):
        pieces, _ = encode(subject, text)
        if "".join(strip_marks(p) for p in pieces).replace(" ", "") != text.replace(" ", ""):
            raise RefutedError(f'the pieces of "{text}" do not have its characters', inputs={"text": text}, got=pieces,
                               expected="pieces that give the text, one after another")  # fmt: skip
    return "the pieces have every character of the text"


def check_round_trip(subject: Subject) -> str:
    """Decoding what was encoded must give the text; a space at the end may be lost."""
    for text in sorted(TEXTS, key=len):
        pieces, back = encode(subject, text)
        if back.strip() != text:
            raise RefutedError(f'decode(encode("{text}")) is "{back}"', inputs={"text": text, "pieces": pieces}, got=back, expected=text,
                               hint="where do spaces go in encode, and who puts them back?")  # fmt: skip
    return "decode(encode(x)) = x"


def check_any_text(subject: Subject) -> str:
    """Bytes can spell every text, also characters that no corpus had."""
    if not subject.operations["encode"].get("bytes"):
        raise NotApplicable("its pieces are characters, not bytes")
    pieces, back = encode(subject, TRICKY)
    if back.strip() != TRICKY:
        raise RefutedError(f'decode(encode("{TRICKY}")) is "{back}"', inputs={"text": TRICKY, "pieces": pieces}, got=back, expected=TRICKY,
                           hint="put the bytes of all pieces together before you decode them as UTF-8")  # fmt: skip
    return "texts with characters that no corpus had come back too"


def check_empty(subject: Subject) -> str:
    """No text has no pieces."""
    pieces, back = encode(subject, "")
    if [p for p in pieces if strip_marks(p)] or back.strip():
        raise RefutedError("an empty text has pieces", inputs={"text": ""}, got=pieces, expected=[])
    return "an empty text has no pieces"


def to_codes(texts: Sequence[str]) -> Tensor:
    """Return texts as numbers, which fingerprints compare."""
    joined = "\n".join(strip_marks(t) for t in texts)[:200]
    return torch.tensor([ord(c) for c in joined.ljust(200)]).double()


def fingerprint(subject: Subject) -> Fingerprint:
    """The merges without ties, the pieces of some texts, and what comes back."""
    measures: dict[str, Any] = {}
    if "learn" in subject.operations:
        for number in (2, 4, 6):
            texts, merges = CORPORA[number]
            measures[f"merges {number}"] = lambda t=texts, m=merges: to_codes(
                [" ".join(p) for p in learn(subject, t, m)]
            )
            measures[f"steps {number}"] = lambda t=texts, m=merges: count_right_steps(subject, t, m)
    if "encode" in subject.operations:
        for number in (2, 5, 6):
            measures[f"pieces {number}"] = partial(encode_all, subject, number)
        measures["back"] = lambda: torch.tensor(
            [float(encode(subject, text)[1].strip() == text) for text in TEXTS]
        )
        measures["any text"] = lambda: to_codes([encode(subject, TRICKY)[1].strip()])
    return collect(measures)


def encode_all(subject: Subject, corpus: int) -> Tensor:
    return to_codes([" ".join(encode(subject, text, corpus)[0]) for text in TEXTS])


def count_right_steps(subject: Subject, texts: Sequence[str], number: int) -> float:
    """Return how many merges are right before the first that is not."""
    merges = learn(subject, texts, number)
    style, step, _ = find_style(texts, merges)
    return float(len(merges) if style is not None else step)


SUITE = Suite(
    "bpe",
    "byte-pair encoding: the order of the merges, how they are applied, and the way back to the text",
    {
        "learn": "texts and merges (how many); returns merges, a list of pairs of texts",
        "encode": "texts and merges to learn from, and text; returns pieces (texts) and text (what decoding gives)",
    },
    (
        Claim("merge order", "Each merge is a most frequent pair of what the merges before it left.", check_order, "learn",
              "count the pairs again after each merge; a word that occurs n times counts n times"),
        Claim("number of merges", "As many merges as were asked for are learned.", check_number, "learn"),
        Claim("ties", "Equally frequent pairs are merged in the same order every time.", check_again, "learn"),
        Claim("encoding", "A text's pieces are what the merges give in the order in which they were learned.", check_encoding,
              "encode", "of all pairs in a word, merge the one that was learned first"),
        Claim("whole text", "The pieces have every character of the text.", check_whole, "encode"),
        Claim("round trip", "decode(encode(x)) = x.", check_round_trip, "encode"),
        Claim("any text", "Texts with characters that no corpus had come back too, if pieces are bytes.", check_any_text, "encode"),
        Claim("empty text", "An empty text has no pieces.", check_empty, "encode"),
    ),
    fingerprint,
)  # fmt: skip
