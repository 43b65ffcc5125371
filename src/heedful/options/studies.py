"""The options of the studies, and those of their runs that a study does not decide itself."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heedful.options.launch import WORKERS, Workers
from heedful.options.training import AdaptOptions
from heedful.options.types import (
    Argument,
    Bounds,
    Choices,
    Count,
    Flag,
    Length,
    OpenShare,
    Positive,
    Rate,
    Seed,
    Several,
    Share,
    Threads,
    Weight,
)
from heedful.options.values import resolve_field_types

Keep = Literal["best", "all", "none"]
Decided = Parameter(parse=False)
"""Marks an option that the study decides: the command line does not have it."""


@resolve_field_types
@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """The options that all studies share."""

    out: Path | None = None
    """Folder of the study. By default studies/STUDY-TASK-MODEL. The same command continues a study."""
    jobs: Annotated[int, Bounds(least=0, cap=4096)] = 1
    """Number of runs at a time, each in its own process with its share of the threads; 0 runs them one by one
    in this process."""
    overwrite: Flag = False
    """Replace the study in --out."""
    retry: Flag = False
    """Try failed runs again."""
    keep: Keep = "best"
    """Which weights to keep when the study ends: those of the best run on dev, of all runs, or none."""
    launch: Workers = WORKERS
    """Where the workers run."""


@resolve_field_types
@dataclass(frozen=True, kw_only=True)
class RunOptions(AdaptOptions):
    """The options of a study's runs: those of `heedful adapt`."""

    out: Annotated[Path | None, Decided] = None
    resume: Annotated[bool, Decided] = False
    overwrite: Annotated[bool, Decided] = False
    processes: Annotated[int | None, Decided] = None
    score_dev: Annotated[bool, Decided] = True
    score_test: Annotated[bool, Decided] = False


@dataclass(frozen=True, kw_only=True)
class OverfitOptions(StudyOptions):
    """The options of `heedful study overfit`, beside those of its run."""

    keep: Keep = "all"
    examples: Annotated[int, Bounds(least=2, cap=10**9)] = 10
    """Number of training examples to memorize, balanced between the labels."""


@dataclass(frozen=True, kw_only=True)
class OverfitRun(RunOptions):
    """The options of the run, with defaults for a few examples."""

    epochs: Positive = 20
    """Number of passes over the examples."""
    batch_size: Positive = 2
    steps: Annotated[int | None, Decided] = None
    eval_every: Annotated[int | None, Decided] = None
    select: Annotated[Literal["best", "last"], Decided] = "last"
    train_rows: Annotated[int | None, Decided] = None
    balanced: Annotated[bool, Decided] = True
    dev_rows: Annotated[int | None, Decided] = None
    train_eval_rows: Annotated[int, Decided] = 2000
    patience: Annotated[int | None, Decided] = None
    score_dev: Annotated[bool, Decided] = False
    metric: Annotated[str | None, Decided] = None
    head_start: Literal["auto", "fitted", "random"] = "random"
    """How a new linear head starts. A random one, so that the examples are learned by training."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions(StudyOptions):
    """What `heedful study search` searches."""

    lr: Choices = ""
    """Learning rates, such as 1e-4,5e-4,1e-3, or a range to draw from, such as 2e-5:8e-5. The default
    depends on the method."""
    epochs: Choices = "3"
    """Numbers of epochs, such as 5,7,9. A configuration's score is that of its last epoch."""
    batch_size: Choices = "32"
    """Numbers of examples per step, such as 32,64."""
    method: Choices = "full"
    """Methods, such as full,head,lora."""
    random: Positive | None = None
    """Draw this many configurations at random instead of trying all."""
    tpe: Positive | None = None
    """Draw this many configurations, each guided by the results so far (tree-structured Parzen estimator)."""
    prune: Flag = False
    """With --random or --tpe: stop early those runs that fall behind (Hyperband)."""


@dataclass(frozen=True, kw_only=True)
class SearchRun(RunOptions):
    """The options that all runs of a search share."""

    lr: Annotated[float | None, Decided] = None
    epochs: Annotated[int, Decided] = 3
    steps: Annotated[int | None, Decided] = None
    batch_size: Annotated[int, Decided] = 32
    token_budget: Annotated[int | None, Decided] = None
    method: Annotated[str, Decided] = "full"
    schedule: str = "constant"
    """Learning-rate schedule: constant, linear, cosine or wsd. Only with constant can runs of different
    lengths share epochs."""
    warmup: Weight = 10.0
    """Warm-up: a share of all steps if below 1, otherwise a number of steps."""
    eval_every: Annotated[int | None, Decided] = None
    patience: Annotated[int | None, Decided] = None
    select: Annotated[Literal["best", "last"], Decided] = "last"


