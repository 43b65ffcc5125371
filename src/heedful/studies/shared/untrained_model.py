"""The untrained model that a pretrained one is compared with, written to a folder."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from heedful.options.training import PretrainOptions


def write_untrained(options: PretrainOptions, folder: Path) -> None:
    """Write the model that pretraining begins with: the same shape, tokenizer and initial weights."""
    from heedful import checkpoints
    from heedful.training.build import build_pretrain

    shutil.rmtree(folder, ignore_errors=True)
    job = build_pretrain(options)
    with tempfile.TemporaryDirectory() as tokenizer:
        job.tokenizer.save(Path(tokenizer))
        checkpoints.save(job.model, folder, tokenizer=tokenizer)
