"""What training commands can be told: one list each, read by the command line, TOML and Python.

Nothing here imports torch, so that `--help` is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heedful.options.types import Argument, Flag, Several

Precision = Literal["auto", "float32", "bfloat16"]
AdaptObjective = Literal["auto", "classify", "text2text", "joint", "answer"]
MAX_LEN = 256


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """What every training command can be told."""

    lr: float | None = None
    """Learning rate; by default what suits the method."""
    epochs: int = 3
    """Passes over the training data."""
    steps: int | None = None
    """Train for so many steps, instead of --epochs."""
    batch_size: int = 32
    """Examples a step."""
    token_budget: int | None = None
    """Instead of --batch-size: as many examples a step as have so many tokens, padding included."""
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
    metric: str | None = None
    """The metric that evaluations on dev are compared by; by default, the one that suits the task."""
    select: Literal["best", "last"] = "best"
    """Keep the model of the best evaluation on dev, or of the last one."""
    train_eval_rows: int = 2000
    """Score so many training rows in evaluation mode too; 0 for none."""
    seed: int = 0
    """Decides everything random."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    precision: Precision = "auto"
    """auto (measured on this machine), float32 or bfloat16."""
    threads: int | None = None
    """CPU threads of each process; by default its share of the cores that may be used."""
    processes: int | None = None
    """Processes that train together; by default one for each GPU where there are several, else one."""
    tensorboard: Flag = False
    """Also write for TensorBoard."""
    note: str | None = None
    """A remark that results.json and the title of every figure carry."""
    out: Path | None = None
    """The run's folder; by default runs/ and a name of what is trained on what."""
    resume: Flag = False
    """Continue the run in --out."""
    overwrite: Flag = False
    """Replace the run in --out."""


