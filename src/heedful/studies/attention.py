"""What does the attention mechanism change? The same small decoder, trained with each variant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar

from heedful.data.corpus import open_corpus
from heedful.data.run_options import absolute_value
from heedful.errors import UserError, shorten, unknown
from heedful.options.configuration import check_table
from heedful.options.studies import AttentionOptions
from heedful.options.training import PretrainOptions
from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.directory import CONFIG, Run
from heedful.runs.files import write_json
from heedful.runs.json_files import read_json
from heedful.runs.studies import Configuration, Outcome
from heedful.studies.base import Study, StudyPlan, failure_notes
from heedful.studies.shared import sentences

PROJECTIONS = ("separate", "shared_qk", "shared_qkv")
MASKINGS = {
    "before": "softmax",
    "zero_after": "zero_after:unsafe=true",
    "zero_scores": "zero_scores:unsafe=true",
}
"""Minus infinity before the softmax (safe); weights set to zero after it; scores set to zero before it."""
RUN_OPTIONS = (
    "model", "corpus", "tokenizer", "min_count", "block", "epochs", "batch_size", "lr", "eval_every",
    "sentences", "seed", "device", "dev", "test", "dropout", "steps",
)  # fmt: skip
"""Options of the study that are passed to its runs, where they are not None."""
TEXTS = ("corpus", "dev", "test")
MEASUREMENTS = "attention.json"
"""Beside a run's results: its leak, and what it wrote."""
PROBED = 64
"""Texts of dev whose tokens are scored from their prefixes alone."""
SAFE = 1e-5
"""A larger difference between the two losses of a token is a leak."""
SHOWN, SHOWN_CHARS = 2, 160
"""Samples of each variant in the report, and how much of each."""


class AttentionStudy(Study):
    """What does the attention mechanism change?

    Trains the same small decoder with each variant on the same batches, and
    compares the time, the loss, the perplexities of the corpus and of your
    sentences, samples of text, and how much each variant sees of the future
    that it has to predict. The same command continues a study that was stopped.

    Examples:
      heedful study attention
      heedful study attention lm1b/dev.txt --test lm1b/test.txt --attentions softmax,additive
      heedful study attention my.txt --attentions performer,bigbird:block=16 --projections "" --masking ""
    """

    name = "attention"
    options = AttentionOptions
    arguments: ClassVar[Mapping[str, str]] = {
        "corpus": "A text file, a folder, the text of a task, or world/...; one text per line."
    }

    @classmethod
    def plan(cls, options: AttentionOptions, run: None = None) -> StudyPlan:
        settings = {
            name: absolute_value(name, value) if name in TEXTS else value
            for name in RUN_OPTIONS
            if (value := getattr(options, name)) is not None
        }
        return StudyPlan(
            question=f"What does the attention mechanism change for {options.model} on "
            f"{Path(options.corpus).name}?",
            seed=options.seed,
            options={
                "run": {**settings, "sentences": list(options.sentences), "pack": False},
                "samples": options.samples,
            },
            configurations=list_variants(options),
            folder_words=(options.corpus, options.model),
        )

    def check(self) -> None:
        from heedful.training.validation import validate

        for configuration in self.record.configurations:
            validate(self.pretrain_settings(configuration))
        open_corpus(self.record.options["run"]["corpus"])

    def pretrain_settings(self, configuration: Configuration, threads: int | None = None) -> PretrainOptions:
        table = {**self.record.options["run"], **configuration.settings}
        options = PretrainOptions(**check_table(PretrainOptions, table, str(self.folder.path)))
        folder = self.folder.run(configuration.name)
        begun = (folder / CONFIG).is_file()
        return replace(options, out=folder, resume=True, threads=None if begun else threads)

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        from heedful.training.train import train

        train(self.pretrain_settings(configuration, threads))

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.state == "finished" and not (outcome.folder / MEASUREMENTS).is_file():
                self.measure(outcome)

    def measure(self, outcome: Outcome) -> None:
        from heedful.evaluation.leaks import draw_samples, measure_leak
        from heedful.inference.loading import load_writer

        writer = load_writer(outcome.folder, device="cpu")
        block = int(self.record.options["run"]["block"])
        texts = [p.text for p in Run(outcome.folder).predictions("dev") if p.text][:PROBED]
        ids = [one.ids for one in writer.tokenizer.encode_batch(texts, max_len=block)]
        first_tokens = [text_ids[:1] for text_ids in ids if text_ids]
        count = int(self.record.options["samples"])
        prompts = [first_tokens[i % len(first_tokens)] for i in range(count)]
        measured = measure_leak(writer.model, ids)
        written = draw_samples(
            writer.model, writer.tokenizer, prompts, max_tokens=block - 1, seed=self.record.seed
        )
        facts = {**asdict(measured), "leak": measured.size, "samples": asdict(written)}
        write_json(outcome.folder / MEASUREMENTS, facts)

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        variants = [Variant(o) for o in outcomes if o.state == "finished"]
        curves = {v.name: curve for v in variants if (curve := v.loss_curve())}
        figure = Figure(
            "loss",
            "lines",
            curves,
            {"title": "Training loss", "x_title": "step", "y_title": "loss (nats per token)"},
            "Running training loss, every variant on the same batches.",
        )
        tables = (
            make_score_table(variants),
            make_leak_table(variants),
            make_sentence_table(variants),
            *make_sample_tables(variants),
        )
        return Answer(
            study=self.name,
            title=self.record.question,
            summary=tuple(describe_variants(variants)),
            finished=all(o.over for o in outcomes) and all(v.measurements for v in variants),
            notes=(*leak_notes(variants), *failure_notes(outcomes)),
            figures=(figure,) if curves else (),
            tables=tuple(table for table in tables if table.rows),
            runs=tuple(f"runs/{v.name}" for v in variants),
            facts={v.name: v.facts() for v in variants},
        )


