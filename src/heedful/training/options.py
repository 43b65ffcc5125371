"""What training commands can be told: one list each, read by the command line, TOML and Python.

Nothing here imports torch, so that `--help` is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

Precision = Literal["auto", "float32", "bfloat16"]
Flag = Annotated[bool, Parameter(negative=())]
Argument = Annotated[str, Parameter(parse=False)]
"""Stands without a flag on the command line."""
Several = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())]
"""Takes as many words as follow."""
MAX_LEN = 256


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """What every training command can be told."""

    lr: float | None = None
    """Learning rate; by default what suits the method."""
    epochs: int = 3
    """Passes over the training data."""
    batch_size: int = 32
    """Examples a step."""
    accumulate: int = 1
    """Compute each batch in so many parts: less memory, the same result."""
    optimizer: str = "adamw"
    """adamw, sgd, rmsprop or muon."""
    schedule: str = "linear"
    """constant, linear, cosine or wsd (warm-up, stable, decay)."""
    warmup: float = 0.06
    """Below 1 a share of all steps, from 1 on a number of steps."""
    weight_decay: float = 0.01
    """On matrices; never on biases, norms and embeddings."""
    clip: float = 1.0
    """Largest norm of the gradient; 0 for none."""
    eval_every: int | None = None
    """Score dev every so many steps instead of every epoch."""
    patience: int | None = None
    """Stop after so many evaluations without a better dev score."""
    train_eval_rows: int = 2000
    """Score so many training rows in evaluation mode too; 0 for none."""
    seed: int = 0
    """Decides everything random."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    precision: Precision = "auto"
    """auto (measured on this machine), float32 or bfloat16."""
    threads: int | None = None
    """CPU threads; by default the cores this process may use."""
    tensorboard: Flag = False
    """Also write for TensorBoard."""


@dataclass(frozen=True, kw_only=True)
class AdaptOptions(LoopOptions):
    """Everything `heedful adapt` can be told; command line, TOML and Python read this one list."""

    model: Argument = ""
    """A folder in Hub form, minilm, a preset (heedful list models), or a Hub id."""
    task: Argument = ""
    """boolq, sst2, yelp, world/reviews, ..., a folder with train, dev and test files, or one file."""
    method: str = "full"
    """full, head, prompt, prefix, lora or bitfit."""
    objective: Literal["classify", "text2text", "joint"] = "classify"
    """classify; text2text (T5 writes a label word); joint with masked language modelling on more text."""
    head: Literal["auto", "linear", "family"] = "auto"
    """Form of the classification head; auto: linear for head and prompt, else the family's own."""
    max_len: int = MAX_LEN
    """Tokens a text; longer ones are cut, and counted."""
    train_rows: int | None = None
    """Train on so many labelled rows, balanced and seeded."""
    label_smoothing: float = 0.0
    """Share of the target given to the other labels."""
    class_weights: Literal["none", "balanced"] = "none"
    """balanced: every label counts the same in total."""
    dropout: float | None = None
    """Instead of the checkpoint's dropout, everywhere in the body."""
    attention: str | None = None
    """Swap the attention mechanism: performer, bigbird:block=32, ..."""
    tokenizer: str | None = None
    """A tokenizer's folder or a model's name; by default the model's own."""
    method_options: Several = ()
    """Options of the method: --method-options rank=8 alpha=16 targets=q,v; length=20; pool=first."""
    label_words: Several = ()
    """text2text: words for the labels, as 0=negative 1=positive; by default their names."""
    unlabeled: Path | None = None
    """joint: text without labels, one text a line; by default the training texts."""
    mlm_weight: float = 0.3
    """joint: weight of the masked language modelling loss."""
    mlm_first: int = 0
    """joint: so many steps of masked language modelling alone before."""
    mlm_rate: float = 0.15
    """joint: share of tokens to hide."""
    data_dir: Path | None = None
    """Where a named task's files are; by default $HEEDFUL_DATA/NAME."""
    split: Literal["hash", "first"] = "hash"
    """How rows are split where the files do not say."""
    split_seed: int = 0
    """Another seed splits otherwise; the training's own seed never does."""
    text_column: str | None = None
    """Name of the text's column."""
    pair_column: str | None = None
    """Name of the second text's column."""
    label_column: str | None = None
    """Name of the label's column."""
    cache_features: bool = True
    """head: run the frozen body once and keep its states (dropout in the body off)."""
    score_test: bool = True
    """Score test with the best model at the end; studies do it themselves."""
    out: Path | None = None
    """The run's folder; by default runs/TASK-MODEL-METHOD-sSEED."""
    resume: Flag = False
    """Continue the run in --out."""
    overwrite: Flag = False
    """Replace the run in --out."""


DEFAULT_LR = {"full": 5e-5, "bitfit": 1e-3, "lora": 5e-4, "head": 1e-3, "prompt": 1e-2, "prefix": 1e-2}
NOT_IN_CONFIG = ("out", "resume", "overwrite")
