"""Checks of a model that labels text and has no run beside it: an export, or an ONNX folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from heedful.evaluation import checks
from heedful.inference.loading import load_run
from heedful.inference.network_predictors import NetworkPredictor
from heedful.inference.onnx.predictor import holds_onnx, read_onnx_facts
from heedful.inference.predictor import Predictor
from heedful.paths import expand_path
from heedful.runs.schemas import Check

TEXTS = (
    "a text",
    "another text, which is somewhat longer than the first one",
    "The third is a sentence of its own. It is followed by a second sentence, and by a third: this one.",
    "42",
)
"""Made-up texts of different lengths."""
LARGEST_DIFFERENCE = 1e-3
"""Of the outputs for a text alone and beside others, as a share of the largest: float32 adds up in another
order where texts are padded; a mask that is not respected does far more."""


def check_folder(path: str | Path) -> list[Check]:
    """Check a model's outputs on made-up texts and, of a network, causality and tokenizer."""
    predictor = load_run(path, device="cpu")
    findings = []
    if isinstance(predictor, NetworkPredictor):
        config = predictor.model.config
        if config.kind != "encoder":
            findings.append(checks.causality(predictor.model))
        findings.append(checks.tokenizer_fits(predictor.tokenizer, config, pretrained=True))
    folder = expand_path(path)
    if holds_onnx(folder) and read_onnx_facts(folder)["precision"] == "int8":
        sentence = "Activations of 8 bits are scaled by all texts of a batch, so that answers depend on it."
        return [*findings, Check("same_alone", "skipped", sentence)]
    return [*findings, check_same_alone(predictor)]


def check_same_alone(predictor: Predictor) -> Check:
    """Does a text get the same answer alone as beside longer ones?"""
    name = "same_alone"
    if not predictor.labels and predictor.kind != "number":
        return Check(name, "skipped", "The model writes its answers: it has no outputs to compare.")
    pairs = list(reversed(TEXTS)) if reads_pairs(predictor) else None
    together = predictor.predict_proba(list(TEXTS), pairs)
    alone = np.concatenate(
        [
            predictor.predict_proba([text], None if pairs is None else [pairs[i]])
            for i, text in enumerate(TEXTS)
        ]
    )
    if not np.isfinite(together).all():
        sentence = "The outputs are not finite numbers; the model has diverged, or its files are damaged."
        return Check(name, "failed", sentence)
    difference = float(np.abs(together - alone).max()) / max(1.0, float(np.abs(alone).max()))
    if difference > LARGEST_DIFFERENCE:
        sentence = (
            f"A text gets another answer beside longer ones: the outputs differ by {difference:.3g}; padding "
            "is taken for text; do not use this model."
        )
        return Check(name, "failed", sentence, difference, LARGEST_DIFFERENCE)
    sentence = f"A text gets the same answer alone as beside longer ones (difference {difference:.1e})."
    return Check(name, "passed", sentence, difference, LARGEST_DIFFERENCE)


def reads_pairs(predictor: Predictor) -> bool:
    return bool((predictor.config or {}).get("pairs"))