def list_variants(options: AttentionOptions) -> list[Configuration]:
    """Return one choice at a time: attentions, projections of softmax, maskings of softmax; each once."""
    from heedful.attention.registry import parse

    variants: dict[str, dict[str, Any]] = {}
    for spec in split_specs(options.attentions):
        parse(spec)
        variants.setdefault(spec.replace(":", "-").replace("=", "").replace(",", "-"), {"attention": spec})
    for name in split_specs(options.projections):
        if name not in PROJECTIONS:
            raise unknown("projection", name, PROJECTIONS)
        variant = {"attention": "softmax", "projections": name}
        variants.setdefault("softmax" if name == "separate" else name, variant)
    for name in split_specs(options.masking):
        if name not in MASKINGS:
            raise unknown("masking", name, MASKINGS)
        variants.setdefault("softmax" if name == "before" else name, {"attention": MASKINGS[name]})
    if not variants:
        raise UserError("--attentions, --projections and --masking are all empty: nothing to compare")
    return [Configuration(name, settings) for name, settings in variants.items()]


def split_specs(text: str) -> list[str]:
    """Split at commas, but not at one inside an option list (`bigbird:block=16,window=1`)."""
    names: list[str] = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        if names and "=" in part and ":" not in part:
            names[-1] += f",{part}"
        else:
            names.append(part)
    return names


class Variant:
    def __init__(self, outcome: Outcome) -> None:
        assert outcome.results is not None
        self.name, self.results, self.rows = outcome.name, outcome.results, outcome.metrics()
        path = outcome.folder / MEASUREMENTS
        self.measurements: Mapping[str, Any] = read_json(path) if path.is_file() else {}
        self.leak: float | None = self.measurements.get("leak")

    def loss_curve(self) -> list[list[float | None]]:
        return [[row.step, row.loss] for row in self.rows if row.split == "train"]

    def last(self, split: str, field: str) -> float | None:
        values: list[float | None] = [getattr(row, field) for row in self.rows if row.split == split]
        return values[-1] if values else None

    def score(self, split: str, field: str = "value") -> float | None:
        result = self.results.splits.get(split)
        value: float | None = None if result is None else getattr(result, field)
        return value

    def describe_leak(self) -> str:
        """Return how the loss in one pass differs: what is seen of the future may also mislead."""
        size = self.leak or 0.0
        return f"{abs(size):.4f} {'lower' if size >= 0 else 'higher'}"

    @property
    def is_safe(self) -> bool:
        """Whether every token has the same loss from its prefix alone."""
        return "largest" in self.measurements and self.measurements["largest"] <= SAFE

    @property
    def is_unsafe(self) -> bool:
        """Whether the loss of some token depends on what comes after it."""
        return "largest" in self.measurements and not self.is_safe

    def facts(self) -> dict[str, Any]:
        return {
            "seconds": self.results.seconds,
            "train_loss": self.last("train", "loss"),
            "train_perplexity": self.last("train_eval", "value"),
            "dev_perplexity": self.score("dev"),
            "test_perplexity": self.score("test"),
            **self.measurements,
        }


