"""What does the attention mechanism change? The same small decoder, trained with each variant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from heedful.attention.registry import parse
from heedful.data.corpus import open_corpus
from heedful.data.run_options import absolute_value
from heedful.errors import UserError, unknown
from heedful.options.configuration import check_table
from heedful.options.studies import AttentionOptions
from heedful.options.training import PretrainOptions
from heedful.options.values import check_bounds
from heedful.runs.answers import Answer, Figure
from heedful.runs.directory import CONFIG, Run
from heedful.runs.files import write_json
from heedful.runs.studies import Configuration, Outcome, StudyFolder, StudyRecord
from heedful.studies.attention_shown import (
    MEASURED,
    PROBED,
    Variant,
    details_table,
    figures_table,
    leaks,
    sentences_table,
    summary,
    writing_tables,
)
from heedful.studies.base import Study, failures
from heedful.studies.commands import study_command
from heedful.studies.shared.runner import run

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
    check_bounds(o)
    record = StudyRecord(
        kind="attention",
        question=f"What does the attention mechanism change for {o.model} on {Path(o.corpus).name}?",
        seed=o.seed,
        options={"run": settings(o), "samples": o.samples},
        configurations=tuple(variants(o)),
        command=study_command("attention", (o.corpus,), o),
    )
    return run(record, o, (o.corpus, o.model), o.threads)


def settings(o: AttentionOptions) -> dict[str, Any]:
    """What all runs share, as options of `heedful pretrain`."""
    found: dict[str, Any] = {
        "model": o.model,
        "corpus": absolute_value("corpus", o.corpus),
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
    return found | {
        name: absolute_value(name, value) for name, value in optional.items() if value is not None
    }


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
        from heedful.training.validation import validate

        for configuration in self.record.configurations:
            validate(self.pretraining(configuration))
        open_corpus(self.record.options["run"]["corpus"])

    def pretraining(self, configuration: Configuration, threads: int | None = None) -> PretrainOptions:
        """A configuration as options of `heedful pretrain`."""
        given = {**self.record.options["run"], **configuration.settings}
        options = PretrainOptions(**check_table(PretrainOptions, given, str(self.folder.path)))
        folder = self.folder.run(configuration.name)
        begun = (folder / CONFIG).is_file()
        return replace(options, out=folder, resume=True, threads=None if begun else threads)

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        """Make one run in its folder, or continue it."""
        from heedful.training.train import train

        train(self.pretraining(configuration, threads))

    def finish(self, outcomes: Sequence[Outcome]) -> None:
        """Look for leaks, and let every model write."""
        for outcome in outcomes:
            if outcome.state == "finished" and not (outcome.folder / MEASURED).is_file():
                self.measure(outcome)

    def measure(self, outcome: Outcome) -> None:
        """The leak on some texts of dev, and samples."""
        from heedful.evaluation.leaks import leak, samples
        from heedful.inference.loading import load_writer

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
