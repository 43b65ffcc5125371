"""What does the attention mechanism change? The same small decoder, trained with each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heedful.attention.registry import parse
from heedful.data.corpus import open_corpus
from heedful.errors import UserError, shorten, unknown
from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.directory import CONFIG, Run
from heedful.runs.files import read_json, write_json
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord
from heedful.studies.base import Study, failures
from heedful.studies.options import AttentionOptions, words
from heedful.studies.running import run
from heedful.training.configuration import checked, whole_path
from heedful.training.options import PretrainOptions

MEASURED = "attention.json"
PROBED = 64
"""Texts of dev whose tokens are scored from their prefixes alone."""
SAFE = 1e-5
"""A larger difference between the two losses of a token is a leak."""
SHOWN, SHOWN_CHARS = 3, 160
"""Samples of each variant in the report, and how much of each."""
PROJECTIONS = ("separate", "shared_qk", "shared_qkv")
MASKINGS = {
    "before": "softmax",
    "zero_after": "zero_after:unsafe=true",
    "zero_scores": "zero_scores:unsafe=true",
}
"""Minus infinity before the softmax (safe); weights set to zero after it; scores set to zero before it."""


def attention(options: AttentionOptions) -> tuple[StudyFolder, Answer]:
    """Train every variant on the same batches, and compare."""
    o = options
    if o.samples < 1:
        raise UserError(f"--samples {o.samples}: must be at least 1")
    record = StudyRecord(
        kind="attention",
        question=f"What does the attention mechanism change for {o.model} on {Path(o.corpus).name}?",
        seed=o.seed,
        options={"run": settings(o), "samples": o.samples},
        configurations=tuple(variants(o)),
        command=words("attention", (o.corpus,), o),
    )
    return run(record, o, (o.corpus, o.model), o.threads)


def settings(o: AttentionOptions) -> dict[str, Any]:
    """What all runs share, as options of `heedful pretrain`."""
    found: dict[str, Any] = {
        "model": o.model,
        "corpus": whole_path("corpus", o.corpus),
        "tokenizer": o.tokenizer,
        "min_count": o.min_count,
        "block": o.block,
        "pack": False,
        "epochs": o.epochs,
        "batch_size": o.batch_size,
        "lr": o.lr,
        "eval_every": o.eval_every,
        "sentences": list(o.sentences),
        "seed": o.seed,
        "device": o.device,
    }
    optional = {"dev": o.dev, "test": o.test, "dropout": o.dropout, "steps": o.steps}
    return found | {name: whole_path(name, value) for name, value in optional.items() if value is not None}


def variants(o: AttentionOptions) -> list[Configuration]:
    """One choice at a time: attentions, projections of softmax, maskings of softmax; each once."""
    found: dict[str, dict[str, Any]] = {}
    for spec in split(o.attentions):
        parse(spec)
        found.setdefault(spec.replace(":", "-").replace("=", "").replace(",", "-"), {"attention": spec})
    for name in split(o.projections):
        if name not in PROJECTIONS:
            raise unknown("projection", name, PROJECTIONS)
        own = "softmax" if name == "separate" else name
        found.setdefault(own, {"attention": "softmax", "projections": name})
    for name in split(o.masking):
        if name not in MASKINGS:
            raise unknown("masking", name, MASKINGS)
        found.setdefault("softmax" if name == "before" else name, {"attention": MASKINGS[name]})
    if not found:
        raise UserError("--attentions, --projections and --masking are all empty: nothing to compare")
    return [Configuration(name, chosen) for name, chosen in found.items()]


def split(text: str) -> list[str]:
    """Names between commas; a comma inside an option list (`bigbird:block=16,window=1`) stays."""
    names: list[str] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


class Attention(Study):
    """A row a variant, with the size of its leak beside its perplexity."""

    kind = "attention"

    def check(self) -> None:
        """Find mistakes before the first run."""
        from heedful.training.pretrain import refuse_impossible

        for configuration in self.record.configurations:
            refuse_impossible(self.pretraining(configuration))
        open_corpus(self.record.options["run"]["corpus"])

    def pretraining(self, configuration: Configuration, threads: int | None = None) -> PretrainOptions:
        """A configuration as options of `heedful pretrain`."""
        given = {**self.record.options["run"], **configuration.settings}
        options = PretrainOptions(**checked(PretrainOptions, given, str(self.folder.path)))
        folder = self.folder.run(configuration.name)
        begun = (folder / CONFIG).is_file()
        return replace(options, out=folder, resume=True, threads=None if begun else threads)

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        """Make one run in its folder, or continue it."""
        from heedful.training.pretrain import pretrain

        pretrain(self.pretraining(configuration, threads))

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Look for leaks, and let every model write."""
        for outcome in outcomes:
            if outcome.state == "finished" and not (outcome.folder / MEASURED).is_file():
                self.measure(outcome)

    def measure(self, outcome: Outcome) -> None:
        """The leak on some texts of dev, and samples."""
        from heedful.evaluation.leaks import leak, samples
        from heedful.training.loading import load_writer

        writer = load_writer(outcome.folder, device="cpu")
        block = int(self.record.options["run"]["block"])
        texts = [p.text for p in Run(outcome.folder).predictions("dev") if p.text][:PROBED]
        ids = [one.ids for one in writer.tokenizer.encode_batch(texts, max_len=block)]
        found = leak(writer.model, ids)
        begins = [own[:1] for own in ids if own]
        count = int(self.record.options["samples"])
        prompts = [begins[i % len(begins)] for i in range(count)]
        written = samples(
            writer.model, writer.tokenizer, prompts, max_tokens=block - 1, seed=self.record.seed
        )
        write_json(
            outcome.folder / MEASURED, {**asdict(found), "leak": found.size, "samples": asdict(written)}
        )

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """Tables of figures, sentences and samples, and what stands out."""
        done = [Variant(o) for o in outcomes if o.state == "finished"]
        tables = [figures_table(done), details_table(done)]
        tables += [sentences_table(done)] if done and done[0].results.sentences else []
        tables += writing_tables(done)
        curves = {v.name: v.curve() for v in done if v.curve()}
        return Answer(
            study=self.kind,
            title=self.record.question,
            summary=tuple(summary(done)),
            finished=all(o.over for o in outcomes) and all(v.measured for v in done),
            notes=(*leaks(done), *failures(outcomes)),
            figures=(
                Figure(
                    "loss",
                    "lines",
                    curves,
                    {"title": "Training loss", "x_title": "step", "y_title": "loss (nats a token)"},
                    "Running training loss, every variant on the same batches.",
                ),
            )
            if curves
            else (),
            tables=tuple(table for table in tables if table.rows),
            runs=tuple(f"runs/{v.name}" for v in done),
            facts={v.name: v.facts() for v in done},
        )


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
    columns = ("variant", "parameters", "loss in one pass", "loss from the prefix alone")
    return Table(
        (*columns, "largest difference at a token", "mean of dev's sentence perplexities", "unknown tokens"),
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
        f"the causality check on up to {PROBED} texts of dev, and more about dev",
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
            f"{v.name} sees the future: in one pass its loss is {v.leak:.4f} lower than by the prefix alone "
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
                f"{v.name} leaks {v.leak:.4f} nats a token, and its perplexity in one pass is "
                f"{'lower than' if lower else 'not lower than'} softmax's."
            )
    return said or ["No variant has finished yet."]
