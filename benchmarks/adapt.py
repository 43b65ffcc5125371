"""Compare the speed of adapting MiniLM with Heedful, transformers' Trainer and peft.

    python -m benchmarks.adapt                          all cases, five turns
    python -m benchmarks.adapt sst2 head --turns 3      some cases

Rows, batch size and dropout are the same for all. Each run is a child process, the sides take turns, and the
numbers are medians. The time includes training, the features of a frozen body, and a checkpoint and a score
on dev after each epoch; it excludes loading and tokenizing. Texts are read from $HEEDFUL_DATA (sst2, boolq),
else generated. The roof is the throughput of plain matrix products with the shapes of this model, in the same
run.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import compare_sides, cpu_seconds, measure_in_turns, refuse_busy, write_rows


@dataclass(frozen=True)
class Case:
    task: str
    world: str
    method: str
    rows: int
    dev_rows: int
    epochs: int
    max_len: int
    goals: dict[str, float]
    """The intended speed of Heedful relative to each other side."""


CASES = {
    "sst2": Case("sst2", "world/sentiment", "full", 2000, 200, 1, 128, {"grouped": 1.4, "default": 2.3}),
    "boolq": Case("boolq", "world/boolq", "full", 320, 64, 1, 256, {"grouped": 2.0, "default": 3.0}),
    "head": Case("sst2", "world/sentiment", "head", 640, 200, 20, 128, {"grouped": 20.0}),
    "lora": Case("sst2", "world/sentiment", "lora", 1000, 200, 1, 128, {"grouped": 1.8}),
    "prompt": Case("sst2", "world/sentiment", "prompt", 320, 100, 1, 128, {"grouped": 1.8}),
    "prefix": Case("sst2", "world/sentiment", "prefix", 640, 100, 1, 128, {"grouped": 1.8}),
}
BATCH = 32
FLOPS = 6.0 * 10_646_784
"""Operations per token of a forward and a backward pass: 6 per weight of the layers' matrices."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"cases to run (default: all): {', '.join(CASES)}")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no case {name}; there are {', '.join(CASES)}")
    if args.side:
        print(json.dumps(run_side(args.side, CASES[args.cases[0]])))
        return
    refuse_busy(args.force)
    for name in args.cases or CASES:
        case = CASES[name]
        sides = {side: (name, "--side", side) for side in ("heedful", *case.goals)}
        medians = measure_in_turns(sides, "benchmarks.adapt", args.turns)
        ours = medians["heedful"]
        share = ours["tokens_per_second"] * ours["flops_per_token"] / roof()
        rows = [
            compare_sides(name, side, ours, medians[side], goal, share) for side, goal in case.goals.items()
        ]
        if args.out:
            write_rows(args.out, "python -m benchmarks.adapt", args.turns, rows)


def load_rows(case: Case) -> tuple[Any, list[int], list[int]]:
    """Return the task and the numbers of the train and dev rows to use, which are the same for every side."""
    from heedful.data import load_task

    data = os.environ.get("HEEDFUL_DATA")
    task = load_task(case.task if data and (Path(data) / case.task).is_dir() else case.world)
    return task, list(range(case.rows)), list(range(case.dev_rows))


