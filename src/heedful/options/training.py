"""The options of the training commands, one frozen dataclass each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from heedful.options.types import (
    Argument,
    Count,
    Decay,
    Flag,
    Length,
    LongTexts,
    Minutes,
    OpenShare,
    Positive,
    Rate,
    Remark,
    Seed,
    Several,
    Share,
    Threads,
    Weight,
)

Precision = Literal["auto", "float32", "bfloat16"]
MAX_LEN = 256


@dataclass(frozen=True, kw_only=True)
class LoopOptions:
    """The options that all training commands share."""

    lr: Rate | None = None
    """Learning rate. The default depends on the method and the model."""
    epochs: Positive | None = None
    """Number of passes over the training data. By default 3, and more for few rows or many labels."""
    steps: Positive | None = None
    """Number of optimizer steps, instead of --epochs."""
    batch_size: Positive | None = None
    """Number of examples per step. By default chosen for the task."""
    token_budget: Positive | None = None
    """Number of tokens per step, padding included, instead of --batch-size."""
    accumulate: Positive = 1
    """Compute each batch in this many parts: less memory, the same result."""
    optimizer: str = "adamw"
    """adamw, sgd, rmsprop or muon (heedful list optimizers)."""
    schedule: str = "linear"
    """Learning-rate schedule: constant, linear, cosine or wsd (warm-up, stable, decay)."""
    warmup: Weight | None = None
    """Warm-up: a share of all steps if below 1, otherwise a number of steps. By default 0.1."""
    weight_decay: Decay = 0.01
    """Weight decay of matrices; biases, norms and embeddings have none."""
    clip: Weight = 1.0
    """Largest norm of the gradient; 0 turns clipping off."""
    eval_every: Positive | None = None
    """Score dev every this many steps, instead of every epoch."""
    patience: Positive | None = None
    """Stop after this many evaluations without a better dev score."""
    metric: str | None = None
    """Metric that selects the best evaluation on dev (heedful list metrics). By default that of the task."""
    select: Literal["best", "last"] = "best"
    """Keep the model with the best dev score, or the last one."""
    train_eval_rows: Count = 2000
    """Largest number of training rows to score at each evaluation; 0 for none. More than 500 are scored only
    if that takes less than a quarter of the time."""
    seed: Seed = 0
    """Seed of everything random."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    precision: Precision = "auto"
    """Number format; auto measures which is faster on this machine."""
    threads: Threads | None = None
    """CPU threads per process. By default the available cores, divided among the processes."""
    processes: Threads | None = None
    """Number of processes that train together. By default one per GPU, or one."""
    tensorboard: Flag = False
    """Also write logs for TensorBoard; the same as --track tensorboard."""
    track: Several = ()
    """Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds."""
    note: Remark | None = None
    """A remark for results.json and the title of every figure."""
    out: Path | None = None
    """Folder of the run. By default a new folder in runs/, named after the data and the model."""
    resume: Flag = False
    """Continue the run in --out."""
    overwrite: Flag = False
    """Replace the run in --out."""