def make_score_table(variants: Sequence[Variant]) -> Table:
    columns = ["variant", "hides the future", "leak", "seconds", "train loss", "train perplexity"]
    columns += ["dev perplexity", "test perplexity"]
    rows = [
        (
            v.name,
            ("yes" if v.is_safe else "no") if v.measurements else None,
            v.leak,
            round(v.results.seconds, 1),
            v.last("train", "loss"),
            v.last("train_eval", "value"),
            v.score("dev"),
            v.score("test"),
        )
        for v in variants
    ]
    tested = any(row[-1] is not None for row in rows)
    return Table(
        tuple(columns if tested else columns[:-1]),
        tuple(row if tested else row[:-1] for row in rows),
        "scores of each variant; leak: loss from the prefix alone minus loss in one pass",
    )


def make_leak_table(variants: Sequence[Variant]) -> Table:
    columns = ("variant", "parameters", "loss in one pass", "from the prefix alone", "largest difference")
    return Table(
        (*columns, "mean sentence perplexity", "unknown tokens"),
        tuple(
            (
                v.name,
                v.results.total_parameters,
                *(v.measurements.get(name) for name in ("one_pass", "prefix_alone", "largest")),
                v.score("dev", "mean_sentence_perplexity"),
                v.score("dev", "unknown_rate"),
            )
            for v in variants
        ),
        f"the causality check, token by token on up to {PROBED} texts of dev, and more about dev",
    )


def make_sample_tables(variants: Sequence[Variant]) -> list[Table]:
    contents, texts = [], []
    for v in variants:
        if samples := v.measurements.get("samples"):
            fields = ("mean_length", "unknown", "punctuation", "distinct")
            contents.append((v.name, *(samples[name] for name in fields)))
            texts += [
                (v.name, shorten(" ".join(str(text).split()), SHOWN_CHARS))
                for text in samples["texts"][:SHOWN]
            ]
    columns = ("variant", "mean length", "unknown", "punctuation", "distinct")
    about = "samples at temperature 1: tokens per text, and shares of tokens"
    return [
        Table(columns, tuple(contents), about),
        Table(("variant", "a sample"), tuple(texts), "some samples"),
    ]


def make_sentence_table(variants: Sequence[Variant]) -> Table:
    rows = [
        (v.name, s.text, s.loss, s.perplexity, s.unknown) for v in variants for s in v.results.sentences or ()
    ]
    columns = ("variant", "sentence", "loss", "perplexity", "unknown tokens")
    return Table(columns, tuple(rows), "given sentences")


def leak_notes(variants: Sequence[Variant]) -> list[Note]:
    return [
        Note(
            sentences.ATTENTION_LEAK_NOTE.format(
                name=v.name, difference=v.describe_leak(), largest=v.measurements["largest"]
            ),
            "warning",
        )
        for v in variants
        if v.is_unsafe
    ]


def describe_variants(variants: Sequence[Variant]) -> list[str]:
    summary = []
    scored = {v.name: value for v in variants if v.is_safe and (value := v.score("dev")) is not None}
    if scored:
        best = min(scored, key=lambda name: scored[name])
        values = ", ".join(f"{name} {value:.1f}" for name, value in scored.items() if name != best)
        others = sentences.ATTENTION_OTHERS.format(values=values) if values else ""
        summary.append(sentences.ATTENTION_BEST.format(name=best, value=scored[best], others=others))
    softmax = next((v for v in variants if v.name == "softmax"), None)
    if softmax is None:
        return summary or [sentences.ATTENTION_WAITING]
    seconds = softmax.results.seconds
    if times := [f"{v.name} {v.results.seconds / seconds:.1f}" for v in variants if v is not softmax]:
        summary.append(sentences.ATTENTION_TIMES.format(times=", ".join(times)))
    reference = softmax.score("dev")
    for v in variants:
        if v.is_unsafe and reference is not None:
            lower = "lower" if (v.score("dev") or 0.0) < reference else "not lower"
            text = sentences.ATTENTION_LEAK.format(name=v.name, difference=v.describe_leak(), lower=lower)
            summary.append(text)
    return summary or [sentences.ATTENTION_WAITING]
