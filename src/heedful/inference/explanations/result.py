"""An explanation: what each word of a text contributed to an answer, and whether that can be trusted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from heedful.display import escape_text, render_lines, render_title
from heedful.errors import shorten
from heedful.inference.explanations.deletion import DeletionTest
from heedful.inference.explanations.words import Word
from heedful.options.types import ExplanationMethod

if TYPE_CHECKING:
    from heedful.data.named_tasks import Kind

TOO_LARGE = 0.1
"""The share of the difference of the scores from which on an error is mentioned as a warning."""


@dataclass(frozen=True)
class WordEffect(Word):
    contribution: float
    """Above 0 if the word speaks for the label, or raises the number."""


@dataclass(frozen=True)
class Explanation:
    """What each word contributed to the score of a label.

    The score is the log-odds of the label against another one (of several labels per text: of the label
    against its absence), or the number itself.
    """

    text: str
    pair: str | None
    kind: Kind
    label: str | None
    """The label that is explained; None for a number."""
    against: str | None
    """The label that it is compared with, where a text has one of several."""
    value: float
    """The probability of the label, or the number."""
    score: float
    method: ExplanationMethod
    words: tuple[WordEffect, ...]
    baseline: float | None
    """The score of a text without information; None for occlusion, which has none."""
    error: float | None
    """How far the contributions' sum is from `score - baseline`; None for occlusion."""
    unread: int
    """Number of words that the model has not read, because the text is longer than --max-len."""
    together: int
    """Number of neighboring words that were removed at a time, for occlusion of a long text."""
    points: int | None
    """Number of points of the quadrature, for gradients."""
    deletion: DeletionTest | None
    """Whether removing the most important words changes the answer more than removing random ones."""

    @property
    def top(self) -> list[WordEffect]:
        """The words, those that speak for the label first."""
        return sorted(self.words, key=lambda word: -word.contribution)

    @property
    def relative_error(self) -> float | None:
        """The error as a share of `score - baseline`."""
        if self.error is None or self.baseline is None:
            return None
        return abs(self.error) / max(abs(self.score - self.baseline), 1e-12)

    @property
    def subject(self) -> str:
        """What is explained, in words."""
        if self.label is None:
            return "the number"
        rival = f' against "{shorten(self.against, 40)}"' if self.against is not None else ""
        return f'the label "{shorten(self.label, 40)}"{rival}'

    @property
    def sentences(self) -> list[str]:
        """How the contributions were found, what they leave out, and whether they can be trusted."""
        lines = [self.describe_method()]
        if self.unread:
            cut = "1 word" if self.unread == 1 else f"{self.unread:,} words"
            lines.append(f"The model has not read {cut} of this text, which is too long for it.")
        if self.deletion is not None:
            lines.append(self.deletion.sentence)
        return lines

    def describe_method(self) -> str:
        unit = "" if self.label is None else " (in log-odds)"
        if self.method == "occlusion":
            what = "each word" if self.together == 1 else f"{self.together} neighboring words"
            return (
                f"Occlusion: how far the score falls without {what}{unit}. "
                "Words that say the same can cover for each other."
            )
        total = f"({self.score:.4g} - {self.baseline:.4g})"
        if self.method == "exact":
            return (
                f"Exact: the contributions{unit} add up to the score less that of an empty text {total}; "
                f"error {abs(self.error or 0):.1e}."
            )
        share = self.relative_error or 0.0
        warning = "; the contributions are only rough" if share > TOO_LARGE else ""
        return (
            f"Integrated gradients, {self.points} points: the contributions{unit} add up to the score less "
            f"that of a text without its words {total}; completeness error {abs(self.error or 0):.2g} "
            f"({share:.1%}){warning}."
        )

    def facts(self) -> dict[str, Any]:
        """Return everything as values for JSON."""
        deletion = None if self.deletion is None else {**asdict(self.deletion), "p": self.deletion.p}
        return {
            **asdict(self),
            "words": [asdict(word) for word in self.words],
            "relative_error": self.relative_error,
            "sentences": self.sentences,
            "deletion": deletion,
        }

    def _repr_html_(self) -> str:
        title = f"What speaks for {self.subject}: {self.value:.3g}"
        sides = [self.text, *([] if self.pair is None else [self.pair])]
        shown = "".join(f"<p>{''.join(self.shade(side, text))}</p>" for side, text in enumerate(sides))
        kind = "plain" if self.deletion is None or self.deletion.trusted is None else "good"
        if self.deletion is not None and self.deletion.trusted is False:
            kind = "warning"
        return render_title(title) + shown + render_lines(self.sentences, kind)

    def shade(self, side: int, text: str) -> Iterator[str]:
        """Yield a text as HTML whose words are blue where they speak for the label, orange against it."""
        most = max((abs(word.contribution) for word in self.words), default=0.0) or 1.0
        end = 0
        for word in self.words:
            if word.side != side:
                continue
            color = "31, 119, 180" if word.contribution > 0 else "230, 126, 34"
            strength = 0.6 * abs(word.contribution) / most
            yield escape_text(text[end : word.start])
            yield (
                f'<span style="background: rgba({color}, {strength:.3f})" '
                f'title="{word.contribution:+.4g}">{escape_text(word.text)}</span>'
            )
            end = word.end
        yield escape_text(text[end:])