@dataclass(frozen=True, kw_only=True)
class AdaptOptions(LoopOptions):
    """The options of `heedful adapt`."""

    model: Argument = ""
    """A folder in Hub form, minilm, tfidf (words without a network), majority (the most frequent label), a
    preset (heedful list models), or a Hub id."""
    task: Argument = ""
    """boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb)."""
    method: str = "full"
    """full, head, top-layers, prompt, prefix, lora, bitfit or contrastive (heedful list methods)."""
    kind: str | None = None
    """Kind of problem: label (one per text), labels (any number of them), number, ordered (classes with an
    order, such as stars) or text (a free answer); see heedful list problems. By default it is found from the
    data, and printed; only ordered must be named."""
    objective: str = "auto"
    """classify; text2text (T5 writes a label word); joint (also masked language modeling on more text);
    answer (free text after a question). auto chooses answer for tasks with answers, otherwise classify."""
    answer_loss: Literal["answer", "all"] = "answer"
    """With --objective answer: compute the loss on the answer only, or on the question too."""
    head: Literal["auto", "linear", "family"] = "auto"
    """Form of the classification head. auto: linear for the methods head, prompt and contrastive,
    otherwise the model family's own."""
    head_start: Literal["auto", "fitted", "random"] = "auto"
    """How a new linear head starts: fitted to the pretrained model's states by logistic regression, or with
    random weights. auto: fitted for a pretrained model."""
    pool: Literal["first", "mean", "apart", "family"] | None = None
    """What an encoder passes to its head: the first token's state, the mean over all tokens or, for pairs, a
    comparison of the means of both texts (apart); family is what the model's family does. By default what the
    model's folder declares (the mean for sentence encoders such as minilm), otherwise the family's."""
    max_len: Length | None = None
    """Largest number of tokens per text; longer texts are truncated, and the run counts them. By default
    enough for 95 % of the texts, and at most 256."""
    long_texts: LongTexts = "cut"
    """What is read of longer texts, at the same cost: their beginning (cut), or a quarter of --max-len from
    the beginning and the rest from the end (head-tail)."""
    train_rows: Positive | None = None
    """Train on this many labeled rows, with the shares of the labels in all rows; --seed chooses the rows."""
    balanced: Flag = False
    """With --train-rows: choose equally many rows of each label."""
    fold: str | None = None
    """K/N, such as 2/5: hold out the second of five parts of train as dev, for cross-validation; the task's
    own dev rows are left out. --seed chooses the parts. With --time, the first part is the latest one, and
    only rows that are earlier than the part are trained on."""
    with_dev: Flag = False
    """Train on the rows of dev too, for a model whose settings are chosen. There is no dev then: the last
    model is kept, and test alone is scored."""
    dev_rows: Positive | None = None
    """Score this many rows of dev, with the same shares of the labels; --split-seed chooses the rows."""
    label_smoothing: Share = 0.0
    """Share of the target probability that is given to the other labels."""
    class_weights: Literal["auto", "none", "balanced"] = "auto"
    """balanced gives all labels the same total weight in the loss. auto: balanced if the labels of train are
    imbalanced and those of dev are not."""
    expect_shares: str | None = None
    """The shares of the labels where the model will be used, if they are not those it is trained on: equal,
    train (also after --balanced or class weights), or a number per label in their order, such as 0.2,0.8.
    The model's probabilities are corrected for them."""
    threshold: OpenShare | None = None
    """Of two labels, the probability from which the second one is predicted. By default it is tuned on dev
    for a metric such as macro_f1 or f1:LABEL, and 0.5 for accuracy."""
    dropout: Share | None = None
    """Dropout of the model's body, instead of the checkpoint's."""
    attention: str | None = None
    """Replace the attention mechanism: performer, bigbird:block=32, ... (heedful list attentions)."""
    tokenizer: str | None = None
    """Folder of a tokenizer, or the name of a model. For a preset also a kind to train on the task's text:
    char, word, bpe, ... By default the model's own."""
    model_options: Several = ()
    """Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary."""
    method_options: Several = ()
    """Options of the method: rank=8 alpha=16 targets=q,v for lora; solver=convex for head, a logistic
    regression instead of steps; layers=2 for top-layers; length=20 for prompt, which by default has as many
    vectors as the median text has tokens, at most 128."""
    label_words: Several = ()
    """With --objective text2text: words for the labels, such as 0=negative 1=positive. By default their
    names."""
    unlabeled: Path | None = None
    """With --objective joint: a file of text without labels, one text per line. By default the training
    texts."""
    mlm_weight: Decay = 0.3
    """With --objective joint: weight of the masked language modeling loss."""
    mlm_first: Count = 0
    """With --objective joint: number of steps of masked language modeling alone at the start."""
    mlm_rate: OpenShare = 0.15
    """With --objective joint: share of tokens to mask."""
    data_dir: Path | None = None
    """Folder with the files of a named task. By default $HEEDFUL_DATA/NAME."""
    split: Literal["hash", "first", "none"] = "hash"
    """How to split rows if the files are not split: by a hash of their content, in order (first), or not at
    all: without a dev split the last model is kept."""
    split_seed: Seed = 0
    """Seed of the split; --seed does not change the split."""
    text_column: str | None = None
    """Name of the column with the text."""
    pair_column: str | None = None
    """Name of the column with the second text of a pair."""
    label_column: str | None = None
    """Name of the column with the label; several columns of 0 and 1, one per label, have commas between
    their names."""
    group: str | None = None
    """Name of a column, such as the author: rows with the same value are on the same side of the split and in
    the same fold. Files that are split already stay as they are, with a warning if they share groups."""
    time: str | None = None
    """Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest train;
    folds train on earlier rows than they hold out. Rows of the same time stay together."""
    strict: Flag = False
    """Refuse files with bad rows, such as one with an empty text, instead of skipping them."""
    cache_features: bool = True
    """With --method head and top-layers: run what is frozen, the body or its lower layers, once, without
    dropout, and reuse its states."""
    score_dev: bool = True
    """Score dev at each evaluation. Otherwise the last model is kept."""
    score_test: bool = True
    """Score test with the selected model at the end."""


