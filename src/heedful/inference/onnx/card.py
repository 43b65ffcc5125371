"""The README of an exported ONNX folder: how to use it, with and without heedful, and what was measured."""

from __future__ import annotations

from pathlib import Path

from heedful import __version__
from heedful.inference.decisions import read_decision
from heedful.inference.onnx.measures import Measures
from heedful.inference.onnx.predictor import ONNX_FACTS
from heedful.linear.folders import WORDS, holds_linear
from heedful.runs.directory import Run
from heedful.runs.files import write_text
from heedful.runs.json_files import read_json

PLAIN_EXAMPLE = """\
import json
from pathlib import Path
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

facts = json.loads(Path(FOLDER, "onnx.json").read_text("utf-8"))
tokenizer = Tokenizer.from_file(f"{FOLDER}/tokenizer.json")
tokenizer.enable_truncation(facts["max_len"])
tokenizer.enable_padding(pad_id=facts["pad_id"])
session = onnxruntime.InferenceSession(f"{FOLDER}/model.onnx")
texts = TEXTS
encoded = tokenizer.encode_batch(texts)
arrays = {
    "input_ids": np.array([one.ids for one in encoded]),
    "attention_mask": np.array([one.attention_mask for one in encoded]),
    "token_type_ids": np.array([one.type_ids for one in encoded]),
}
logits = session.run(None, {one.name: arrays[one.name] for one in session.get_inputs()})[0]
"""
"""Computes the outputs of texts with onnxruntime and tokenizers alone."""
TEXTS = '["a text", "another text"]'
PAIRS = '[("a text", "its second text"), ("another text", "its second text")]'
ANSWERS = {
    "label": """\
for text, row in zip(texts, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)):
    print(text, facts["labels"][row.argmax()], row.max())
""",
    "labels": """\
for text, row in zip(texts, 1 / (1 + np.exp(-logits))):
    print(text, [name for name, p, t in zip(facts["labels"], row, facts["thresholds"]) if p >= t], row)
""",
    "number": """\
for text, row in zip(texts, logits):
    print(text, row[0])
""",
}
"""What the outputs mean, by the kind of the answers."""


def write_example(folder: Path) -> str:
    """Return the lines that label texts without heedful."""
    facts = read_json(folder / ONNX_FACTS)
    texts = PAIRS if facts["run"].get("pairs") else TEXTS
    return PLAIN_EXAMPLE.replace("TEXTS", texts) + ANSWERS.get(facts["kind"], ANSWERS["label"])


def write_card(folder: Path, run: Run, measures: Measures) -> None:
    columns, rows = measures.table()
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in (columns, ["---"] * len(columns), *rows))
    words = ""
    if holds_linear(folder / WORDS):
        words = "\nIts head also reads words (`words/`), which heedful adds and the lines below leave out.\n"
    if (decision := read_decision(folder)) is not None:
        words += (
            f"\n{decision.label} is predicted from a probability of {decision.threshold:.4g} on "
            "(`decision.json`), which the lines below leave out.\n"
        )
    if read_json(folder / ONNX_FACTS)["long_texts"] != "cut":
        words += "\nOf long texts heedful reads the beginning and the end; the lines below cut the end.\n"
    facts = "\n".join(f"- {line}" for line in measures.lines())
    text = (
        f"# {run.path.name} for ONNX Runtime, {measures.precision}\n\n"
        f"Written by heedful {__version__}. {measures.sentence()}.\n\n{facts}\n\n{table}\n\n"
        f'With heedful: `heedful predict FOLDER "a text"`, which needs no torch.\n{words}\n'
        f"Without it:\n\n```python\n{write_example(folder)}```\n"
    )
    write_text(folder / "README.md", text)
