"""Texts that are longer than what the encoder reads: how many, and what reading more would bring."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.solve.insight.findings import Help

CUT_SHARE = 0.05
"""From this share of cut texts on, it is measured what reading more of them would bring."""
How = str
"""A way to read a long text: cut, head-tail, or parts."""
WORDS: dict[How, str] = {
    "head-tail": "reading their beginning and end gives",
    "parts": "the mean of the states of all their parts gives",
}


@dataclass(frozen=True)
class LongTextScores:
    """How many texts are cut, and the scores of ways to read them; no scores if that was not measured."""

    share: float
    """Share of the texts that are longer than `max_len` tokens."""
    max_len: int
    metric: str = ""
    """The title of the metric."""
    held_out: int = 0
    """Number of held-out rows that were scored."""
    scores: dict[How, float] | None = None
    better: tuple[How, ...] = ()
    """The ways that are shown to be better than cutting."""

    @property
    def open(self) -> bool:
        """Whether there is something to measure that was not measured."""
        return self.share >= CUT_SHARE and self.scores is None


def suggest_reading(found: LongTextScores) -> list[Help]:
    """Say what reading more of the long texts would bring; nothing if few are cut."""
    if found.share < CUT_SHARE:
        return []
    many = f"Longer texts: {found.share:.0%} of the texts are longer than the {found.max_len:,} tokens that "
    many += "the encoder reads; "
    if found.scores is None:
        return [Help(0.0, f"{many}whether reading more would help was not measured in the time.")]
    cut = found.scores["cut"]
    ways = " and ".join(
        f"{words} {found.scores[how]:.2f}" for how, words in WORDS.items() if how in found.scores
    )
    against = f"against {found.metric} {cut:.2f} on {found.held_out:,} held-out rows"
    if not found.better:
        return [Help(0.0, f"{many}{ways}, {against}: no difference in favor of it is shown.")]
    best = "head-tail" if "head-tail" in found.better else "parts"
    advice = "--long-texts head-tail reads them so" if best == "head-tail" else "divide them yourself"
    return [Help(abs(found.scores[best] - cut), f"{many}{ways}, {against}; {advice}.")]
