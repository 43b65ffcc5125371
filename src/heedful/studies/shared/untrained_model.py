"""A model that has learnt nothing yet, in a folder: what a pretrained one is compared with."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from heedful.options.training import PretrainOptions


def write_untrained(options: PretrainOptions, folder: Path) -> None:
    """Write the model as pretraining begins with it: the same shape, tokenizer and first weights."""
    from heedful import checkpoints
    from heedful.training.build import build_pretrain

    shutil.rmtree(folder, ignore_errors=True)
    job = build_pretrain(options)
    with tempfile.TemporaryDirectory() as place:
        job.tokenizer.save(Path(place))
        checkpoints.save(job.model, folder, tokenizer=place)
