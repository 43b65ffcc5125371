"""The study of attention shown: tables and sentences of what each variant reached, and what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful.errors import shorten
from heedful.runs.answers import Note, Table
from heedful.runs.json_files import read_json
from heedful.runs.studies import Outcome

MEASURED = "attention.json"
"""Beside a run's results: its leak, and what it wrote."""
PROBED = 64
"""Texts of dev whose tokens are scored from their prefixes alone."""
SAFE = 1e-5
"""A larger difference between the two losses of a token is a leak."""
SHOWN, SHOWN_CHARS = 2, 160
"""Samples of each variant in the report, and how much of each."""


class Variant:
    """One finished run and what was measured of it."""

    def __init__(self, outcome: Outcome) -> None:
        assert outcome.results is not None
        self.name, self.results, self.rows = outcome.name, outcome.results, outcome.metrics()
        place = outcome.folder / MEASURED
        self.measured: dict[str, Any] = read_json(place) if place.is_file() else {}

    def curve(self) -> list[list[float | None]]:
        """Training loss against step."""
        return [[row.step, row.loss] for row in self.rows if row.split == "train"]

    def last(self, split: str, field: str) -> float | None:
        """The last value of a kind of row."""
        found: list[float | None] = [getattr(row, field) for row in self.rows if row.split == split]
        return found[-1] if found else None

    def value(self, split: str, field: str = "value") -> float | None:
        """A score of the end."""
        own = self.results.splits.get(split)
        found: float | None = None if own is None else getattr(own, field)
        return found

    @property
    def leak(self) -> float | None:
        """How much the future told."""
        found: float | None = self.measured.get("leak")
        return found

    def lower(self) -> str:
        """The leak in words: what is seen of the future may mislead."""
        size = self.leak or 0.0
        return f"{abs(size):.4f} {'lower' if size >= 0 else 'higher'}"

    @property
    def safe(self) -> bool:
        """Whether every token has the same loss from its prefix alone."""
        return "largest" in self.measured and self.measured["largest"] <= SAFE

    @property
    def unsafe(self) -> bool:
        """Whether some token is told by what comes after it."""
        return "largest" in self.measured and not self.safe

    def facts(self) -> dict[str, Any]:
        """For programs."""
        return {
            "seconds": self.results.seconds,
            "train_loss": self.last("train", "loss"),
            "train_perplexity": self.last("train_eval", "value"),
            "dev_perplexity": self.value("dev"),
            "test_perplexity": self.value("test"),
            **self.measured,
        }


def figures_table(done: Sequence[Variant]) -> Table:
    """What each variant reached, and whether it saw the future."""
    columns = ["variant", "hides the future", "leak", "seconds", "train loss", "train perplexity"]
    columns += ["dev perplexity", "test perplexity"]
    rows = [
        (
            v.name,
            ("yes" if v.safe else "no") if v.measured else None,
            v.leak,
            round(v.results.seconds, 1),
            v.last("train", "loss"),
            v.last("train_eval", "value"),
            v.value("dev"),
            v.value("test"),
        )
        for v in done
    ]
    tested = any(row[-1] is not None for row in rows)
    return Table(
        tuple(columns if tested else columns[:-1]),
        tuple(row if tested else row[:-1] for row in rows),
        "what each variant reached; leak: loss from the prefix alone minus loss in one pass",
    )


def details_table(done: Sequence[Variant]) -> Table:
    """Where the leak comes from, and what perplexities should be read with."""
    columns = ("variant", "parameters", "loss in one pass", "by the prefix alone", "largest difference")
    return Table(
        (*columns, "mean sentence perplexity", "unknown tokens"),
        tuple(
            (
                v.name,
                v.results.total_parameters,
                *(v.measured.get(name) for name in ("one_pass", "prefix_alone", "largest")),
                v.value("dev", "mean_sentence_perplexity"),
                v.value("dev", "unknown_rate"),
            )
            for v in done
        ),
        f"the causality check, token by token on up to {PROBED} texts of dev, and more about dev",
    )


def writing_tables(done: Sequence[Variant]) -> list[Table]:
    """What the models write by themselves: what it is made of, and some of it."""
    made, shown = [], []
    for v in done:
        s = v.measured.get("samples")
        if s:
            made.append(
                (v.name, *(s[name] for name in ("mean_length", "unknown", "punctuation", "distinct")))
            )
            texts = (" ".join(str(text).split()) for text in s["texts"][:SHOWN])
            shown += [(v.name, shorten(text, SHOWN_CHARS)) for text in texts]
    columns = ("variant", "mean length", "unknown", "punctuation", "distinct")
    about = "samples at temperature 1: tokens a text, and shares of tokens"
    return [Table(columns, tuple(made), about), Table(("variant", "a sample"), tuple(shown), "some samples")]


def sentences_table(done: Sequence[Variant]) -> Table:
    """The given sentences."""
    rows = [
        (v.name, s.text, s.loss, s.perplexity, s.unknown) for v in done for s in v.results.sentences or ()
    ]
    return Table(
        ("variant", "sentence", "loss", "perplexity", "unknown tokens"), tuple(rows), "given sentences"
    )


def leaks(done: Sequence[Variant]) -> list[Note]:
    """A note for each variant that saw the future."""
    return [
        Note(
            f"{v.name} sees the future: in one pass its loss is {v.lower()} than by the prefix alone "
            f"({v.measured['largest']:.3f} at most at one token), so its perplexity cannot be compared with "
            "the others'.",
            "warning",
        )
        for v in done
        if v.unsafe
    ]


def summary(done: Sequence[Variant]) -> list[str]:
    """The answer in words."""
    safe = [v for v in done if v.safe and v.value("dev") is not None]
    said = []
    if safe:
        first = min(safe, key=lambda v: v.value("dev") or float("inf"))
        others = ", ".join(f"{v.name} {v.value('dev'):.1f}" for v in safe if v is not first)
        said.append(
            f"Of the variants that hide the future, {first.name} has the lowest perplexity on dev, "
            f"{first.value('dev'):.1f}{f'; the others: {others}' if others else ''}."
        )
    base = next((v for v in done if v.name == "softmax"), None)
    if base is not None:
        times = [f"{v.name} {v.results.seconds / base.results.seconds:.1f}" for v in done if v is not base]
        if times:
            said.append(f"Training time in times of softmax's: {', '.join(times)}.")
    for v in done:
        if v.unsafe and base is not None and base.value("dev") is not None:
            lower = (v.value("dev") or 0.0) < (base.value("dev") or 0.0)
            said.append(
                f"{v.name} leaks: in one pass a token's loss is {v.lower()} than by the prefix alone, "
                f"and its perplexity is {'lower than' if lower else 'not lower than'} softmax's."
            )
    return said or ["No variant has finished yet."]