def run_side(side: str, case: Case) -> dict[str, float]:
    """Measure one run of one side, in this process."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    return run_heedful(case) if side == "heedful" else run_transformers(case, grouped=side == "grouped")


def run_heedful(case: Case) -> dict[str, float]:
    """Measure `heedful adapt` on these rows, which are written to files first."""
    from heedful.objectives import ClassifyFeatures
    from heedful.options.training import AdaptOptions
    from heedful.training.loop import Loop
    from heedful.training.train import train_run as run_training

    task, train, dev = load_rows(case)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("train", train), ("dev", dev)):
            with (Path(folder) / f"{name}.jsonl").open("w") as file:
                for i in rows:
                    e = task.splits[name][i]
                    row = {"text": e.text, "label": task.label_names[e.label]}
                    file.write(json.dumps(row | ({"pair": e.pair} if e.pair is not None else {})) + "\n")
        clock = Clock()
        clock.watch(Loop, "train")
        clock.watch(ClassifyFeatures, "__init__")
        done = run_training(
            AdaptOptions(
                model="minilm",
                task=folder,
                method=case.method,
                epochs=case.epochs,
                batch_size=BATCH,
                max_len=case.max_len,
                method_options=("length=20",) if case.method == "prefix" else (),
                train_eval_rows=0,
                precision="float32",
                score_test=False,
                out=Path(folder) / "run",
            )
        )
    rate = done.results.tokens_per_second or 0.0
    return {"seconds": clock.seconds, "cpu": clock.cpu, "tokens_per_second": rate, "flops_per_token": FLOPS}


class Clock:
    """Add up the time spent in the watched methods."""

    def __init__(self) -> None:
        self.seconds = self.cpu = 0.0

    def watch(self, owner: type, name: str) -> None:
        """Time every later call of a method."""
        plain = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            start, before = time.perf_counter(), cpu_seconds()
            try:
                return plain(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start
                self.cpu += cpu_seconds() - before

        setattr(owner, name, timed)


def run_transformers(case: Case, grouped: bool) -> dict[str, float]:
    """Measure the Trainer, with peft for the methods that peft has."""
    import torch
    from transformers import (
        AutoModelForSequenceClassification,
        AutoTokenizer,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
    )

    from heedful.text.model_folders import minilm_folder

    task, train, dev = load_rows(case)
    tokenizer = AutoTokenizer.from_pretrained(minilm_folder())
    model = AutoModelForSequenceClassification.from_pretrained(
        minilm_folder(), num_labels=len(task.label_names)
    )
    if case.method == "head":
        for parameter in model.base_model.parameters():
            parameter.requires_grad_(False)
    elif case.method != "full":
        model = with_peft(model, case.method)

    def encode(split: str, rows: list[int]) -> list[dict[str, Any]]:
        examples = [task.splits[split][i] for i in rows]
        texts = [e.text for e in examples]
        pairs = None if examples[0].pair is None else [e.pair for e in examples]
        encoded = tokenizer(
            texts, pairs, truncation="only_second" if pairs else True, max_length=case.max_len, padding=False
        )
        return [
            {key: encoded[key][i] for key in encoded}
            | {"labels": examples[i].label, "length": len(encoded["input_ids"][i])}
            for i in range(len(rows))
        ]

    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            num_train_epochs=case.epochs,
            per_device_train_batch_size=BATCH,
            per_device_eval_batch_size=BATCH,
            learning_rate=5e-5,
            warmup_steps=10,
            eval_strategy="epoch",
            save_strategy="epoch",
            save_total_limit=2,
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
            remove_unused_columns=True,
            train_sampling_strategy="group_by_length" if grouped else "random",
            length_column_name="length",
        )
        trainer = Trainer(
            model=model,
            args=arguments,
            train_dataset=encode("train", train),
            eval_dataset=encode("dev", dev),
            data_collator=DataCollatorWithPadding(tokenizer),
        )
        torch.manual_seed(0)
        before, start = cpu_seconds(), time.perf_counter()
        trainer.train()
        return {"seconds": time.perf_counter() - start, "cpu": cpu_seconds() - before}


def with_peft(model: Any, method: str) -> Any:
    """Return the model with the same method from peft."""
    import peft

    common = {"task_type": peft.TaskType.SEQ_CLS}
    config = {
        "lora": lambda: peft.LoraConfig(r=8, lora_alpha=16, target_modules=["query", "value"], **common),
        "prompt": lambda: peft.PromptTuningConfig(num_virtual_tokens=128, **common),
        "prefix": lambda: peft.PrefixTuningConfig(num_virtual_tokens=20, **common),
    }[method]()
    return peft.get_peft_model(model, config)


def roof() -> float:
    """Return operations per second of matrix products with MiniLM's shapes, for 32 texts of 32 tokens."""
    import torch

    torch.set_num_threads(os.cpu_count() or 1)
    rows, shapes = 1024, ((384, 384), (384, 1536), (1536, 384))
    best = 0.0
    for _ in range(5):
        start, done = time.perf_counter(), 0
        for n, m in shapes:
            a, b = torch.randn(rows, n), torch.randn(n, m)
            for _ in range(20):
                a @ b
                done += 2 * rows * n * m
        best = max(best, done / (time.perf_counter() - start))
    return best


if __name__ == "__main__":
    sys.exit(main())
