"""What does the attention mechanism change? The same small decoder, trained with each variant."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import cycle, islice
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
from heedful.studies.shared import scores, sentences

PROJECTIONS = ("separate", "shared_qk", "shared_qkv")
MASKINGS = {"before": "softmax"} | {n: f"{n}:unsafe=true" for n in ("zero_after", "zero_scores")}
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
        shared = {**settings, "sentences": list(options.sentences), "pack": False}
        corpus = Path(options.corpus).name
        return StudyPlan(
            question=f"What does the attention mechanism change for {options.model} on {corpus}?",
            seed=options.seed,
            options={"run": shared, "samples": options.samples},
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
        threads = None if (folder / CONFIG).is_file() else threads
        return replace(options, out=folder, resume=True, threads=threads)

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        from heedful.training.train import train_run

        train_run(self.pretrain_settings(configuration, threads))

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        for outcome in outcomes:
            if outcome.state == "finished" and not (outcome.folder / MEASUREMENTS).is_file():
                self.measure(outcome)

    def measure(self, outcome: Outcome) -> None:
        from heedful.evaluation.leaks import draw_samples, measure_leak
        from heedful.inference.networks import load_writer

        writer = load_writer(outcome.folder, device="cpu")
        block = int(self.record.options["run"]["block"])
        texts = [p.text for p in Run(outcome.folder).read_predictions("dev") if p.text][:PROBED]
        ids = [one.ids for one in writer.tokenizer.encode_batch(texts, max_len=block)]
        first_tokens = cycle([text_ids[:1] for text_ids in ids if text_ids])
        prompts = list(islice(first_tokens, int(self.record.options["samples"])))
        leak = measure_leak(writer.model, ids)
        model, seed = writer.model, self.record.seed
        samples = draw_samples(model, writer.tokenizer, prompts, max_tokens=block - 1, seed=seed)
        facts = {**asdict(leak), "leak": leak.size, "samples": asdict(samples)}
        write_json(outcome.folder / MEASUREMENTS, facts)

    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        variants = [Variant(o) for o in outcomes if o.state == "finished"]
        curves = {v.name: curve for v in variants if (curve := v.loss_curve())}
        titles: dict[str, Any] = {"title": "Training loss", "x_title": "step"}
        baselines = scores.find_baselines(o for o in outcomes if o.state == "finished")
        titles |= {
            "y_title": "loss (nats per token)",
            "levels": {f"{name}, dev": math.log(value) for name, value in baselines.items()},
        }
        caption = "Running training loss, every variant on the same batches."
        tables = [make_score_table(variants), make_leak_table(variants), make_sentence_table(variants)]
        tables += make_sample_tables(variants)
        return Answer(
            study=self.name,
            title=self.record.question,
            summary=tuple(describe_variants(variants)),
            finished=all(o.over for o in outcomes) and all(v.measurements for v in variants),
            notes=(*leak_notes(variants), *failure_notes(outcomes)),
            figures=(Figure("loss", "lines", curves, titles, caption),) if curves else (),
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
        self.name, self.results, self.rows = outcome.name, outcome.results, outcome.find_metrics()
        path = outcome.folder / MEASUREMENTS
        self.measurements: Mapping[str, Any] = read_json(path) if path.is_file() else {}
        self.leak: float | None = self.measurements.get("leak")

    def loss_curve(self) -> list[list[float | None]]:
        return [[row.step, row.loss] for row in self.rows if row.split == "train"]

    def last(self, split: str, field: str) -> float | None:
        values: list[float | None] = [getattr(row, field) for row in self.rows if row.split == split]
        return values[-1] if values else None

    def score(self, split: str, field: str = "value") -> float | None:
        return getattr(self.results.splits.get(split), field, None)

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
    rows: list[tuple[Any, ...]] = []
    for v in variants:
        hides = ("yes" if v.is_safe else "no") if v.measurements else None
        trained = (round(v.results.seconds, 1), v.last("train", "loss"), v.last("train_eval", "value"))
        rows.append((v.name, hides, v.leak, *trained, v.score("dev"), v.score("test")))
    if all(row[-1] is None for row in rows):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    about = "scores of each variant; leak: loss from the prefix alone minus loss in one pass"
    return Table(tuple(columns), tuple(rows), about)


def make_leak_table(variants: Sequence[Variant]) -> Table:
    columns = ("variant", "parameters", "loss in one pass", "from the prefix alone", "largest difference")
    rows = []
    for v in variants:
        leak = [v.measurements.get(name) for name in ("one_pass", "prefix_alone", "largest")]
        dev = [v.score("dev", name) for name in ("mean_sentence_perplexity", "unknown_rate")]
        rows.append((v.name, v.results.total_parameters, *leak, *dev))
    about = f"the causality check, token by token on up to {PROBED} texts of dev, and more about dev"
    return Table((*columns, "mean sentence perplexity", "unknown tokens"), tuple(rows), about)


def make_sample_tables(variants: Sequence[Variant]) -> list[Table]:
    contents, texts = [], []
    for v in variants:
        if samples := v.measurements.get("samples"):
            fields = ("mean_length", "unknown", "punctuation", "distinct")
            contents.append((v.name, *(samples[name] for name in fields)))
            shown = [" ".join(str(text).split()) for text in samples["texts"][:SHOWN]]
            texts += [(v.name, shorten(text, SHOWN_CHARS)) for text in shown]
    columns = ("variant", "mean length", "unknown", "punctuation", "distinct")
    about = "samples at temperature 1: tokens per text, and shares of tokens"
    some = Table(("variant", "a sample"), tuple(texts), "some samples")
    return [Table(columns, tuple(contents), about), some]


def make_sentence_table(variants: Sequence[Variant]) -> Table:
    rows = [
        (v.name, s.text, s.loss, s.perplexity, s.unknown) for v in variants for s in v.results.sentences or ()
    ]
    columns = ("variant", "sentence", "loss", "perplexity", "unknown tokens")
    return Table(columns, tuple(rows), "given sentences")


def leak_notes(variants: Sequence[Variant]) -> list[Note]:
    notes = []
    for v in variants:
        if v.is_unsafe:
            about = {"name": v.name, "difference": v.describe_leak(), "largest": v.measurements["largest"]}
            notes.append(Note(sentences.ATTENTION_LEAK_NOTE.format(**about), "warning"))
    return notes


def describe_variants(variants: Sequence[Variant]) -> list[str]:
    summary = []
    scored = {v.name: value for v in variants if v.is_safe and (value := v.score("dev")) is not None}
    if scored:
        best = min(scored, key=lambda name: scored[name])
        values = ", ".join(f"{name} {value:.1f}" for name, value in scored.items() if name != best)
        others = sentences.ATTENTION_OTHERS.format(values=values) if values else ""
        summary.append(sentences.ATTENTION_BEST.format(name=best, value=scored[best], others=others))
        summary += [sentences.ATTENTION_ONE_SEED] if others else []
    softmax = next((v for v in variants if v.name == "softmax"), None)
    if softmax is None:
        return summary or [sentences.ATTENTION_WAITING]
    seconds = softmax.results.seconds
    if times := [f"{v.name} {v.results.seconds / seconds:.1f}" for v in variants if v is not softmax]:
        summary.append(sentences.ATTENTION_TIMES.format(times=", ".join(times)))
    reference = softmax.score("dev")
    for v in variants:
        if v.is_unsafe and reference is not None:
            about = {"name": v.name, "difference": v.describe_leak()}
            lower = "lower" if (v.score("dev") or 0.0) < reference else "not lower"
            summary.append(sentences.ATTENTION_LEAK.format(**about, lower=lower))
    return summary or [sentences.ATTENTION_WAITING]
