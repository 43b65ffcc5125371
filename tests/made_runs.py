"""Run directories and studies as a report finds them, written without training anything."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from heedful.runs import (
    Answer,
    Check,
    Checks,
    Figure,
    Metrics,
    Note,
    Prediction,
    Results,
    Run,
    SplitResult,
    Table,
    environment,
    write_answer,
)
from heedful.runs.schemas import SentenceResult

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    '"><svg onload=window.hacked=3>',
    "'; window.hacked = 4; '",
    "{{ 7 * 7 }} {% raw %} <!-- --> ]]> &lt;b&gt; | *a* [b](javascript:hacked) `c`",
    "\x00\x07\x1b[31mred\u202egnp.exe\u2028\u2029\ttab\nline",
    "$(touch hacked) `touch hacked` ; touch hacked \"' \\",
    "https://example.com/beacon.png www.example.com @someone",
]
BASELINES = {"chance": 0.5, "majority": 0.52, "bag_of_words": 0.61}
CHECKS = Checks(
    (
        Check("tokenizer_fits", "passed", "Each id has its embedding."),
        Check("shared_parts", "skipped", "There are no pairs."),
    )
)
FALLS = Check("dev_falls_while_train_rises", "warning", "Dev got worse while train got better.", 0.1, 0.01)


def write_run(
    folder: Path,
    *,
    words: Sequence[str] = ("no", "yes"),
    texts: Sequence[str] = ("a fine film", "a dull film"),
    n: int = 80,
    right: float = 0.75,
    epochs: int = 5,
    method: str = "full",
    seed: int = 0,
    falls: bool = False,
    finished: bool = True,
    test: bool = True,
    task: str = "sentences",
    **options: Any,
) -> Path:
    """A run of classification; `words` are its labels."""
    draw = random.Random(seed)
    run = begin(folder, "adapt", {"lr": 5e-5, "model": "minilm", "task": task, "method": method, **options})
    with run.metrics_log() as log:
        for epoch in range(1, epochs + 1):
            rise = 0.5 + 0.08 * epoch
            dev = 0.5 + (right - 0.5) * min(1, epoch / 3) - (0.04 * (epoch - 3) if falls and epoch > 3 else 0)
            row = {"step": 10 * epoch, "epoch": float(epoch)}
            log.append(Metrics(**row, split="train", loss=1 / epoch, value=rise - 0.02, n=100, lr=1e-5))
            log.append(Metrics(**row, split="train_eval", loss=0.9 / epoch, value=rise, n=100))
            log.append(Metrics(**row, split="dev", loss=0.4 + 0.1 * epoch, value=dev, n=n))
    if not finished:
        return folder
    splits = {}
    for split in ("dev", "test") if test else ("dev",):
        rows = predictions(split, words, texts, n, right, draw)
        run.write_predictions(split, rows)
        splits[split] = scored(rows, words)
    run.write_checks(Checks((*CHECKS.checks, FALLS)) if falls else CHECKS)
    known = {"labels": tuple(words), "best_epoch": 3.0, "best_step": 30, "note": options.get("note")}
    run.write_results(results(task, method, seed, splits, **known))
    return folder


def begin(folder: Path, command: str, options: dict[str, Any]) -> Run:
    """A run's folder with its configuration and environment."""
    run = Run.create(folder)
    run.write_config({"command": command, command: options})
    run.write_environment(environment(threads=1, device="cpu", precision="float32"))
    return run


def predictions(
    split: str, words: Sequence[str], texts: Sequence[str], n: int, right: float, draw: random.Random
) -> list[Prediction]:
    rows = []
    for i in range(n):
        label = words[i % len(words)]
        hit = draw.random() < right
        said = label if hit else words[(i + 1) % len(words)]
        sure = round(draw.uniform(0.5, 1), 4)
        rest = {word: (1 - sure) / (len(words) - 1) for word in words if word != said}
        rows.append(
            Prediction(f"{split}-{i}", label, said, {said: sure, **rest}, f"{texts[i % len(texts)]} {i}")
        )
    return rows


def scored(rows: Sequence[Prediction], words: Sequence[str]) -> SplitResult:
    cells = tuple(tuple(sum(r.label == a and r.predicted == b for r in rows) for b in words) for a in words)
    value = sum(r.label == r.predicted for r in rows) / len(rows)
    return SplitResult(
        "accuracy", value, len(rows), (value - 0.08, value + 0.07), 0.6, value, cells, baselines=BASELINES
    )


def results(task: str, method: str, seed: int, splits: dict[str, SplitResult], **more: Any) -> Results:
    known = {"model": "minilm", **more}
    return Results(
        task=task, method=method, head="linear", seed=seed, splits=splits,
        trainable_parameters=770, total_parameters=22_713_986, seconds=75.0 + 60 * seed,
        examples_per_second=24.2, tokens_per_second=380.0, memory_gb=0.91, **known,
    )  # fmt: skip