@dataclass(frozen=True, kw_only=True)
class KnowledgeOptions(StudyOptions):
    """The options of `heedful study knowledge`."""

    keep: Keep = "all"
    data: Argument = "world/birthplaces"
    """world/birthplaces (generated), birthplaces, or a folder with such a wiki.txt and questions."""
    people: Positive = 600
    """Number of people with a biography in the generated world."""
    name_signal: Annotated[float, Bounds(least=0, most=1)] = 0.8
    """Share of people in a second generated world whose surname hints at their birthplace; 0 for no second
    world."""
    pretrain: Path | None = None
    """A recipe (command = "pretrain") for the biographies, or the folder of a finished run that has learned
    them. By default a recipe of a few minutes."""
    finetune: Path | None = None
    """A recipe (command = "adapt") for the questions. By default ten passes over them."""
    from_nothing_epochs: Positive | None = None
    """Number of passes over the questions without pretraining. By default as many as with it."""
    strangers: Annotated[int, Bounds(least=8, cap=10**9)] = 400
    """Number of questions about people who do not exist."""
    risk: OpenShare = 0.1
    """Largest acceptable share of wrong answers when the model answers only if it is confident."""
    seed: Seed = 0
    """Seed of everything random."""
    data_dir: Path | None = None
    """Folder with the files of birthplaces. By default $HEEDFUL_DATA/birthplaces."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    threads: Threads | None = None
    """CPU threads. By default the available cores."""


@dataclass(frozen=True, kw_only=True)
class ArmOptions(StudyOptions):
    """The options of every study that compares arms."""

    seeds: Positive = 3
    """Number of runs per arm, each with another seed."""


@dataclass(frozen=True, kw_only=True)
class OptimizersOptions(ArmOptions):
    """What `heedful study optimizers` compares."""

    optimizers: Choices = "adamw,sgd,rmsprop,muon"
    """Optimizers, such as adamw,sgd."""
    rates: Choices = ""
    """Learning rates to try with each optimizer, such as 1e-4,1e-3. By default three around its usual rate,
    and more while the best is the lowest or the highest."""
    same_settings: Flag = False
    """Use one rate, --lr, for all. Many papers do it, but it does not compare optimizers."""
    seeds: Positive = 1
    """Number of runs per optimizer at its best rate, each with another seed."""


@dataclass(frozen=True, kw_only=True)
class OptimizersRun(RunOptions):
    """The options that all runs share."""

    lr: Rate | None = None
    """With --same-settings: the learning rate of all optimizers. The default depends on the method."""
    optimizer: Annotated[str, Decided] = "adamw"


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ArmOptions):
    """What `heedful study compare` compares."""

    models: Choices = ""
    """Models, such as minilm,bert-tiny: folders, presets or Hub ids."""
    methods: Choices = "full,head"
    """Methods, such as full,head,prompt,lora."""
    search: Flag = False
    """Choose the learning rate of each arm on dev, from --rates, instead of its method's usual rate."""
    rates: Choices = ""
    """With --search: learning rates to try, such as 1e-4,1e-3. By default three around the usual rate of
    the method."""
    epochs: Choices = "3"
    """Number of passes over the training data; with --search several to choose from, such as 5,7,9."""


@dataclass(frozen=True, kw_only=True)
class CompareRun(RunOptions):
    """The options that all runs share."""

    epochs: Annotated[int, Decided] = 3
    lr: Rate | None = None
    """One learning rate for all arms. The default depends on the method."""
    method: Annotated[str, Decided] = "full"
    method_options: Several = ()
    """Options of the methods, each with the method's name: lora:rank=8 prompt:length=20."""


@dataclass(frozen=True, kw_only=True)
class LabelsOptions(ArmOptions):
    """What `heedful study labels` compares."""

    sizes: Choices = "50,200,1000,all"
    """Numbers of labels, such as 50,200,all. Each seed draws its own; larger draws contain smaller ones."""
    arms: Choices = "classify,joint"
    """Objectives: classify, and joint (also masked language modeling on unlabeled text)."""
    rates: Choices = ""
    """Learning rates to choose from. By default three around the usual rate of the method."""
    mlm_weights: Choices = "0.1,0.3,1"
    """With joint: weights of the masked language modeling loss to choose from."""
    least_steps: Count = 200
    """Smallest number of steps, however few the labels."""
    seeds: Positive = 5
    """Number of draws of the labels per size and arm."""


@dataclass(frozen=True, kw_only=True)
class LabelsRun(RunOptions):
    """The options that all runs share."""

    lr: Annotated[float | None, Decided] = None
    epochs: Positive = 3
    """Number of passes over the labels, or more if --least-steps requires it. Dev selects the best."""
    steps: Annotated[int | None, Decided] = None
    token_budget: Annotated[int | None, Decided] = None
    train_rows: Annotated[int | None, Decided] = None
    objective: Annotated[str, Decided] = "classify"
    mlm_weight: Annotated[float, Decided] = 0.3


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(StudyOptions):
    """The options of `heedful study attention`."""

    keep: Keep = "all"
    corpus: Argument = "world/birthplaces"
    """A text file, a folder, the text of a task or world/...; each line is a text."""
    attentions: Choices = "softmax,additive"
    """Mechanisms, such as softmax,additive,performer:features=64 (heedful list attentions)."""
    projections: Choices = "separate,shared_qk,shared_qkv"
    """With softmax: whether queries, keys and values share their projection."""
    masking: Choices = "before,zero_after,zero_scores"
    """With softmax: how to mask the future: before the softmax (minus infinity), or in two ways that leak."""
    model: str = "gpt-nano"
    """The decoder to train."""
    tokenizer: str = "word"
    """Folder of a tokenizer, or a kind to train: word, char, bpe, ..."""
    min_count: Positive = 3
    """How often a word must occur to be in a new vocabulary."""
    block: Length = 100
    """Number of tokens per text; longer texts are truncated."""
    epochs: Positive = 1
    """Number of passes over the text."""
    steps: Positive | None = None
    """Number of optimizer steps, instead of --epochs."""
    batch_size: Positive = 32
    """Number of texts per step."""
    lr: Rate = 5e-4
    """Learning rate."""
    dropout: Share | None = None
    """Dropout, instead of the model's own."""
    eval_every: Positive = 50
    """Number of steps between two points of the curves."""
    dev: str | None = None
    """Text to score during training. By default the corpus's dev split, or a part of the corpus."""
    test: str | None = None
    """Text to score once at the end."""
    sentences: Several = ()
    """Sentences, or a file with one per line, whose loss and perplexity to report."""
    samples: Positive = 20
    """Number of texts that each model writes."""
    seed: Seed = 0
    """Seed of everything random. All variants see the same batches."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    threads: Threads | None = None
    """CPU threads. By default the available cores."""