@dataclass(frozen=True, kw_only=True)
class AdaptOptions(LoopOptions):
    """Everything `heedful adapt` can be told; command line, TOML and Python read this one list."""

    model: Argument = ""
    """A folder in Hub form, minilm, a preset (heedful list models), or a Hub id."""
    task: Argument = ""
    """boolq, sst2, yelp, world/reviews, ..., a folder with train, dev and test files, or one file."""
    method: str = "full"
    """full, head, prompt, prefix, lora or bitfit."""
    objective: AdaptObjective = "auto"
    """classify; text2text (T5 writes a label word); joint with masked language modelling on more text;
    answer (free text after a question). auto: answer for tasks with answers (birthplaces), else classify."""
    answer_loss: Literal["answer", "all"] = "answer"
    """answer: loss on the answer alone, or on the question too."""
    head: Literal["auto", "linear", "family"] = "auto"
    """Form of the classification head; auto: linear for head and prompt, else the family's own."""
    pool: Literal["first", "mean"] | None = None
    """What an encoder gives its head: the first token's state, or the mean over the text's tokens, which
    suits sentence encoders such as minilm and frozen bodies. By default the model's own: first."""
    max_len: int = MAX_LEN
    """Tokens a text; longer ones are cut, and counted."""
    train_rows: int | None = None
    """Train on so many labelled rows, balanced and seeded."""
    dev_rows: int | None = None
    """Score so many rows of dev, with its labels' shares; --split-seed draws them, never --seed."""
    label_smoothing: float = 0.0
    """Share of the target given to the other labels."""
    class_weights: Literal["none", "balanced"] = "none"
    """balanced: every label counts the same in total."""
    dropout: float | None = None
    """Instead of the checkpoint's dropout, everywhere in the body."""
    attention: str | None = None
    """Swap the attention mechanism: performer, bigbird:block=32, ..."""
    tokenizer: str | None = None
    """A tokenizer's folder or a model's name; for a preset also a kind to train on the task's text (char,
    word, bpe, ...). By default the model's own."""
    model_options: Several = ()
    """Of a model from nothing: --model-options n_layers=3 d_model=192 position=rotary ..."""
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
    score_dev: bool = True
    """Score dev at each evaluation; without it the last model is kept."""
    score_test: bool = True
    """Score test with the best model at the end; studies do it themselves."""


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(LoopOptions):
    """Everything `heedful pretrain` can be told; command line, TOML and Python read this one list."""

    model: Argument = ""
    """A preset (heedful list models) for a model from nothing; a folder, a run or a Hub id to go on with."""
    corpus: Argument = ""
    """A text file, a folder, a table, a task's text (ptb, birthplaces, ...) or world/..."""
    objective: Literal["causal", "masked", "span"] = "causal"
    """causal (next token, decoders), masked (hidden tokens, encoders), span (hidden spans; decoders, T5)."""
    train_eval_rows: int = 200
    """Score so many training rows in evaluation mode too; 0 for none."""
    attention: str | None = None
    """The attention mechanism: performer, bigbird:block=32, ... (heedful list attentions)."""
    projections: Literal["separate", "shared_qk", "shared_qkv"] | None = None
    """Whether queries, keys and values share a projection; by default the model's own choice."""
    model_options: Several = ()
    """Of a model from nothing: --model-options n_layers=3 d_model=192 position=rotary ..."""
    dropout: float | None = None
    """Instead of the model's own dropout, everywhere in the body."""
    tokenizer: str | None = None
    """A folder, or a kind to train here: char, word, bpe, wordpiece, unigram; by default what suits."""
    vocab_size: int | None = None
    """Of a tokenizer that is trained: how many tokens; 8000, for word and char as many as there are."""
    min_count: int | None = None
    """Of a tokenizer that is trained: how often a word, character or pair must occur; 2, for char 1."""
    documents: Literal["line", "paragraph", "file"] = "line"
    """What a document is in a text file: a line, lines up to an empty one, or the whole file in order."""
    block: int | None = None
    """Tokens a row; by default 256, or what the model has room for."""
    pack: bool = True
    """Put documents side by side in rows of --block, none seeing another; else one a row, cut at --block,
    as span corruption always has them."""
    dev: str | None = None
    """Score this text while training; by default the corpus's own dev split, or else a part of it."""
    dev_share: float = 0.05
    """Share of the documents held out where there is no dev, by a hash of their content; 0 for none."""
    test: str | None = None
    """Score this text once at the end; by default the corpus's own test split, if it has one."""
    mask_rate: float = 0.15
    """masked: share of the tokens that is hidden."""
    whole_words: Flag = False
    """masked: hide all pieces of a word together."""
    span_form: Literal["line", "window"] = "line"
    """span: line (a text cut at random, one span hidden; T5: several) or window (the title, and a few tokens
    around one name, date or number: short rows that make each fact hang on the title)."""
    span_loss: Literal["all", "span"] = "all"
    """span: loss on every token of a line, or on the hidden span alone; a window has it on the span."""
    salient: Literal["all", "names"] | None = None
    """span: hide names, dates and numbers, found by their spelling, or names alone, instead of random spans.
    A window always hides one of them: all, unless this says names."""
    window_left: int = 5
    """window: at most so many tokens before the span, a random number at each step."""
    window_right: int = 3
    """window: at most so many after it."""
    questions: str | None = None
    """A task with answers: mix its training questions into each batch, in the form of heedful adapt."""
    questions_share: float = 0.25
    """Share of each batch that is questions."""
    sentences: Several = ()
    """Give the loss and perplexity of these sentences too, or of each line of a file."""
    budget_min: float | None = None
    """Fit the run to so many minutes: its speed is measured, and the number of steps fixed in config.toml."""
    branch: Path | None = None
    """Go on from a run with --schedule wsd and the same options, as if it had had this length."""
    data_dir: Path | None = None
    """Where a named task's files are; by default $HEEDFUL_DATA/NAME."""
    score_test: bool = True
    """Score test with the best model at the end; studies do it themselves."""


def named_after(options: LoopOptions) -> tuple[str, str, str, int]:
    """What a run's folder is named after: the data, the model, what is done with it, and the seed."""
    if isinstance(options, AdaptOptions):
        return Path(options.task).stem, options.model, options.method, options.seed
    assert isinstance(options, PretrainOptions)
    return Path(options.corpus).stem, options.model, options.objective, options.seed


PRETRAIN_LR = {"nothing": 1e-3, "checkpoint": 1e-4}
"""Of a model from nothing, and of one that goes on."""
BLOCK = 256
NOT_IN_CONFIG = ("out", "resume", "overwrite")
