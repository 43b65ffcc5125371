"""Written by scripts/write_api.py from the dataclasses in `heedful.options`; do not edit."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from heedful.results import RunResult, SolveResult, StudyResult

def solve(
    task: Any,
    labels: Any = None,
    *,
    unlabeled: Any = None,
    minutes: float = 10.0,
    metric: str | None = None,
    prefer: Literal["accuracy", "speed", "small"] | None = None,
    model: str = "minilm",
    candidates: Sequence[str] = (),
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    seed: int = 0,
    threads: int | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["hash", "first"] = "hash",
    split_seed: int = 0,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    kind: str | None = None,
    group: str | None = None,
    time: str | None = None,
    strict: bool = False,
    long_texts: Literal["cut", "head-tail"] = "cut",
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> SolveResult:
    r"""Find the best model for labeled texts in the given minutes, and say how good it is.

    Several kinds of models are tried, from cheap to dear, as far as the time allows. Held-out rows select one
    of them, and test is scored once. `task` is a name or a path, or data in memory: texts with `labels`, a
    DataFrame, a `datasets.Dataset`, or a dict of splits. `unlabeled` are texts without labels in the same
    forms. The same call continues where it was stopped.

    Parameters
    ----------
    task
        A file, a folder of splits or classes, a named task, or a Hub data set.
    unlabeled
        A file of texts without labels: the answer lists those that are the most useful to label next. Rows of
        the task's own file that have no label are listed in any case.
    labels
        The labels of texts in memory, one per text.
    minutes
        Time for everything, from the first measurement to the report.
    metric
        Metric to select by (heedful list metrics). By default that of the task: accuracy.
    prefer
        What decides among the candidates: accuracy takes the best score; speed and small take the fastest or
        the smallest model that is not shown to be worse by more than 0.02. By default the fastest model that
        is not shown to be worse at all, and at most one standard error and 0.02 below the best.
    model
        The pretrained encoder: a folder in Hub form, minilm, or a Hub id.
    candidates
        Try only these candidates. By default all that suit the data and fit in the time.
    out
        Folder of the result. By default runs/solve-NAME. The same command continues there.
    overwrite
        Replace the result in out.
    seed
        Seed of everything random except the split.
    threads
        CPU threads. By default the available cores.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    split
        How to split rows if the files are not split: by a hash of their content, or in order.
    split_seed
        Seed of the split.
    text_column
        Name of the column with the text.
    pair_column
        Name of the column with the second text of a pair.
    label_column
        Name of the column with the label; several columns of 0 and 1 have commas between their names.
    kind
        Kind of problem: label (one per text), labels (any number of them), number, or ordered (classes with
        an order, such as stars). By default it is found from the data; only ordered must be named.
    group
        Name of a column, such as the author: rows with the same value are on the same side of the split and
        in the same fold. Files that are split already stay as they are, with a warning if they share groups.
    time
        Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest
        train; folds train on earlier rows than they hold out. Rows of the same time stay together.
    strict
        Refuse files with bad rows, such as one with an empty text, instead of skipping them.
    long_texts
        What the encoder reads of texts that are too long for it: their beginning (cut), or a quarter from the
        beginning and the rest from the end (head-tail). The answer says whether that would help.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> solved = heedful.solve("reviews.csv", minutes=10)
    >>> solved.answer.summary
    >>> solved.predict(["What a lovely place."])
    >>> solved.best.results.splits["test"].value

    """

def adapt(
    model: str | os.PathLike[str],
    task: Any,
    labels: Any = None,
    *,
    lr: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    token_budget: int | None = None,
    accumulate: int = 1,
    optimizer: str = "adamw",
    schedule: str = "linear",
    warmup: float | None = None,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    eval_every: int | None = None,
    patience: int | None = None,
    metric: str | None = None,
    select: Literal["best", "last"] = "best",
    train_eval_rows: int = 2000,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    threads: int | None = None,
    processes: int | None = None,
    tensorboard: bool = False,
    track: Sequence[str] = (),
    note: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    method: str = "full",
    kind: str | None = None,
    objective: str = "auto",
    answer_loss: Literal["answer", "all"] = "answer",
    head: Literal["auto", "linear", "family"] = "auto",
    head_start: Literal["auto", "fitted", "random"] = "auto",
    pool: Literal["first", "mean", "apart", "family"] | None = None,
    max_len: int | None = None,
    long_texts: Literal["cut", "head-tail"] = "cut",
    train_rows: int | None = None,
    balanced: bool = False,
    fold: str | None = None,
    with_dev: bool = False,
    dev_rows: int | None = None,
    label_smoothing: float = 0.0,
    class_weights: Literal["auto", "none", "balanced"] = "auto",
    expect_shares: str | None = None,
    threshold: float | None = None,
    dropout: float | None = None,
    attention: str | None = None,
    tokenizer: str | None = None,
    model_options: Sequence[str] | Mapping[str, Any] = (),
    method_options: Sequence[str] | Mapping[str, Any] = (),
    label_words: Sequence[str] = (),
    unlabeled: str | os.PathLike[str] | None = None,
    mlm_weight: float = 0.3,
    mlm_first: int = 0,
    mlm_rate: float = 0.15,
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    split_seed: int = 0,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    strict: bool = False,
    cache_features: bool = True,
    score_dev: bool = True,
    score_test: bool = True,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    nodes: int | None = None,
) -> RunResult:
    r"""Adapt a model to a task, and return the run with its scores, checks and best model.

    The options are those of `heedful adapt`, with the same defaults. Dev selects the best evaluation; test
    is scored once, at the end. `task` is a name or a path, or data in memory: texts with `labels`, a
    DataFrame, a `datasets.Dataset`, or a dict of splits.

    Parameters
    ----------
    model
        A folder in Hub form, minilm, tfidf (words without a network), majority (the most frequent label), a
        preset (heedful list models), or a Hub id.
    task
        boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb).
    labels
        The labels of texts in memory, one per text.
    lr
        Learning rate. The default depends on the method and the model.
    epochs
        Number of passes over the training data. By default 3, and more for few rows or many labels.
    steps
        Number of optimizer steps, instead of epochs.
    batch_size
        Number of examples per step. By default chosen for the task.
    token_budget
        Number of tokens per step, padding included, instead of batch_size.
    accumulate
        Compute each batch in this many parts: less memory, the same result.
    optimizer
        adamw, sgd, rmsprop or muon (heedful list optimizers).
    schedule
        Learning-rate schedule: constant, linear, cosine or wsd (warm-up, stable, decay).
    warmup
        Warm-up: a share of all steps if below 1, otherwise a number of steps. By default 0.1.
    weight_decay
        Weight decay of matrices; biases, norms and embeddings have none.
    clip
        Largest norm of the gradient; 0 turns clipping off.
    eval_every
        Score dev every this many steps, instead of every epoch.
    patience
        Stop after this many evaluations without a better dev score.
    metric
        Metric that selects the best evaluation on dev (heedful list metrics). By default that of the task.
    select
        Keep the model with the best dev score, or the last one.
    train_eval_rows
        Largest number of training rows to score at each evaluation; 0 for none. More than 500 are scored only
        if that takes less than a quarter of the time.
    seed
        Seed of everything random.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        Number format; auto measures which is faster on this machine.
    threads
        CPU threads per process. By default the available cores, divided among the processes.
    processes
        Number of processes that train together. By default one per GPU, or one.
    tensorboard
        Also write logs for TensorBoard; the same as track tensorboard.
    track
        Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds.
    note
        A remark for results.json and the title of every figure.
    out
        Folder of the run. By default a new folder in runs/, named after the data and the model.
    resume
        Continue the run in out.
    overwrite
        Replace the run in out.
    method
        full, head, top-layers, prompt, prefix, lora, bitfit or contrastive (heedful list methods).
    kind
        Kind of problem: label (one per text), labels (any number of them), number, ordered (classes with an
        order, such as stars) or text (a free answer); see heedful list problems. By default it is found from
        the data, and printed; only ordered must be named.
    objective
        classify; text2text (T5 writes a label word); joint (also masked language modeling on more text);
        answer (free text after a question). auto chooses answer for tasks with answers, otherwise classify.
    answer_loss
        With objective answer: compute the loss on the answer only, or on the question too.
    head
        Form of the classification head. auto: linear for the methods head, prompt and contrastive, otherwise
        the model family's own.
    head_start
        How a new linear head starts: fitted to the pretrained model's states by logistic regression, or with
        random weights. auto: fitted for a pretrained model.
    pool
        What an encoder passes to its head: the first token's state, the mean over all tokens or, for pairs, a
        comparison of the means of both texts (apart); family is what the model's family does. By default what
        the model's folder declares (the mean for sentence encoders such as minilm), otherwise the family's.
    max_len
        Largest number of tokens per text; longer texts are truncated, and the run counts them. By default
        enough for 95 % of the texts, and at most 256.
    long_texts
        What is read of longer texts, at the same cost: their beginning (cut), or a quarter of max_len from
        the beginning and the rest from the end (head-tail).
    train_rows
        Train on this many labeled rows, with the shares of the labels in all rows; seed chooses the rows.
    balanced
        With train_rows: choose equally many rows of each label.
    fold
        K/N, such as 2/5: hold out the second of five parts of train as dev, for cross-validation; the task's
        own dev rows are left out. seed chooses the parts. With time, the first part is the latest one, and
        only rows that are earlier than the part are trained on.
    with_dev
        Train on the rows of dev too, for a model whose settings are chosen. There is no dev then: the last
        model is kept, and test alone is scored.
    dev_rows
        Score this many rows of dev, with the same shares of the labels; split_seed chooses the rows.
    label_smoothing
        Share of the target probability that is given to the other labels.
    class_weights
        balanced gives all labels the same total weight in the loss. auto: balanced if the labels of train are
        imbalanced and those of dev are not.
    expect_shares
        The shares of the labels where the model will be used, if they are not those it is trained on: equal,
        train (also after balanced or class weights), or a number per label in their order, such as 0.2,0.8.
        The model's probabilities are corrected for them.
    threshold
        Of two labels, the probability from which the second one is predicted. By default it is tuned on dev
        for a metric such as macro_f1 or f1:LABEL, and 0.5 for accuracy.
    dropout
        Dropout of the model's body, instead of the checkpoint's.
    attention
        Replace the attention mechanism: performer, bigbird:block=32, ... (heedful list attentions).
    tokenizer
        Folder of a tokenizer, or the name of a model. For a preset also a kind to train on the task's text:
        char, word, bpe, ... By default the model's own.
    model_options
        Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary.
    method_options
        Options of the method: rank=8 alpha=16 targets=q,v for lora; solver=convex for head, a logistic
        regression instead of steps; layers=2 for top-layers; length=20 for prompt, which by default has as
        many vectors as the median text has tokens, at most 128.
    label_words
        With objective text2text: words for the labels, such as 0=negative 1=positive. By default their names.
    unlabeled
        With objective joint: a file of text without labels, one text per line. By default the training texts.
    mlm_weight
        With objective joint: weight of the masked language modeling loss.
    mlm_first
        With objective joint: number of steps of masked language modeling alone at the start.
    mlm_rate
        With objective joint: share of tokens to mask.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    split
        How to split rows if the files are not split: by a hash of their content, in order (first), or not at
        all: without a dev split the last model is kept.
    split_seed
        Seed of the split; seed does not change the split.
    text_column
        Name of the column with the text.
    pair_column
        Name of the column with the second text of a pair.
    label_column
        Name of the column with the label; several columns of 0 and 1, one per label, have commas between
        their names.
    group
        Name of a column, such as the author: rows with the same value are on the same side of the split and
        in the same fold. Files that are split already stay as they are, with a warning if they share groups.
    time
        Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest
        train; folds train on earlier rows than they hold out. Rows of the same time stay together.
    strict
        Refuse files with bad rows, such as one with an empty text, instead of skipping them.
    cache_features
        With method head and top-layers: run what is frozen, the body or its lower layers, once, without
        dropout, and reuse its states.
    score_dev
        Score dev at each evaluation. Otherwise the last model is kept.
    score_test
        Score test with the selected model at the end.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    nodes
        Number of nodes. On several, srun starts processes, or one per GPU (gpus are per node).

    Examples
    --------
    >>> run = heedful.adapt("minilm", "reviews.csv", method="lora", method_options={"rank": 4}, epochs=3)
    >>> run.results.splits["test"].value
    >>> run.predict(["What a lovely place."])
    >>> heedful.adapt("minilm", texts, labels, method="head")

    """

def pretrain(
    model: str | os.PathLike[str],
    corpus: Any,
    *,
    lr: float | None = None,
    epochs: int = 3,
    steps: int | None = None,
    batch_size: int = 32,
    token_budget: int | None = None,
    accumulate: int = 1,
    optimizer: str = "adamw",
    schedule: str = "linear",
    warmup: float = 0.06,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    eval_every: int | None = None,
    patience: int | None = None,
    metric: str | None = None,
    select: Literal["best", "last"] = "best",
    train_eval_rows: int = 200,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    threads: int | None = None,
    processes: int | None = None,
    tensorboard: bool = False,
    track: Sequence[str] = (),
    note: str | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    objective: str = "causal",
    attention: str | None = None,
    projections: Literal["separate", "shared_qk", "shared_qkv"] | None = None,
    model_options: Sequence[str] | Mapping[str, Any] = (),
    dropout: float | None = None,
    tokenizer: str | None = None,
    vocab_size: int | None = None,
    min_count: int | None = None,
    documents: Literal["line", "paragraph", "file"] = "line",
    block: int | None = None,
    pack: bool = True,
    dev: str | None = None,
    dev_share: float = 0.05,
    test: str | None = None,
    mask_rate: float = 0.15,
    whole_words: bool = False,
    span_form: Literal["line", "window"] = "line",
    span_loss: Literal["all", "span"] = "all",
    salient: Literal["all", "names"] | None = None,
    window_left: int = 5,
    window_right: int = 3,
    questions: str | None = None,
    questions_share: float = 0.25,
    sentences: Sequence[str] = (),
    minutes: float | None = None,
    budget_min: float | None = None,
    branch: str | os.PathLike[str] | None = None,
    data_dir: str | os.PathLike[str] | None = None,
    score_test: bool = True,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    nodes: int | None = None,
) -> RunResult:
    r"""Train a language model on text, and return the run with its figures, checks and best model.

    The options are those of `heedful pretrain`, with the same defaults. `corpus` is a name or a path, or
    texts in memory.

    Parameters
    ----------
    model
        A preset (heedful list models) to train from scratch, or a folder, a run or a Hub id to continue.
    corpus
        A text file, a folder, a table, the text of a task (birthplaces, ...), or world/...
    lr
        Learning rate. The default depends on the method and the model.
    epochs
        Number of passes over the training data.
    steps
        Number of optimizer steps, instead of epochs.
    batch_size
        Number of examples per step.
    token_budget
        Number of tokens per step, padding included, instead of batch_size.
    accumulate
        Compute each batch in this many parts: less memory, the same result.
    optimizer
        adamw, sgd, rmsprop or muon (heedful list optimizers).
    schedule
        Learning-rate schedule: constant, linear, cosine or wsd (warm-up, stable, decay).
    warmup
        Warm-up: a share of all steps if below 1, otherwise a number of steps.
    weight_decay
        Weight decay of matrices; biases, norms and embeddings have none.
    clip
        Largest norm of the gradient; 0 turns clipping off.
    eval_every
        Score dev every this many steps, instead of every epoch.
    patience
        Stop after this many evaluations without a better dev score.
    metric
        Metric that selects the best evaluation on dev (heedful list metrics). By default that of the task.
    select
        Keep the model with the best dev score, or the last one.
    train_eval_rows
        Largest number of training rows to score at each evaluation; 0 for none. More than 500 are scored only
        if that takes less than a quarter of the time.
    seed
        Seed of everything random.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        Number format; auto measures which is faster on this machine.
    threads
        CPU threads per process. By default the available cores, divided among the processes.
    processes
        Number of processes that train together. By default one per GPU, or one.
    tensorboard
        Also write logs for TensorBoard; the same as track tensorboard.
    track
        Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds.
    note
        A remark for results.json and the title of every figure.
    out
        Folder of the run. By default a new folder in runs/, named after the data and the model.
    resume
        Continue the run in out.
    overwrite
        Replace the run in out.
    objective
        causal (the next token, for decoders), masked (masked tokens, for encoders), span (masked spans, for
        decoders and T5).
    attention
        The attention mechanism: performer, bigbird:block=32, ... (heedful list attentions).
    projections
        Whether queries, keys and values share a projection. By default the model's own choice.
    model_options
        Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary.
    dropout
        Dropout of the model's body, instead of the model's own.
    tokenizer
        Folder of a tokenizer, or a kind to train on the corpus: char, word, bpe, wordpiece, unigram. The
        default depends on the model.
    vocab_size
        Vocabulary size of a new tokenizer. By default 8000; unlimited for word and char.
    min_count
        How often a word, character or pair must occur to be in a new vocabulary. By default 2; 1 for char.
    documents
        What a document of a text file is: a line, a paragraph (up to an empty line), or the whole file.
    block
        Number of tokens per row. By default 256, or the model's limit.
    pack
        Put several documents, which do not see each other, into each row of block tokens. Otherwise, and
        always with span corruption, each row is one document, truncated at block.
    dev
        Text to score during training. By default the corpus's dev split, or a part of the corpus.
    dev_share
        Share of the documents to hold out if there is no dev split, chosen by a hash of their content; 0 for
        none.
    test
        Text to score once at the end. By default the corpus's test split, if it has one.
    mask_rate
        With objective masked: share of tokens to mask.
    whole_words
        With objective masked: mask all pieces of a word together.
    span_form
        With objective span: line (a text truncated at random, with one masked span, or several for T5), or
        window (the title and a few tokens around one masked name, date or number, so that each fact depends
        on the title).
    span_loss
        With span_form line: compute the loss on every token, or on the masked span only.
    salient
        With objective span: mask names, dates and numbers, recognized by their spelling, or only names,
        instead of random spans. span_form window always masks one of them.
    window_left
        With span_form window: largest number of tokens before the span; each step draws a number.
    window_right
        With span_form window: largest number of tokens after the span.
    questions
        A task with answers, such as birthplaces, whose training questions are mixed into each batch.
    questions_share
        Share of each batch that is questions.
    sentences
        Sentences, or a file with one per line, whose loss and perplexity to report.
    minutes
        Choose the size of a new model, the batch size, the steps and about 20 evaluations, so that the run
        takes this many minutes in all on this machine. A size, eval_every or a batch_size other than 32 that
        is given stays; epochs is not used.
    budget_min
        Fit the run into this many minutes: its speed is measured, and config.toml stores the number of steps.
    branch
        Continue from a shorter run with schedule wsd and the same options, with the same result as from the
        start.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    score_test
        Score test with the selected model at the end.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    nodes
        Number of nodes. On several, srun starts processes, or one per GPU (gpus are per node).

    Examples
    --------
    >>> run = heedful.pretrain("char-gpt", "notes.txt", tokenizer="char", model_options={"n_layers": 2})
    >>> run.results.splits["dev"].bits_per_character

    """

def search(
    model: str | os.PathLike[str],
    task: Any,
    labels: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    retry: bool = False,
    keep: Literal["best", "all", "none"] = "best",
    lr: str | float | Sequence[str] | Sequence[float] = "",
    epochs: str | float | Sequence[str] | Sequence[float] = "3",
    batch_size: str | float | Sequence[str] | Sequence[float] = "32",
    method: str | float | Sequence[str] | Sequence[float] = "full",
    random: int | None = None,
    tpe: int | None = None,
    prune: bool = False,
    accumulate: int = 1,
    optimizer: str = "adamw",
    schedule: str = "constant",
    warmup: float = 10.0,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    metric: str | None = None,
    train_eval_rows: int = 2000,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    track: Sequence[str] = (),
    note: str | None = None,
    kind: str | None = None,
    objective: str = "auto",
    answer_loss: Literal["answer", "all"] = "answer",
    head: Literal["auto", "linear", "family"] = "auto",
    head_start: Literal["auto", "fitted", "random"] = "auto",
    pool: Literal["first", "mean", "apart", "family"] | None = None,
    max_len: int | None = None,
    long_texts: Literal["cut", "head-tail"] = "cut",
    train_rows: int | None = None,
    balanced: bool = False,
    fold: str | None = None,
    with_dev: bool = False,
    dev_rows: int | None = None,
    label_smoothing: float = 0.0,
    class_weights: Literal["auto", "none", "balanced"] = "auto",
    expect_shares: str | None = None,
    threshold: float | None = None,
    dropout: float | None = None,
    attention: str | None = None,
    tokenizer: str | None = None,
    model_options: Sequence[str] | Mapping[str, Any] = (),
    method_options: Sequence[str] | Mapping[str, Any] = (),
    label_words: Sequence[str] = (),
    unlabeled: str | os.PathLike[str] | None = None,
    mlm_weight: float = 0.3,
    mlm_first: int = 0,
    mlm_rate: float = 0.15,
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    split_seed: int = 0,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    strict: bool = False,
    cache_features: bool = True,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> StudyResult:
    r"""Find the best settings on dev: a grid, or draws. The best is scored on test, once.

    Parameters
    ----------
    model
        A folder in Hub form, minilm, tfidf (words without a network), majority (the most frequent label), a
        preset (heedful list models), or a Hub id.
    task
        boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb).
    labels
        The labels of texts in memory, one per text.
    out
        Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study.
    jobs
        Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by
        one in this process.
    overwrite
        Replace the study in out.
    retry
        Try failed runs again.
    keep
        Which weights to keep when the study ends: those of the best run on dev, of all runs, or none.
    lr
        Learning rates, such as 1e-4,5e-4,1e-3, or a range to draw from, such as 2e-5:8e-5. The default
        depends on the method.
    epochs
        Numbers of epochs, such as 5,7,9. A configuration's score is that of its last epoch.
    batch_size
        Numbers of examples per step, such as 32,64.
    method
        Methods, such as full,head,lora.
    random
        Draw this many configurations at random instead of trying all.
    tpe
        Draw this many configurations, each guided by the results so far (tree-structured Parzen estimator).
    prune
        With random or tpe: stop early those runs that fall behind (Hyperband).
    accumulate
        Compute each batch in this many parts: less memory, the same result.
    optimizer
        adamw, sgd, rmsprop or muon (heedful list optimizers).
    schedule
        Learning-rate schedule: constant, linear, cosine or wsd. Only with constant can runs of different
        lengths share epochs.
    warmup
        Warm-up: a share of all steps if below 1, otherwise a number of steps.
    weight_decay
        Weight decay of matrices; biases, norms and embeddings have none.
    clip
        Largest norm of the gradient; 0 turns clipping off.
    metric
        Metric that selects the best evaluation on dev (heedful list metrics). By default that of the task.
    train_eval_rows
        Largest number of training rows to score at each evaluation; 0 for none. More than 500 are scored only
        if that takes less than a quarter of the time.
    seed
        Seed of everything random.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        Number format; auto measures which is faster on this machine.
    threads
        CPU threads per process. By default the available cores, divided among the processes.
    tensorboard
        Also write logs for TensorBoard; the same as track tensorboard.
    track
        Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds.
    note
        A remark for results.json and the title of every figure.
    kind
        Kind of problem: label (one per text), labels (any number of them), number, ordered (classes with an
        order, such as stars) or text (a free answer); see heedful list problems. By default it is found from
        the data, and printed; only ordered must be named.
    objective
        classify; text2text (T5 writes a label word); joint (also masked language modeling on more text);
        answer (free text after a question). auto chooses answer for tasks with answers, otherwise classify.
    answer_loss
        With objective answer: compute the loss on the answer only, or on the question too.
    head
        Form of the classification head. auto: linear for the methods head, prompt and contrastive, otherwise
        the model family's own.
    head_start
        How a new linear head starts: fitted to the pretrained model's states by logistic regression, or with
        random weights. auto: fitted for a pretrained model.
    pool
        What an encoder passes to its head: the first token's state, the mean over all tokens or, for pairs, a
        comparison of the means of both texts (apart); family is what the model's family does. By default what
        the model's folder declares (the mean for sentence encoders such as minilm), otherwise the family's.
    max_len
        Largest number of tokens per text; longer texts are truncated, and the run counts them. By default
        enough for 95 % of the texts, and at most 256.
    long_texts
        What is read of longer texts, at the same cost: their beginning (cut), or a quarter of max_len from
        the beginning and the rest from the end (head-tail).
    train_rows
        Train on this many labeled rows, with the shares of the labels in all rows; seed chooses the rows.
    balanced
        With train_rows: choose equally many rows of each label.
    fold
        K/N, such as 2/5: hold out the second of five parts of train as dev, for cross-validation; the task's
        own dev rows are left out. seed chooses the parts. With time, the first part is the latest one, and
        only rows that are earlier than the part are trained on.
    with_dev
        Train on the rows of dev too, for a model whose settings are chosen. There is no dev then: the last
        model is kept, and test alone is scored.
    dev_rows
        Score this many rows of dev, with the same shares of the labels; split_seed chooses the rows.
    label_smoothing
        Share of the target probability that is given to the other labels.
    class_weights
        balanced gives all labels the same total weight in the loss. auto: balanced if the labels of train are
        imbalanced and those of dev are not.
    expect_shares
        The shares of the labels where the model will be used, if they are not those it is trained on: equal,
        train (also after balanced or class weights), or a number per label in their order, such as 0.2,0.8.
        The model's probabilities are corrected for them.
    threshold
        Of two labels, the probability from which the second one is predicted. By default it is tuned on dev
        for a metric such as macro_f1 or f1:LABEL, and 0.5 for accuracy.
    dropout
        Dropout of the model's body, instead of the checkpoint's.
    attention
        Replace the attention mechanism: performer, bigbird:block=32, ... (heedful list attentions).
    tokenizer
        Folder of a tokenizer, or the name of a model. For a preset also a kind to train on the task's text:
        char, word, bpe, ... By default the model's own.
    model_options
        Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary.
    method_options
        Options of the method: rank=8 alpha=16 targets=q,v for lora; solver=convex for head, a logistic
        regression instead of steps; layers=2 for top-layers; length=20 for prompt, which by default has as
        many vectors as the median text has tokens, at most 128.
    label_words
        With objective text2text: words for the labels, such as 0=negative 1=positive. By default their names.
    unlabeled
        With objective joint: a file of text without labels, one text per line. By default the training texts.
    mlm_weight
        With objective joint: weight of the masked language modeling loss.
    mlm_first
        With objective joint: number of steps of masked language modeling alone at the start.
    mlm_rate
        With objective joint: share of tokens to mask.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    split
        How to split rows if the files are not split: by a hash of their content, in order (first), or not at
        all: without a dev split the last model is kept.
    split_seed
        Seed of the split; seed does not change the split.
    text_column
        Name of the column with the text.
    pair_column
        Name of the column with the second text of a pair.
    label_column
        Name of the column with the label; several columns of 0 and 1, one per label, have commas between
        their names.
    group
        Name of a column, such as the author: rows with the same value are on the same side of the split and
        in the same fold. Files that are split already stay as they are, with a warning if they share groups.
    time
        Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest
        train; folds train on earlier rows than they hold out. Rows of the same time stay together.
    strict
        Refuse files with bad rows, such as one with an empty text, instead of skipping them.
    cache_features
        With method head and top-layers: run what is frozen, the body or its lower layers, once, without
        dropout, and reuse its states.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> study = heedful.search("minilm", "reviews.csv", method="head", lr=[1e-3, 1e-2], epochs=[5, 10])
    >>> study.table().to_pandas()
    >>> study.best.predict(["What a lovely place."])

    """

def compare(
    task: Any,
    labels: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    retry: bool = False,
    keep: Literal["best", "all", "none"] = "best",
    seeds: int = 3,
    models: str | float | Sequence[str] | Sequence[float] = "",
    methods: str | float | Sequence[str] | Sequence[float] = "full,head",
    search: bool = False,
    rates: str | float | Sequence[str] | Sequence[float] = "",
    epochs: str | float | Sequence[str] | Sequence[float] = "3",
    lr: float | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    token_budget: int | None = None,
    accumulate: int = 1,
    optimizer: str = "adamw",
    schedule: str = "linear",
    warmup: float | None = None,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    eval_every: int | None = None,
    patience: int | None = None,
    metric: str | None = None,
    select: Literal["best", "last"] = "best",
    train_eval_rows: int = 2000,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    track: Sequence[str] = (),
    note: str | None = None,
    kind: str | None = None,
    objective: str = "auto",
    answer_loss: Literal["answer", "all"] = "answer",
    head: Literal["auto", "linear", "family"] = "auto",
    head_start: Literal["auto", "fitted", "random"] = "auto",
    pool: Literal["first", "mean", "apart", "family"] | None = None,
    max_len: int | None = None,
    long_texts: Literal["cut", "head-tail"] = "cut",
    train_rows: int | None = None,
    balanced: bool = False,
    fold: str | None = None,
    with_dev: bool = False,
    dev_rows: int | None = None,
    label_smoothing: float = 0.0,
    class_weights: Literal["auto", "none", "balanced"] = "auto",
    expect_shares: str | None = None,
    threshold: float | None = None,
    dropout: float | None = None,
    attention: str | None = None,
    tokenizer: str | None = None,
    model_options: Sequence[str] | Mapping[str, Any] = (),
    method_options: Sequence[str] | Mapping[str, Any] = (),
    label_words: Sequence[str] = (),
    unlabeled: str | os.PathLike[str] | None = None,
    mlm_weight: float = 0.3,
    mlm_first: int = 0,
    mlm_rate: float = 0.15,
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    split_seed: int = 0,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    strict: bool = False,
    cache_features: bool = True,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> StudyResult:
    r"""Find out which model and which method are best on a task, and which cannot be told apart.

    Arms are compared on the same examples, with tests that are corrected for their number.

    Parameters
    ----------
    task
        boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb).
    labels
        The labels of texts in memory, one per text.
    out
        Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study.
    jobs
        Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by
        one in this process.
    overwrite
        Replace the study in out.
    retry
        Try failed runs again.
    keep
        Which weights to keep when the study ends: those of the best run on dev, of all runs, or none.
    seeds
        Number of runs per arm, each with another seed.
    models
        Models, such as minilm,bert-tiny: folders, presets or Hub ids.
    methods
        Methods, such as full,head,prompt,lora.
    search
        Choose the learning rate of each arm on dev, from rates, instead of its method's usual rate.
    rates
        With search: learning rates to try, such as 1e-4,1e-3. By default three around the usual rate of the
        method.
    epochs
        Number of passes over the training data; with search several to choose from, such as 5,7,9.
    lr
        One learning rate for all arms. The default depends on the method.
    steps
        Number of optimizer steps, instead of epochs.
    batch_size
        Number of examples per step. By default chosen for the task.
    token_budget
        Number of tokens per step, padding included, instead of batch_size.
    accumulate
        Compute each batch in this many parts: less memory, the same result.
    optimizer
        adamw, sgd, rmsprop or muon (heedful list optimizers).
    schedule
        Learning-rate schedule: constant, linear, cosine or wsd (warm-up, stable, decay).
    warmup
        Warm-up: a share of all steps if below 1, otherwise a number of steps. By default 0.1.
    weight_decay
        Weight decay of matrices; biases, norms and embeddings have none.
    clip
        Largest norm of the gradient; 0 turns clipping off.
    eval_every
        Score dev every this many steps, instead of every epoch.
    patience
        Stop after this many evaluations without a better dev score.
    metric
        Metric that selects the best evaluation on dev (heedful list metrics). By default that of the task.
    select
        Keep the model with the best dev score, or the last one.
    train_eval_rows
        Largest number of training rows to score at each evaluation; 0 for none. More than 500 are scored only
        if that takes less than a quarter of the time.
    seed
        Seed of everything random.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        Number format; auto measures which is faster on this machine.
    threads
        CPU threads per process. By default the available cores, divided among the processes.
    tensorboard
        Also write logs for TensorBoard; the same as track tensorboard.
    track
        Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds.
    note
        A remark for results.json and the title of every figure.
    kind
        Kind of problem: label (one per text), labels (any number of them), number, ordered (classes with an
        order, such as stars) or text (a free answer); see heedful list problems. By default it is found from
        the data, and printed; only ordered must be named.
    objective
        classify; text2text (T5 writes a label word); joint (also masked language modeling on more text);
        answer (free text after a question). auto chooses answer for tasks with answers, otherwise classify.
    answer_loss
        With objective answer: compute the loss on the answer only, or on the question too.
    head
        Form of the classification head. auto: linear for the methods head, prompt and contrastive, otherwise
        the model family's own.
    head_start
        How a new linear head starts: fitted to the pretrained model's states by logistic regression, or with
        random weights. auto: fitted for a pretrained model.
    pool
        What an encoder passes to its head: the first token's state, the mean over all tokens or, for pairs, a
        comparison of the means of both texts (apart); family is what the model's family does. By default what
        the model's folder declares (the mean for sentence encoders such as minilm), otherwise the family's.
    max_len
        Largest number of tokens per text; longer texts are truncated, and the run counts them. By default
        enough for 95 % of the texts, and at most 256.
    long_texts
        What is read of longer texts, at the same cost: their beginning (cut), or a quarter of max_len from
        the beginning and the rest from the end (head-tail).
    train_rows
        Train on this many labeled rows, with the shares of the labels in all rows; seed chooses the rows.
    balanced
        With train_rows: choose equally many rows of each label.
    fold
        K/N, such as 2/5: hold out the second of five parts of train as dev, for cross-validation; the task's
        own dev rows are left out. seed chooses the parts. With time, the first part is the latest one, and
        only rows that are earlier than the part are trained on.
    with_dev
        Train on the rows of dev too, for a model whose settings are chosen. There is no dev then: the last
        model is kept, and test alone is scored.
    dev_rows
        Score this many rows of dev, with the same shares of the labels; split_seed chooses the rows.
    label_smoothing
        Share of the target probability that is given to the other labels.
    class_weights
        balanced gives all labels the same total weight in the loss. auto: balanced if the labels of train are
        imbalanced and those of dev are not.
    expect_shares
        The shares of the labels where the model will be used, if they are not those it is trained on: equal,
        train (also after balanced or class weights), or a number per label in their order, such as 0.2,0.8.
        The model's probabilities are corrected for them.
    threshold
        Of two labels, the probability from which the second one is predicted. By default it is tuned on dev
        for a metric such as macro_f1 or f1:LABEL, and 0.5 for accuracy.
    dropout
        Dropout of the model's body, instead of the checkpoint's.
    attention
        Replace the attention mechanism: performer, bigbird:block=32, ... (heedful list attentions).
    tokenizer
        Folder of a tokenizer, or the name of a model. For a preset also a kind to train on the task's text:
        char, word, bpe, ... By default the model's own.
    model_options
        Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary.
    method_options
        Options of the methods, each with the method's name: lora:rank=8 prompt:length=20.
    label_words
        With objective text2text: words for the labels, such as 0=negative 1=positive. By default their names.
    unlabeled
        With objective joint: a file of text without labels, one text per line. By default the training texts.
    mlm_weight
        With objective joint: weight of the masked language modeling loss.
    mlm_first
        With objective joint: number of steps of masked language modeling alone at the start.
    mlm_rate
        With objective joint: share of tokens to mask.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    split
        How to split rows if the files are not split: by a hash of their content, in order (first), or not at
        all: without a dev split the last model is kept.
    split_seed
        Seed of the split; seed does not change the split.
    text_column
        Name of the column with the text.
    pair_column
        Name of the column with the second text of a pair.
    label_column
        Name of the column with the label; several columns of 0 and 1, one per label, have commas between
        their names.
    group
        Name of a column, such as the author: rows with the same value are on the same side of the split and
        in the same fold. Files that are split already stay as they are, with a warning if they share groups.
    time
        Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest
        train; folds train on earlier rows than they hold out. Rows of the same time stay together.
    strict
        Refuse files with bad rows, such as one with an empty text, instead of skipping them.
    cache_features
        With method head and top-layers: run what is frozen, the body or its lower layers, once, without
        dropout, and reuse its states.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> study = heedful.compare("reviews.csv", models="minilm", methods=["full", "head", "lora"], seeds=3)
    >>> study.answer.summary

    """

def labels(
    model: str | os.PathLike[str],
    task: Any,
    labels: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    retry: bool = False,
    keep: Literal["best", "all", "none"] = "best",
    seeds: int = 5,
    sizes: str | float | Sequence[str] | Sequence[float] = "50,200,1000,all",
    arms: str | float | Sequence[str] | Sequence[float] = "classify,joint",
    rates: str | float | Sequence[str] | Sequence[float] = "",
    mlm_weights: str | float | Sequence[str] | Sequence[float] = "0.1,0.3,1",
    least_steps: int = 200,
    epochs: int = 3,
    batch_size: int | None = None,
    accumulate: int = 1,
    optimizer: str = "adamw",
    schedule: str = "linear",
    warmup: float | None = None,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    eval_every: int | None = None,
    patience: int | None = None,
    metric: str | None = None,
    select: Literal["best", "last"] = "best",
    train_eval_rows: int = 2000,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    track: Sequence[str] = (),
    note: str | None = None,
    method: str = "full",
    kind: str | None = None,
    answer_loss: Literal["answer", "all"] = "answer",
    head: Literal["auto", "linear", "family"] = "auto",
    head_start: Literal["auto", "fitted", "random"] = "auto",
    pool: Literal["first", "mean", "apart", "family"] | None = None,
    max_len: int | None = None,
    long_texts: Literal["cut", "head-tail"] = "cut",
    balanced: bool = False,
    fold: str | None = None,
    with_dev: bool = False,
    dev_rows: int | None = None,
    label_smoothing: float = 0.0,
    class_weights: Literal["auto", "none", "balanced"] = "auto",
    expect_shares: str | None = None,
    threshold: float | None = None,
    dropout: float | None = None,
    attention: str | None = None,
    tokenizer: str | None = None,
    model_options: Sequence[str] | Mapping[str, Any] = (),
    method_options: Sequence[str] | Mapping[str, Any] = (),
    label_words: Sequence[str] = (),
    unlabeled: str | os.PathLike[str] | None = None,
    mlm_first: int = 0,
    mlm_rate: float = 0.15,
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    split_seed: int = 0,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    strict: bool = False,
    cache_features: bool = True,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> StudyResult:
    r"""Find out how many labels are enough, and whether text without labels helps.

    Parameters
    ----------
    model
        A folder in Hub form, minilm, tfidf (words without a network), majority (the most frequent label), a
        preset (heedful list models), or a Hub id.
    task
        boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb).
    labels
        The labels of texts in memory, one per text.
    out
        Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study.
    jobs
        Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by
        one in this process.
    overwrite
        Replace the study in out.
    retry
        Try failed runs again.
    keep
        Which weights to keep when the study ends: those of the best run on dev, of all runs, or none.
    seeds
        Number of draws of the labels per size and arm.
    sizes
        Numbers of labels, such as 50,200,all. Each seed draws its own; larger draws contain smaller ones.
    arms
        Objectives: classify, and joint (also masked language modeling on unlabeled text).
    rates
        Learning rates to choose from. By default three around the usual rate of the method.
    mlm_weights
        With joint: weights of the masked language modeling loss to choose from.
    least_steps
        Smallest number of steps, however few the labels.
    epochs
        Number of passes over the labels, or more if least_steps requires it. Dev selects the best.
    batch_size
        Number of examples per step. By default chosen for the task.
    accumulate
        Compute each batch in this many parts: less memory, the same result.
    optimizer
        adamw, sgd, rmsprop or muon (heedful list optimizers).
    schedule
        Learning-rate schedule: constant, linear, cosine or wsd (warm-up, stable, decay).
    warmup
        Warm-up: a share of all steps if below 1, otherwise a number of steps. By default 0.1.
    weight_decay
        Weight decay of matrices; biases, norms and embeddings have none.
    clip
        Largest norm of the gradient; 0 turns clipping off.
    eval_every
        Score dev every this many steps, instead of every epoch.
    patience
        Stop after this many evaluations without a better dev score.
    metric
        Metric that selects the best evaluation on dev (heedful list metrics). By default that of the task.
    select
        Keep the model with the best dev score, or the last one.
    train_eval_rows
        Largest number of training rows to score at each evaluation; 0 for none. More than 500 are scored only
        if that takes less than a quarter of the time.
    seed
        Seed of everything random.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        Number format; auto measures which is faster on this machine.
    threads
        CPU threads per process. By default the available cores, divided among the processes.
    tensorboard
        Also write logs for TensorBoard; the same as track tensorboard.
    track
        Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds.
    note
        A remark for results.json and the title of every figure.
    method
        full, head, top-layers, prompt, prefix, lora, bitfit or contrastive (heedful list methods).
    kind
        Kind of problem: label (one per text), labels (any number of them), number, ordered (classes with an
        order, such as stars) or text (a free answer); see heedful list problems. By default it is found from
        the data, and printed; only ordered must be named.
    answer_loss
        With objective answer: compute the loss on the answer only, or on the question too.
    head
        Form of the classification head. auto: linear for the methods head, prompt and contrastive, otherwise
        the model family's own.
    head_start
        How a new linear head starts: fitted to the pretrained model's states by logistic regression, or with
        random weights. auto: fitted for a pretrained model.
    pool
        What an encoder passes to its head: the first token's state, the mean over all tokens or, for pairs, a
        comparison of the means of both texts (apart); family is what the model's family does. By default what
        the model's folder declares (the mean for sentence encoders such as minilm), otherwise the family's.
    max_len
        Largest number of tokens per text; longer texts are truncated, and the run counts them. By default
        enough for 95 % of the texts, and at most 256.
    long_texts
        What is read of longer texts, at the same cost: their beginning (cut), or a quarter of max_len from
        the beginning and the rest from the end (head-tail).
    balanced
        With train_rows: choose equally many rows of each label.
    fold
        K/N, such as 2/5: hold out the second of five parts of train as dev, for cross-validation; the task's
        own dev rows are left out. seed chooses the parts. With time, the first part is the latest one, and
        only rows that are earlier than the part are trained on.
    with_dev
        Train on the rows of dev too, for a model whose settings are chosen. There is no dev then: the last
        model is kept, and test alone is scored.
    dev_rows
        Score this many rows of dev, with the same shares of the labels; split_seed chooses the rows.
    label_smoothing
        Share of the target probability that is given to the other labels.
    class_weights
        balanced gives all labels the same total weight in the loss. auto: balanced if the labels of train are
        imbalanced and those of dev are not.
    expect_shares
        The shares of the labels where the model will be used, if they are not those it is trained on: equal,
        train (also after balanced or class weights), or a number per label in their order, such as 0.2,0.8.
        The model's probabilities are corrected for them.
    threshold
        Of two labels, the probability from which the second one is predicted. By default it is tuned on dev
        for a metric such as macro_f1 or f1:LABEL, and 0.5 for accuracy.
    dropout
        Dropout of the model's body, instead of the checkpoint's.
    attention
        Replace the attention mechanism: performer, bigbird:block=32, ... (heedful list attentions).
    tokenizer
        Folder of a tokenizer, or the name of a model. For a preset also a kind to train on the task's text:
        char, word, bpe, ... By default the model's own.
    model_options
        Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary.
    method_options
        Options of the method: rank=8 alpha=16 targets=q,v for lora; solver=convex for head, a logistic
        regression instead of steps; layers=2 for top-layers; length=20 for prompt, which by default has as
        many vectors as the median text has tokens, at most 128.
    label_words
        With objective text2text: words for the labels, such as 0=negative 1=positive. By default their names.
    unlabeled
        With objective joint: a file of text without labels, one text per line. By default the training texts.
    mlm_first
        With objective joint: number of steps of masked language modeling alone at the start.
    mlm_rate
        With objective joint: share of tokens to mask.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    split
        How to split rows if the files are not split: by a hash of their content, in order (first), or not at
        all: without a dev split the last model is kept.
    split_seed
        Seed of the split; seed does not change the split.
    text_column
        Name of the column with the text.
    pair_column
        Name of the column with the second text of a pair.
    label_column
        Name of the column with the label; several columns of 0 and 1, one per label, have commas between
        their names.
    group
        Name of a column, such as the author: rows with the same value are on the same side of the split and
        in the same fold. Files that are split already stay as they are, with a warning if they share groups.
    time
        Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest
        train; folds train on earlier rows than they hold out. Rows of the same time stay together.
    strict
        Refuse files with bad rows, such as one with an empty text, instead of skipping them.
    cache_features
        With method head and top-layers: run what is frozen, the body or its lower layers, once, without
        dropout, and reuse its states.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> study = heedful.labels("minilm", "reviews.csv", sizes=[50, 200, "all"])
    >>> study.figure(study.figures[0])

    """

def optimizers(
    model: str | os.PathLike[str],
    task: Any,
    labels: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    retry: bool = False,
    keep: Literal["best", "all", "none"] = "best",
    seeds: int = 1,
    optimizers: str | float | Sequence[str] | Sequence[float] = "adamw,sgd,rmsprop,muon",
    rates: str | float | Sequence[str] | Sequence[float] = "",
    same_settings: bool = False,
    lr: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    token_budget: int | None = None,
    accumulate: int = 1,
    schedule: str = "linear",
    warmup: float | None = None,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    eval_every: int | None = None,
    patience: int | None = None,
    metric: str | None = None,
    select: Literal["best", "last"] = "best",
    train_eval_rows: int = 2000,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    track: Sequence[str] = (),
    note: str | None = None,
    method: str = "full",
    kind: str | None = None,
    objective: str = "auto",
    answer_loss: Literal["answer", "all"] = "answer",
    head: Literal["auto", "linear", "family"] = "auto",
    head_start: Literal["auto", "fitted", "random"] = "auto",
    pool: Literal["first", "mean", "apart", "family"] | None = None,
    max_len: int | None = None,
    long_texts: Literal["cut", "head-tail"] = "cut",
    train_rows: int | None = None,
    balanced: bool = False,
    fold: str | None = None,
    with_dev: bool = False,
    dev_rows: int | None = None,
    label_smoothing: float = 0.0,
    class_weights: Literal["auto", "none", "balanced"] = "auto",
    expect_shares: str | None = None,
    threshold: float | None = None,
    dropout: float | None = None,
    attention: str | None = None,
    tokenizer: str | None = None,
    model_options: Sequence[str] | Mapping[str, Any] = (),
    method_options: Sequence[str] | Mapping[str, Any] = (),
    label_words: Sequence[str] = (),
    unlabeled: str | os.PathLike[str] | None = None,
    mlm_weight: float = 0.3,
    mlm_first: int = 0,
    mlm_rate: float = 0.15,
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    split_seed: int = 0,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    strict: bool = False,
    cache_features: bool = True,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> StudyResult:
    r"""Compare optimizers; each gets its own learning-rate search on dev.

    Parameters
    ----------
    model
        A folder in Hub form, minilm, tfidf (words without a network), majority (the most frequent label), a
        preset (heedful list models), or a Hub id.
    task
        boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb).
    labels
        The labels of texts in memory, one per text.
    out
        Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study.
    jobs
        Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by
        one in this process.
    overwrite
        Replace the study in out.
    retry
        Try failed runs again.
    keep
        Which weights to keep when the study ends: those of the best run on dev, of all runs, or none.
    seeds
        Number of runs per optimizer at its best rate, each with another seed.
    optimizers
        Optimizers, such as adamw,sgd.
    rates
        Learning rates to try with each optimizer, such as 1e-4,1e-3. By default three around its usual rate,
        and more while the best is the lowest or the highest.
    same_settings
        Use one rate, lr, for all. Many papers do it, but it does not compare optimizers.
    lr
        With same_settings: the learning rate of all optimizers. The default depends on the method.
    epochs
        Number of passes over the training data. By default 3, and more for few rows or many labels.
    steps
        Number of optimizer steps, instead of epochs.
    batch_size
        Number of examples per step. By default chosen for the task.
    token_budget
        Number of tokens per step, padding included, instead of batch_size.
    accumulate
        Compute each batch in this many parts: less memory, the same result.
    schedule
        Learning-rate schedule: constant, linear, cosine or wsd (warm-up, stable, decay).
    warmup
        Warm-up: a share of all steps if below 1, otherwise a number of steps. By default 0.1.
    weight_decay
        Weight decay of matrices; biases, norms and embeddings have none.
    clip
        Largest norm of the gradient; 0 turns clipping off.
    eval_every
        Score dev every this many steps, instead of every epoch.
    patience
        Stop after this many evaluations without a better dev score.
    metric
        Metric that selects the best evaluation on dev (heedful list metrics). By default that of the task.
    select
        Keep the model with the best dev score, or the last one.
    train_eval_rows
        Largest number of training rows to score at each evaluation; 0 for none. More than 500 are scored only
        if that takes less than a quarter of the time.
    seed
        Seed of everything random.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        Number format; auto measures which is faster on this machine.
    threads
        CPU threads per process. By default the available cores, divided among the processes.
    tensorboard
        Also write logs for TensorBoard; the same as track tensorboard.
    track
        Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds.
    note
        A remark for results.json and the title of every figure.
    method
        full, head, top-layers, prompt, prefix, lora, bitfit or contrastive (heedful list methods).
    kind
        Kind of problem: label (one per text), labels (any number of them), number, ordered (classes with an
        order, such as stars) or text (a free answer); see heedful list problems. By default it is found from
        the data, and printed; only ordered must be named.
    objective
        classify; text2text (T5 writes a label word); joint (also masked language modeling on more text);
        answer (free text after a question). auto chooses answer for tasks with answers, otherwise classify.
    answer_loss
        With objective answer: compute the loss on the answer only, or on the question too.
    head
        Form of the classification head. auto: linear for the methods head, prompt and contrastive, otherwise
        the model family's own.
    head_start
        How a new linear head starts: fitted to the pretrained model's states by logistic regression, or with
        random weights. auto: fitted for a pretrained model.
    pool
        What an encoder passes to its head: the first token's state, the mean over all tokens or, for pairs, a
        comparison of the means of both texts (apart); family is what the model's family does. By default what
        the model's folder declares (the mean for sentence encoders such as minilm), otherwise the family's.
    max_len
        Largest number of tokens per text; longer texts are truncated, and the run counts them. By default
        enough for 95 % of the texts, and at most 256.
    long_texts
        What is read of longer texts, at the same cost: their beginning (cut), or a quarter of max_len from
        the beginning and the rest from the end (head-tail).
    train_rows
        Train on this many labeled rows, with the shares of the labels in all rows; seed chooses the rows.
    balanced
        With train_rows: choose equally many rows of each label.
    fold
        K/N, such as 2/5: hold out the second of five parts of train as dev, for cross-validation; the task's
        own dev rows are left out. seed chooses the parts. With time, the first part is the latest one, and
        only rows that are earlier than the part are trained on.
    with_dev
        Train on the rows of dev too, for a model whose settings are chosen. There is no dev then: the last
        model is kept, and test alone is scored.
    dev_rows
        Score this many rows of dev, with the same shares of the labels; split_seed chooses the rows.
    label_smoothing
        Share of the target probability that is given to the other labels.
    class_weights
        balanced gives all labels the same total weight in the loss. auto: balanced if the labels of train are
        imbalanced and those of dev are not.
    expect_shares
        The shares of the labels where the model will be used, if they are not those it is trained on: equal,
        train (also after balanced or class weights), or a number per label in their order, such as 0.2,0.8.
        The model's probabilities are corrected for them.
    threshold
        Of two labels, the probability from which the second one is predicted. By default it is tuned on dev
        for a metric such as macro_f1 or f1:LABEL, and 0.5 for accuracy.
    dropout
        Dropout of the model's body, instead of the checkpoint's.
    attention
        Replace the attention mechanism: performer, bigbird:block=32, ... (heedful list attentions).
    tokenizer
        Folder of a tokenizer, or the name of a model. For a preset also a kind to train on the task's text:
        char, word, bpe, ... By default the model's own.
    model_options
        Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary.
    method_options
        Options of the method: rank=8 alpha=16 targets=q,v for lora; solver=convex for head, a logistic
        regression instead of steps; layers=2 for top-layers; length=20 for prompt, which by default has as
        many vectors as the median text has tokens, at most 128.
    label_words
        With objective text2text: words for the labels, such as 0=negative 1=positive. By default their names.
    unlabeled
        With objective joint: a file of text without labels, one text per line. By default the training texts.
    mlm_weight
        With objective joint: weight of the masked language modeling loss.
    mlm_first
        With objective joint: number of steps of masked language modeling alone at the start.
    mlm_rate
        With objective joint: share of tokens to mask.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    split
        How to split rows if the files are not split: by a hash of their content, in order (first), or not at
        all: without a dev split the last model is kept.
    split_seed
        Seed of the split; seed does not change the split.
    text_column
        Name of the column with the text.
    pair_column
        Name of the column with the second text of a pair.
    label_column
        Name of the column with the label; several columns of 0 and 1, one per label, have commas between
        their names.
    group
        Name of a column, such as the author: rows with the same value are on the same side of the split and
        in the same fold. Files that are split already stay as they are, with a warning if they share groups.
    time
        Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest
        train; folds train on earlier rows than they hold out. Rows of the same time stay together.
    strict
        Refuse files with bad rows, such as one with an empty text, instead of skipping them.
    cache_features
        With method head and top-layers: run what is frozen, the body or its lower layers, once, without
        dropout, and reuse its states.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> heedful.optimizers("minilm", "reviews.csv", optimizers=["adamw", "muon"]).answer.summary

    """

def overfit(
    model: str | os.PathLike[str],
    task: Any,
    labels: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    retry: bool = False,
    keep: Literal["best", "all", "none"] = "all",
    examples: int = 10,
    lr: float | None = None,
    epochs: int = 20,
    batch_size: int = 2,
    token_budget: int | None = None,
    accumulate: int = 1,
    optimizer: str = "adamw",
    schedule: str = "linear",
    warmup: float | None = None,
    weight_decay: float = 0.01,
    clip: float = 1.0,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["auto", "float32", "bfloat16"] = "auto",
    threads: int | None = None,
    tensorboard: bool = False,
    track: Sequence[str] = (),
    note: str | None = None,
    method: str = "full",
    kind: str | None = None,
    objective: str = "auto",
    answer_loss: Literal["answer", "all"] = "answer",
    head: Literal["auto", "linear", "family"] = "auto",
    head_start: Literal["auto", "fitted", "random"] = "random",
    pool: Literal["first", "mean", "apart", "family"] | None = None,
    max_len: int | None = None,
    long_texts: Literal["cut", "head-tail"] = "cut",
    fold: str | None = None,
    with_dev: bool = False,
    label_smoothing: float = 0.0,
    class_weights: Literal["auto", "none", "balanced"] = "auto",
    expect_shares: str | None = None,
    threshold: float | None = None,
    dropout: float | None = None,
    attention: str | None = None,
    tokenizer: str | None = None,
    model_options: Sequence[str] | Mapping[str, Any] = (),
    method_options: Sequence[str] | Mapping[str, Any] = (),
    label_words: Sequence[str] = (),
    unlabeled: str | os.PathLike[str] | None = None,
    mlm_weight: float = 0.3,
    mlm_first: int = 0,
    mlm_rate: float = 0.15,
    data_dir: str | os.PathLike[str] | None = None,
    split: Literal["hash", "first", "none"] = "hash",
    split_seed: int = 0,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    group: str | None = None,
    time: str | None = None,
    strict: bool = False,
    cache_features: bool = True,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> StudyResult:
    r"""Find out whether a model can learn at all: train on a few examples until they are known by heart.

    A model that cannot learn ten examples has a mistake in its data, its tokenizer or its options.

    Parameters
    ----------
    model
        A folder in Hub form, minilm, tfidf (words without a network), majority (the most frequent label), a
        preset (heedful list models), or a Hub id.
    task
        boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb).
    labels
        The labels of texts in memory, one per text.
    out
        Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study.
    jobs
        Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by
        one in this process.
    overwrite
        Replace the study in out.
    retry
        Try failed runs again.
    keep
        Which weights to keep when the study ends: those of the best run on dev, of all runs, or none.
    examples
        Number of training examples to memorize, balanced between the labels.
    lr
        Learning rate. The default depends on the method and the model.
    epochs
        Number of passes over the examples.
    batch_size
        Number of examples per step. By default chosen for the task.
    token_budget
        Number of tokens per step, padding included, instead of batch_size.
    accumulate
        Compute each batch in this many parts: less memory, the same result.
    optimizer
        adamw, sgd, rmsprop or muon (heedful list optimizers).
    schedule
        Learning-rate schedule: constant, linear, cosine or wsd (warm-up, stable, decay).
    warmup
        Warm-up: a share of all steps if below 1, otherwise a number of steps. By default 0.1.
    weight_decay
        Weight decay of matrices; biases, norms and embeddings have none.
    clip
        Largest norm of the gradient; 0 turns clipping off.
    seed
        Seed of everything random.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        Number format; auto measures which is faster on this machine.
    threads
        CPU threads per process. By default the available cores, divided among the processes.
    tensorboard
        Also write logs for TensorBoard; the same as track tensorboard.
    track
        Trackers that follow the run: tensorboard, mlflow, trackio, wandb, or one that another package adds.
    note
        A remark for results.json and the title of every figure.
    method
        full, head, top-layers, prompt, prefix, lora, bitfit or contrastive (heedful list methods).
    kind
        Kind of problem: label (one per text), labels (any number of them), number, ordered (classes with an
        order, such as stars) or text (a free answer); see heedful list problems. By default it is found from
        the data, and printed; only ordered must be named.
    objective
        classify; text2text (T5 writes a label word); joint (also masked language modeling on more text);
        answer (free text after a question). auto chooses answer for tasks with answers, otherwise classify.
    answer_loss
        With objective answer: compute the loss on the answer only, or on the question too.
    head
        Form of the classification head. auto: linear for the methods head, prompt and contrastive, otherwise
        the model family's own.
    head_start
        How a new linear head starts. A random one, so that the examples are learned by training.
    pool
        What an encoder passes to its head: the first token's state, the mean over all tokens or, for pairs, a
        comparison of the means of both texts (apart); family is what the model's family does. By default what
        the model's folder declares (the mean for sentence encoders such as minilm), otherwise the family's.
    max_len
        Largest number of tokens per text; longer texts are truncated, and the run counts them. By default
        enough for 95 % of the texts, and at most 256.
    long_texts
        What is read of longer texts, at the same cost: their beginning (cut), or a quarter of max_len from
        the beginning and the rest from the end (head-tail).
    fold
        K/N, such as 2/5: hold out the second of five parts of train as dev, for cross-validation; the task's
        own dev rows are left out. seed chooses the parts. With time, the first part is the latest one, and
        only rows that are earlier than the part are trained on.
    with_dev
        Train on the rows of dev too, for a model whose settings are chosen. There is no dev then: the last
        model is kept, and test alone is scored.
    label_smoothing
        Share of the target probability that is given to the other labels.
    class_weights
        balanced gives all labels the same total weight in the loss. auto: balanced if the labels of train are
        imbalanced and those of dev are not.
    expect_shares
        The shares of the labels where the model will be used, if they are not those it is trained on: equal,
        train (also after balanced or class weights), or a number per label in their order, such as 0.2,0.8.
        The model's probabilities are corrected for them.
    threshold
        Of two labels, the probability from which the second one is predicted. By default it is tuned on dev
        for a metric such as macro_f1 or f1:LABEL, and 0.5 for accuracy.
    dropout
        Dropout of the model's body, instead of the checkpoint's.
    attention
        Replace the attention mechanism: performer, bigbird:block=32, ... (heedful list attentions).
    tokenizer
        Folder of a tokenizer, or the name of a model. For a preset also a kind to train on the task's text:
        char, word, bpe, ... By default the model's own.
    model_options
        Options of a model that is trained from scratch: n_layers=3 d_model=192 position=rotary.
    method_options
        Options of the method: rank=8 alpha=16 targets=q,v for lora; solver=convex for head, a logistic
        regression instead of steps; layers=2 for top-layers; length=20 for prompt, which by default has as
        many vectors as the median text has tokens, at most 128.
    label_words
        With objective text2text: words for the labels, such as 0=negative 1=positive. By default their names.
    unlabeled
        With objective joint: a file of text without labels, one text per line. By default the training texts.
    mlm_weight
        With objective joint: weight of the masked language modeling loss.
    mlm_first
        With objective joint: number of steps of masked language modeling alone at the start.
    mlm_rate
        With objective joint: share of tokens to mask.
    data_dir
        Folder with the files of a named task. By default $HEEDFUL_DATA/NAME.
    split
        How to split rows if the files are not split: by a hash of their content, in order (first), or not at
        all: without a dev split the last model is kept.
    split_seed
        Seed of the split; seed does not change the split.
    text_column
        Name of the column with the text.
    pair_column
        Name of the column with the second text of a pair.
    label_column
        Name of the column with the label; several columns of 0 and 1, one per label, have commas between
        their names.
    group
        Name of a column, such as the author: rows with the same value are on the same side of the split and
        in the same fold. Files that are split already stay as they are, with a warning if they share groups.
    time
        Name of a column with dates or numbers: the latest rows are test, those before dev, the earliest
        train; folds train on earlier rows than they hold out. Rows of the same time stay together.
    strict
        Refuse files with bad rows, such as one with an empty text, instead of skipping them.
    cache_features
        With method head and top-layers: run what is frozen, the body or its lower layers, once, without
        dropout, and reuse its states.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> heedful.overfit("minilm", "reviews.csv", examples=10).answer.summary

    """

def knowledge(
    data: str | os.PathLike[str] = "world/birthplaces",
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    retry: bool = False,
    keep: Literal["best", "all", "none"] = "all",
    people: int = 600,
    name_signal: float = 0.8,
    pretrain: str | os.PathLike[str] | None = None,
    finetune: str | os.PathLike[str] | None = None,
    from_nothing_epochs: int | None = None,
    strangers: int = 400,
    risk: float = 0.1,
    seed: int = 0,
    data_dir: str | os.PathLike[str] | None = None,
    device: str = "auto",
    threads: int | None = None,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> StudyResult:
    r"""Find out what a small model knows, and whether its memories can be told from its inventions.

    Parameters
    ----------
    data
        world/birthplaces (generated), birthplaces, or a folder with such a wiki.txt and questions.
    out
        Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study.
    jobs
        Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by
        one in this process.
    overwrite
        Replace the study in out.
    retry
        Try failed runs again.
    keep
        Which weights to keep when the study ends: those of the best run on dev, of all runs, or none.
    people
        Number of people with a biography in the generated world.
    name_signal
        Share of people in a second generated world whose surname hints at their birthplace; 0 for no second
        world.
    pretrain
        A recipe (command = "pretrain") for the biographies, or the folder of a finished run that has learned
        them. By default a recipe of a few minutes.
    finetune
        A recipe (command = "adapt") for the questions. By default ten passes over them.
    from_nothing_epochs
        Number of passes over the questions without pretraining. By default as many as with it.
    strangers
        Number of questions about people who do not exist.
    risk
        Largest acceptable share of wrong answers when the model answers only if it is confident.
    seed
        Seed of everything random.
    data_dir
        Folder with the files of birthplaces. By default $HEEDFUL_DATA/birthplaces.
    device
        auto, cpu, cuda, cuda:1 or mps.
    threads
        CPU threads. By default the available cores.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> heedful.knowledge("world/birthplaces", people=200).answer.summary

    """

def attention_study(
    corpus: Any = "world/birthplaces",
    *,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    overwrite: bool = False,
    retry: bool = False,
    keep: Literal["best", "all", "none"] = "all",
    attentions: str | float | Sequence[str] | Sequence[float] = "softmax,additive",
    projections: str | float | Sequence[str] | Sequence[float] = "separate,shared_qk,shared_qkv",
    masking: str | float | Sequence[str] | Sequence[float] = "before,zero_after,zero_scores",
    model: str = "gpt-nano",
    tokenizer: str = "word",
    min_count: int = 3,
    block: int = 100,
    epochs: int = 1,
    steps: int | None = None,
    batch_size: int = 32,
    lr: float = 0.0005,
    dropout: float | None = None,
    eval_every: int = 50,
    dev: str | None = None,
    test: str | None = None,
    sentences: Sequence[str] = (),
    samples: int = 20,
    seed: int = 0,
    device: str = "auto",
    threads: int | None = None,
    on: Literal["here", "slurm"] = "here",
    wait: bool = False,
    dry_run: bool = False,
    partition: str | None = None,
    account: str | None = None,
    qos: str | None = None,
    constraint: str | None = None,
    gpus: str | None = None,
    cpus: int | None = None,
    mem_gb: int | None = None,
    time_min: int | None = None,
    setup: Sequence[str] = (),
    slurm: Sequence[str] = (),
    max_requeues: int | None = None,
    max_parallel: int | None = None,
) -> StudyResult:
    r"""Find out what the attention mechanism changes: small language models on the same text and batches.

    Parameters
    ----------
    corpus
        A text file, a folder, the text of a task or world/...; each line is a text.
    out
        Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study.
    jobs
        Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by
        one in this process.
    overwrite
        Replace the study in out.
    retry
        Try failed runs again.
    keep
        Which weights to keep when the study ends: those of the best run on dev, of all runs, or none.
    attentions
        Mechanisms, such as softmax,additive,performer:features=64 (heedful list attentions).
    projections
        With softmax: whether queries, keys and values share their projection.
    masking
        With softmax: how to mask the future: before the softmax (minus infinity), or in two ways that leak.
    model
        The decoder to train.
    tokenizer
        Folder of a tokenizer, or a kind to train: word, char, bpe, ...
    min_count
        How often a word must occur to be in a new vocabulary.
    block
        Number of tokens per text; longer texts are truncated.
    epochs
        Number of passes over the text.
    steps
        Number of optimizer steps, instead of epochs.
    batch_size
        Number of texts per step.
    lr
        Learning rate.
    dropout
        Dropout, instead of the model's own.
    eval_every
        Number of steps between two points of the curves.
    dev
        Text to score during training. By default the corpus's dev split, or a part of the corpus.
    test
        Text to score once at the end.
    sentences
        Sentences, or a file with one per line, whose loss and perplexity to report.
    samples
        Number of texts that each model writes.
    seed
        Seed of everything random. All variants see the same batches.
    device
        auto, cpu, cuda, cuda:1 or mps.
    threads
        CPU threads. By default the available cores.
    on
        Where to run: on this machine, or as a Slurm batch job with the same result.
    wait
        Follow the job until it ends, and exit with its status.
    dry_run
        Print the batch script and submit nothing.
    partition
        Partition (queue).
    account
        Account that is charged.
    qos
        Quality of service.
    constraint
        Features that the node must have, such as "a100|h100".
    gpus
        GPUs per node, such as 1 or a100:2.
    cpus
        Number of CPU cores per task.
    mem_gb
        Memory per node, in GiB.
    time_min
        Time limit of the job, in minutes.
    setup
        Shell lines to run first, such as "module load python".
    slurm
        Other options of sbatch, such as nodelist=n1 exclusive.
    max_requeues
        How often the job may continue after its time limit. By default 10.
    max_parallel
        Largest number of workers at a time, each a task of a job array. By default 4.

    Examples
    --------
    >>> heedful.attention_study("notes.txt", attentions=["softmax", "performer"], projections="separate")

    """
