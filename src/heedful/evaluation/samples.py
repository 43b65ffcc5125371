"""Short texts that a language model writes at the end of its training, to be read beside its scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from heedful.inference.generation import Sampling, context_length, generate
from heedful.inference.writer import Writer
from heedful.objectives import Causal
from heedful.runs.schemas import TextSample

SAMPLES, PROMPT_TOKENS, NEW_TOKENS = 3, 8, 64
TEMPERATURE = 0.8
"""Below 1, so that a small model's text is not mostly its unlikely tokens."""


def write_samples(model: Any, objective: Any) -> tuple[TextSample, ...] | None:
    """Continue the first tokens of a few texts of dev, or of train; None if the objective is not causal."""
    if not isinstance(objective, Causal):
        return None
    split = "dev" if "dev" in objective.texts else "train"
    packing, ids = objective.packings[split], np.asarray(objective.texts[split].ids)
    length = min(PROMPT_TOKENS, context_length(model) // 2)
    long_enough = np.sort(packing.begins[packing.sizes > length])
    if not len(long_enough):
        return None
    places = np.unique(np.linspace(0, len(long_enough) - 1, SAMPLES).astype(np.int64))
    prompts = [ids[begin : begin + length].tolist() for begin in long_enough[places]]
    writer = Writer(model, objective.tokenizer)
    sampling = Sampling(temperature=TEMPERATURE, seed=objective.seed)
    written = generate(
        model, prompts, max_tokens=NEW_TOKENS, stop_ids=writer.stop_ids(()), sampling=sampling, slide=True
    )
    return tuple(
        TextSample(objective.tokenizer.decode(prompt), writer.new_text(prompt, one.ids))
        for prompt, one in zip(prompts, written, strict=True)
    )