def write_language_run(folder: Path, *, texts: Sequence[str] = ("one", "two"), steps: int = 200) -> Path:
    """A pretraining run: loss and perplexity by step, given sentences."""
    run = begin(folder, "pretrain", {"model": "char-gpt", "corpus": "ptb", "objective": "causal", "lr": 1e-3})
    with run.metrics_log() as log:
        for step in range(10, steps + 1, 10):
            loss = 1.2 + 4 * 0.97 ** (step / 3)
            log.append(Metrics(step, step / steps, "train", loss, 2.718**loss, 1000, 1e-3))
            log.append(Metrics(step, step / steps, "dev", loss + 0.1, 2.718 ** (loss + 0.1), 500))
    run.write_predictions(
        "dev",
        [Prediction(f"dev-{i}", None, "", text=t, loss=3.0 * (i + 1), tokens=3) for i, t in enumerate(texts)],
    )
    run.write_checks(CHECKS)
    sentences = tuple(SentenceResult(t, 3, 1.5, 4.48, 1) for t in texts)
    split = SplitResult(
        "perplexity", 13.37, 5000, (12.9, 13.9), 2.59, bits_per_character=1.9, unknown_rate=0.01
    )
    run.write_results(
        results("ptb", "full", 0, {"dev": split}, model="char-gpt", objective="causal", best_step=200, best_epoch=1.0,
                sentences=sentences)
    )  # fmt: skip
    return folder


def write_answering_run(folder: Path, *, answers: Sequence[str] = ("Rome", "Oslo"), n: int = 60) -> Path:
    """A run that writes answers, scored by exact match."""
    run = begin(
        folder, "adapt", {"model": "char-gpt", "task": "birthplaces", "objective": "answer", "method": "full"}
    )
    with run.metrics_log() as log:
        for epoch in (1, 2, 3):
            log.append(Metrics(epoch * 5, float(epoch), "dev", 1 / epoch, 0.2 * epoch, n))
    rows = [
        Prediction(
            f"dev-{i}", answers[0], answers[i % 2], {answers[i % 2]: 0.5 + i / 200}, f"Where was {i} born?"
        )
        for i in range(n)
    ]
    run.write_predictions("dev", rows)
    run.write_checks(CHECKS)
    split = SplitResult("exact_match", 0.5, n, (0.38, 0.62), 0.4, baselines={"constant_answer": 0.1})
    run.write_results(
        results("birthplaces", "full", 0, {"dev": split}, objective="answer", best_epoch=3.0, best_step=15)
    )
    return folder


def answer(word: str = "word", **changes: Any) -> Answer:
    """A study's answer with one figure of each kind, `word` wherever words can stand."""
    titles = {"title": word, "x_title": word, "y_title": word}
    grid = {"x_labels": [word, "b"], "y_labels": ["c", word], "title": word}
    return Answer(
        **{
            "study": "search",
            "title": f"search {word}",
            "summary": (f"The best is {word}.", "It stands out."),
            "notes": (Note(f"{word} lies on the edge.", "warning"),),
            "figures": (
                Figure("curves", "lines", {word: [[1, 0.5, 0.4, 0.6], [2, None, None, None], [3, 0.7, 0.6, 0.8]]},
                       {**titles, "mark_best": "max", "levels": {word: 0.6}, "y_domain": [0, 1]}, word),
                Figure("bars", "bars", [{"label": word, "value": 0.5, "low": 0.4, "high": 0.6, "group": "dev"},
                                        {"label": "b", "value": None, "note": word, "group": "dev"}],
                       {"title": word, "y_title": word}),
                Figure("cost", "scatter", [{"x": 1, "y": 0.5, "label": word, "group": "a"}], titles),
                Figure("heat", "heat_map", [[0.1, None], [0.3, 0.4]], {**grid, "notes": [[0, 1, word]]}),
                Figure("heats", "small_multiples", {word: [[0.1, 0.2], [0.3, 0.4]]}, grid),
                Figure("lengths", "histogram", [1, 2, 2, 3], {"title": word, "x_title": word}),
            ),
            "tables": (Table((word, "dev"), ((word, 0.5), ("b", None)), word),),
            "command": ("study", "search", "minilm", word, "--out", "elsewhere"),
            **changes,
        }
    )  # fmt: skip


def write_study(folder: Path, word: str = "word", **changes: Any) -> Path:
    """A study's folder with only its answer."""
    folder.mkdir(parents=True)
    write_answer(folder, answer(word, **changes))
    return folder
