"""Compare the speed of labeling texts: transformers' pipeline, plain ONNX Runtime and Heedful, on one core.

    python -m benchmarks.predict                     short and long texts, texts one by one and 32 at a time
    python -m benchmarks.predict short --turns 1

The model is MiniLM with a new head, the same for all. Short texts are banking77's questions (12 words on
average), long ones Yelp's reviews ($HEEDFUL_DATA, else generated), cut at 256 tokens. Each side is a child
process with one thread, and the sides take turns. Texts per second are counted in processor time, which other
work on the machine disturbs least; the last column is the time that passed. "plain" is what one writes:
transformers' model recorded by torch.onnx, a batch of texts in their order, padded to the longest. int8 is
dynamic and per channel, with 8 and with 7 bits for weights (`reduce_range`).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import refuse_busy, run_child

CASES = {"short": ("banking77", "world/sentiment", 600), "long": ("yelp", "world/reviews", 64)}
"""The task of the texts, the one that is generated without it, and the number of texts."""
SIDES = (
    "pipeline", "plain", "plain-int8", "plain-int8-reduced",
    "torch", "onnx", "onnx-int8", "onnx-int8-reduced",
)  # fmt: skip
SIZES = (1, 32)
MAX_LEN, CLASSES = 256, 3

Label = Callable[[Sequence[str]], Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"cases to run (default: all): {', '.join(CASES)}")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no case {name}; there are {', '.join(CASES)}")
    if args.side:
        print(json.dumps(run_side(args.side, args.cases[0])))
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    refuse_busy(args.force)
    rows = []
    for case in args.cases or CASES:
        measured: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
        for turn in range(args.turns):
            for side in SIDES:
                measured[side].append(run_child("benchmarks.predict", case, "--side", side))
                print(f"  {case} {turn + 1}/{args.turns} {side}", file=sys.stderr)
        for size in SIZES:
            rows += compare(case, size, measured)
    if args.out:
        args.out.write_text(json.dumps({"turns": args.turns, "rows": rows}, indent=2) + "\n", "utf-8")


def compare(case: str, size: int, measured: dict[str, list[dict[str, float]]]) -> list[dict[str, Any]]:
    """Print the sides of one case and return them as rows."""
    rows = []
    rates = {side: median(one[f"cpu-{size}"] for one in each) for side, each in measured.items()}
    for side, each in measured.items():
        wall = median(one[f"wall-{size}"] for one in each)
        times = rates[side] / rates["pipeline"]
        rows.append(
            {"case": case, "batch": size, "side": side, "rate": rates[side], "times": times, "wall": wall}
        )
        print(
            f"{case:6} batch {size:2} {side:20} {rates[side]:7.1f} texts/s, {times:5.2f} times the pipeline "
            f"(time that passed: {wall:.1f} texts/s)",
            flush=True,
        )
    return rows


def load_texts(case: str) -> list[str]:
    from heedful.data import load_task

    name, world, count = CASES[case]
    data = os.environ.get("HEEDFUL_DATA")
    task = load_task(name if data and (Path(data) / name).is_dir() else world)
    return list(task.splits["train"].texts)[:count]


def run_side(side: str, case: str) -> dict[str, float]:
    """Measure one side at both sizes, in this process."""
    texts, found = load_texts(case), {}
    with tempfile.TemporaryDirectory() as folder:
        label = make_side(side, Path(folder))
        for size in SIZES:
            chosen = texts if size > 1 else texts[: len(texts) // 4]
            label(chosen[:size])
            cpu, wall = time.process_time(), time.perf_counter()
            if side in ("torch", "onnx", "onnx-int8", "onnx-int8-reduced") and size > 1:
                label(chosen)  # a file is labeled so: the predictor chooses its batches itself
            else:
                for start in range(0, len(chosen), size):
                    label(chosen[start : start + size])
            found[f"cpu-{size}"] = len(chosen) / (time.process_time() - cpu)
            found[f"wall-{size}"] = len(chosen) / (time.perf_counter() - wall)
    return found


def make_side(side: str, folder: Path) -> Label:
    import torch

    from heedful import checkpoints

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = checkpoints.load("minilm", head="classify", n_classes=CLASSES, pool="first").eval()
    if side in ("pipeline", "plain", "plain-int8", "plain-int8-reduced"):
        checkpoints.export(model, folder / "theirs")
        return make_theirs(side, folder)
    from heedful.inference.network_predictors import ClassifierPredictor
    from heedful.inference.onnx.graph import write_graph
    from heedful.inference.onnx.predictor import OnnxPredictor, open_session
    from heedful.inference.onnx.quantize import quantize_graph
    from heedful.text import load
    from heedful.text.model_folders import minilm_folder

    tokenizer, labels = load(minilm_folder()), [str(i) for i in range(CLASSES)]
    if side == "torch":
        return ClassifierPredictor(model, tokenizer, MAX_LEN, labels).predict_proba  # type: ignore[arg-type]
    graph = folder / "model.onnx"
    write_graph(model, tokenizer.pad_id or 0, graph)  # type: ignore[arg-type]
    if side != "onnx":
        quantize_graph(graph, graph := folder / "int8.onnx", reduce_range=side.endswith("reduced"))
    facts = {"max_len": MAX_LEN, "labels": labels, "long_texts": "cut"}
    return OnnxPredictor(open_session(graph, 1), tokenizer, facts).predict_proba


def make_theirs(side: str, folder: Path) -> Label:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

    if side == "pipeline":
        call = pipeline("text-classification", model=str(folder / "theirs"), device="cpu")
        return lambda texts: call(
            list(texts), batch_size=len(texts), truncation=True, max_length=MAX_LEN, top_k=None
        )
    import onnxruntime
    from onnxruntime.quantization import QuantType, quantize_dynamic

    tokenizer = AutoTokenizer.from_pretrained(folder / "theirs")
    model = AutoModelForSequenceClassification.from_pretrained(folder / "theirs").eval()
    example = tokenizer(["one text", "another, which is longer"], padding=True, return_tensors="pt")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    path = folder / "plain.onnx"
    torch.onnx.export(
        wrap_logits(model), tuple(example[name] for name in names), str(path), dynamo=False, opset_version=17,
        input_names=names, output_names=["logits"], dynamic_axes={name: {0: "b", 1: "t"} for name in names},
    )  # fmt: skip
    if side != "plain":
        reduced = side.endswith("reduced")
        quantize_dynamic(
            path,
            path := folder / "int8.onnx",
            per_channel=True,
            reduce_range=reduced,
            weight_type=QuantType.QInt8,
        )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def label(texts: Sequence[str]) -> Any:
        encoded = tokenizer(
            list(texts), padding=True, truncation=True, max_length=MAX_LEN, return_tensors="np"
        )
        logits = session.run(None, {name: encoded[name].astype("int64") for name in names})[0]
        return torch.from_numpy(logits).softmax(-1)

    return label


def wrap_logits(model: Any) -> Any:
    """Return transformers' model as a module that gives logits alone."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, mask: Any, types: Any) -> Any:
            return self.model(ids, mask, types).logits

    return Wrapped().eval()


if __name__ == "__main__":
    main()