@dataclass(frozen=True, kw_only=True)
class PretrainOptions(LoopOptions):
    """The options of `heedful pretrain`."""

    model: Argument = ""
    """A preset (heedful list models) to train from scratch, or a folder, a run or a Hub id to continue."""
    corpus: Argument = ""
    """A text file, a folder, a table, the text of a task (birthplaces, ...), or world/..."""
    objective: str = "causal"
    """causal (the next token, for decoders), masked (masked tokens, for encoders), span (masked spans, for
    decoders and T5)."""
    epochs: Positive = 3
    """Number of passes over the training data."""
    batch_size: Positive = 32
    """Number of examples per step."""
    warmup: Weight = 0.06
    """Warm-up: a share of all steps if below 1, otherwise a number of steps."""
    train_eval_rows: Count = 200
    attention: str | None = None
    """The attention mechanism: performer, bigbird:block=32, ... (heedful list attentions)."""
    projections: Literal["separate", "shared_qk", "shared_qkv"] | None = None
    """Whether queries, keys and values share a projection. By default the model's own choice."""
    model_options: Several = ()
    """Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary."""
    dropout: Share | None = None
    """Dropout of the model's body, instead of the model's own."""
    tokenizer: str | None = None
    """Folder of a tokenizer, or a kind to train on the corpus: char, word, bpe, wordpiece, unigram. The
    default depends on the model."""
    vocab_size: Positive | None = None
    """Vocabulary size of a new tokenizer. By default 8000; unlimited for word and char."""
    min_count: Positive | None = None
    """How often a word, character or pair must occur to be in a new vocabulary. By default 2; 1 for char."""
    documents: Literal["line", "paragraph", "file"] = "line"
    """What a document of a text file is: a line, a paragraph (up to an empty line), or the whole file."""
    block: Length | None = None
    """Number of tokens per row. By default 256, or the model's limit."""
    pack: bool = True
    """Put several documents, which do not see each other, into each row of --block tokens. Otherwise, and
    always with span corruption, each row is one document, truncated at --block."""
    dev: str | None = None
    """Text to score during training. By default the corpus's dev split, or a part of the corpus."""
    dev_share: Share = 0.05
    """Share of the documents to hold out if there is no dev split, chosen by a hash of their content; 0 for
    none."""
    test: str | None = None
    """Text to score once at the end. By default the corpus's test split, if it has one."""
    mask_rate: OpenShare = 0.15
    """With --objective masked: share of tokens to mask."""
    whole_words: Flag = False
    """With --objective masked: mask all pieces of a word together."""
    span_form: Literal["line", "window"] = "line"
    """With --objective span: line (a text truncated at random, with one masked span, or several for T5), or
    window (the title and a few tokens around one masked name, date or number, so that each fact depends on
    the title)."""
    span_loss: Literal["all", "span"] = "all"
    """With --span-form line: compute the loss on every token, or on the masked span only."""
    salient: Literal["all", "names"] | None = None
    """With --objective span: mask names, dates and numbers, recognized by their spelling, or only names,
    instead of random spans. --span-form window always masks one of them."""
    window_left: Count = 5
    """With --span-form window: largest number of tokens before the span; each step draws a number."""
    window_right: Count = 3
    """With --span-form window: largest number of tokens after the span."""
    questions: str | None = None
    """A task with answers, such as birthplaces, whose training questions are mixed into each batch."""
    questions_share: OpenShare = 0.25
    """Share of each batch that is questions."""
    sentences: Several = ()
    """Sentences, or a file with one per line, whose loss and perplexity to report."""
    minutes: Minutes | None = None
    """Choose the size of a new model, the batch size, the steps and about 20 evaluations, so that the run
    takes this many minutes in all on this machine. A size, --eval-every or a --batch-size other than
    32 that is given stays; --epochs is not used."""
    budget_min: Minutes | None = None
    """Fit the run into this many minutes: its speed is measured, and config.toml stores the number of
    steps."""
    branch: Path | None = None
    """Continue from a shorter run with --schedule wsd and the same options, with the same result as from the
    start."""
    data_dir: Path | None = None
    """Folder with the files of a named task. By default $HEEDFUL_DATA/NAME."""
    score_test: bool = True
    """Score test with the selected model at the end."""


def named_after(options: LoopOptions) -> tuple[str, str, str, int]:
    """What a run's folder is named after: the data, the model, what is done with it, and the seed."""
    if isinstance(options, AdaptOptions):
        return Path(options.task).stem, options.model, options.method, options.seed
    assert isinstance(options, PretrainOptions)
    return Path(options.corpus).stem, options.model, options.objective, options.seed


PRETRAIN_LR = {"nothing": 1e-3, "checkpoint": 1e-4}
"""Default learning rates of a model from scratch and of one that is pretrained further."""
BLOCK = 256
OLD_PROMPT_LENGTH = "length=128"
"""Number of vectors of a prompt in runs of older versions, where it was not given."""


def has_prompt_length(method_options: Iterable[str]) -> bool:
    return any(text.startswith("length=") for text in method_options)


FIXED_SETTINGS: dict[str, Any] = {
    "batch_size": 32,
    "epochs": 3,
    "warmup": 0.06,
    "max_len": 256,
    "class_weights": "none",
    "pool": "family",
    "head_start": "random",
}
"""Settings of runs that no rule chooses them for; those of every run of adapt before version 0.2."""
FIXED_FULL_RATE = 5e-5
"""The learning rate of full fine-tuning that belongs to them; other methods kept theirs."""
NOT_IN_CONFIG = ("out", "resume", "overwrite")


def add_fixed_settings(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in a run's config.toml with the settings that older versions did not store.

    A run without steps has no learning rate, nor other settings of steps.
    """
    return {**FIXED_SETTINGS, **stored} if "lr" in stored else dict(stored)
