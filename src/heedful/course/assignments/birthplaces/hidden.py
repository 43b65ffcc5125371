"""Hidden claims: span corruption of documents that are shorter than the longest cut."""

from __future__ import annotations

from heedful.contracts import Claim, RefutedError, Subject

SEED = 20
"""Another number gives other draws; `heedful course new` draws one."""
MASK, PAD, BLOCK = "\u2047", "\u25a1", 48
DOCUMENT = "Ada Byron. Born in London."


def check_short(subject: Subject) -> str:
    """Put the span back, in rows of a short document and another block size."""
    answer = subject.call("corrupt", {"text": DOCUMENT, "block_size": BLOCK, "repeats": 100, "seed": SEED})
    if "lengths" in answer or answer["x"].shape != (100, BLOCK - 1):
        raise RefutedError(
            f"a row has not {BLOCK - 1} characters", inputs={"document": DOCUMENT, "block_size": BLOCK}
        )
    for x, y in zip(answer["x"].tolist(), answer["y"].tolist(), strict=True):
        text = "".join(map(chr, [*x, y[-1]])).rstrip(PAD)
        parts = text.removesuffix(MASK).split(MASK)
        if len(parts) != 3 or not DOCUMENT.startswith(parts[0] + parts[2] + parts[1]):
            raise RefutedError(
                "a row is not made from the beginning of the document",
                inputs={"document": DOCUMENT, "block_size": BLOCK},
                got=text,
                expected=f"prefix {MASK} suffix {MASK} span",
            )
    return "the span put back gives the beginning of the document"


CLAIMS = (
    Claim(
        "short documents",
        "A short document is corrupted in the same way.",
        check_short,
        "corrupt",
        "is the document shorter than the length that you drew?",
    ),
)
