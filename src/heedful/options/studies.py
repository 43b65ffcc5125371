"""What studies can be told, and what their runs can be told beside what the study decides for them.

Nothing here imports torch, so that `--help` is quick.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from heedful.options.launch import WORKERS, Workers
from heedful.options.training import AdaptObjective, AdaptOptions, Precision
from heedful.options.types import Argument, Flag, Several

Keep = Literal["best", "all", "none"]
INHERITED = (AdaptObjective, Argument, Precision, Several)
"""Names in the annotations of inherited fields: they are looked up in this module."""
Decided = Parameter(parse=False)
"""The study decides it: no option of the command line."""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What every study can be told."""

    out: Path | None = None
    """The study's folder; by default studies/KIND-TASK-MODEL. The same command continues what is there."""
    jobs: int = 1
    """Runs at a time, each in a process of its own with its share of the threads; 0: in this process."""
    overwrite: Flag = False
    """Replace the study in --out."""
    retry: Flag = False
    """Try the runs that failed again."""
    keep: Keep = "best"
    """Whose weights stay when the study is over: of the best run on dev, of all, or of none."""
    launch: Workers = WORKERS
    """Where the workers run."""


@dataclass(frozen=True, kw_only=True)
class RunOptions(AdaptOptions):
    """What the runs of a study can be told: the options of `heedful adapt`."""

    out: Annotated[Path | None, Decided] = None
    resume: Annotated[bool, Decided] = False
    overwrite: Annotated[bool, Decided] = False
    processes: Annotated[int | None, Decided] = None
    score_dev: Annotated[bool, Decided] = True
    score_test: Annotated[bool, Decided] = False


@dataclass(frozen=True, kw_only=True)
class OverfitOptions(StudyOptions):
    """What `heedful study overfit` can be told beside its run's options."""

    keep: Keep = "all"
    """Whose weights stay when the study is over: of the best run on dev, of all, or of none."""
    examples: int = 10
    """How many training examples to learn by heart, as equal in labels as they can be."""


@dataclass(frozen=True, kw_only=True)
class OverfitRun(RunOptions):
    """The run's options, with defaults that suit a few examples."""

    epochs: int = 20
    """Passes over the examples."""
    batch_size: int = 2
    """Examples a step."""
    steps: Annotated[int | None, Decided] = None
    eval_every: Annotated[int | None, Decided] = None
    select: Annotated[Literal["best", "last"], Decided] = "last"
    train_rows: Annotated[int | None, Decided] = None
    dev_rows: Annotated[int | None, Decided] = None
    train_eval_rows: Annotated[int, Decided] = 2000
    patience: Annotated[int | None, Decided] = None
    score_dev: Annotated[bool, Decided] = False


@dataclass(frozen=True, kw_only=True)
class SearchOptions(StudyOptions):
    """What `heedful study search` goes through."""

    lr: str = ""
    """Learning rates, as 1e-4,5e-4,1e-3, or a range to draw from, as 2e-5:8e-5; by default around what suits
    the method."""
    epochs: str = "3"
    """Numbers of epochs, as 5,7,9; a cell's score is that of its last epoch."""
    batch_size: str = "32"
    """Examples a step, as 32,64."""
    method: str = "full"
    """Methods, as full,head,lora."""
    random: int | None = None
    """Draw so many configurations instead of going through all."""
    tpe: int | None = None
    """Draw so many, each guided by those before it (tree-structured Parzen estimator)."""
    prune: Flag = False
    """With --random or --tpe: stop runs early that fall behind (Hyperband)."""


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
    """constant, linear, cosine or wsd; only with constant do numbers of epochs share their beginning."""
    warmup: float = 10.0
    """From 1 on a number of steps, below 1 a share of all steps."""
    eval_every: Annotated[int | None, Decided] = None
    patience: Annotated[int | None, Decided] = None
    select: Annotated[Literal["best", "last"], Decided] = "last"


@dataclass(frozen=True, kw_only=True)
class KnowledgeOptions(StudyOptions):
    """Everything `heedful study knowledge` can be told."""

    keep: Keep = "all"
    """Whose weights stay when the study is over: of the best run on dev, of all, or of none."""
    data: Argument = "world/birthplaces"
    """world/birthplaces (made here), birthplaces, or a folder with wiki.txt and questions as it has them."""
    people: int = 600
    """Of the made world: so many people with a biography."""
    name_signal: float = 0.8
    """Of a second made world: the share of people born where their surname hints at; 0 for no such world."""
    pretrain: Path | None = None
    """A recipe (command = "pretrain") for the biographies, by default one of some minutes; or the folder of a
    finished run that has learnt them."""
    finetune: Path | None = None
    """A recipe (command = "adapt") for the questions."""
    from_nothing_epochs: int | None = None
    """Passes over the questions without pretraining; by default as many as with it."""
    strangers: int = 400
    """Ask about so many people who do not exist."""
    risk: float = 0.1
    """Answering only when sure: the largest share of wrong answers to be accepted."""
    seed: int = 0
    """Decides everything random."""
    data_dir: Path | None = None
    """Where birthplaces' files are; by default $HEEDFUL_DATA/birthplaces."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    threads: int | None = None
    """CPU threads; by default the cores this process may use."""


@dataclass(frozen=True, kw_only=True)
class ArmOptions(StudyOptions):
    """What every study that compares arms can be told."""

    seeds: int = 3
    """Runs of each arm, with seeds of their own."""


@dataclass(frozen=True, kw_only=True)
class OptimizersOptions(ArmOptions):
    """What `heedful study optimizers` compares."""

    optimizers: str = "adamw,sgd,rmsprop,muon"
    """Optimisers, as adamw,sgd."""
    rates: str = ""
    """Learning rates to try with each, as 1e-4,1e-3; by default three around what suits it, and further ones
    while the best is the lowest or the highest."""
    same_settings: Flag = False
    """One rate for all, --lr: no comparison of optimisers, but what many papers do."""
    seeds: int = 1
    """Runs of each optimiser at its best rate, with seeds of their own."""


@dataclass(frozen=True, kw_only=True)
class OptimizersRun(RunOptions):
    """The options that all runs share."""

    lr: float | None = None
    """With --same-settings: the one learning rate; by default what suits the method."""
    optimizer: Annotated[str, Decided] = "adamw"


@dataclass(frozen=True, kw_only=True)
class CompareOptions(ArmOptions):
    """What `heedful study compare` compares."""

    models: str = ""
    """Models, as minilm,bert-tiny; folders, presets and Hub ids will do."""
    methods: str = "full,head"
    """Methods, as full,head,prompt,lora."""
    search: Flag = False
    """Choose each arm's learning rate on dev, among --rates, instead of taking what suits its method."""
    rates: str = ""
    """With --search: learning rates to try, as 1e-4,1e-3; by default three around what suits the method."""
    epochs: str = "3"
    """Passes over the training data; with --search also several to choose from, as 5,7,9."""


@dataclass(frozen=True, kw_only=True)
class CompareRun(RunOptions):
    """The options that all runs share."""

    epochs: Annotated[int, Decided] = 3
    lr: float | None = None
    """One learning rate for all; by default what suits each method."""
    method: Annotated[str, Decided] = "full"
    method_options: Several = ()
    """Options of the methods, each for its own: lora:rank=8 prompt:length=20."""


@dataclass(frozen=True, kw_only=True)
class LabelsOptions(ArmOptions):
    """What `heedful study labels` compares."""

    sizes: str = "50,200,1000,all"
    """Numbers of labels, as 50,200,all; each seed draws its own, and more labels contain the fewer."""
    arms: str = "classify,joint"
    """Objectives: classify, joint (with masked language modelling on the training texts)."""
    rates: str = ""
    """Learning rates to choose from; by default three around what suits the method."""
    mlm_weights: str = "0.1,0.3,1"
    """joint: weights of masked language modelling to choose from."""
    least_steps: int = 200
    """Train for at least so many steps, however few the labels."""
    seeds: int = 5
    """Draws of the labels for each size and arm."""


@dataclass(frozen=True, kw_only=True)
class LabelsRun(RunOptions):
    """The options that all runs share."""

    lr: Annotated[float | None, Decided] = None
    epochs: int = 3
    """Passes over the labels, or more where --least-steps asks for it; dev selects the best."""
    steps: Annotated[int | None, Decided] = None
    token_budget: Annotated[int | None, Decided] = None
    train_rows: Annotated[int | None, Decided] = None
    objective: Annotated[Literal["auto", "classify", "text2text", "joint", "answer"], Decided] = "classify"
    mlm_weight: Annotated[float, Decided] = 0.3


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(StudyOptions):
    """Everything `heedful study attention` can be told."""

    keep: Keep = "all"
    """Whose weights stay when the study is over: of the best run on dev, of all, or of none."""
    corpus: Argument = "world/birthplaces"
    """A text file, a folder, a task's text or world/...; a line is a text."""
    attentions: str = "softmax,additive"
    """Mechanisms, as softmax,additive,performer:features=64 (heedful list attentions)."""
    projections: str = "separate,shared_qk,shared_qkv"
    """Of softmax: whether queries, keys and values share their projection."""
    masking: str = "before,zero_after,zero_scores"
    """Of softmax: how the future is hidden. before (minus infinity), or two ways that leak."""
    model: str = "gpt-nano"
    """The decoder that is trained."""
    tokenizer: str = "word"
    """A folder, or a kind to train: word, char, bpe, ..."""
    min_count: int = 3
    """Of a tokenizer that is trained: how often a word must occur."""
    block: int = 100
    """Tokens a text; longer ones are cut."""
    epochs: int = 1
    """Passes over the text."""
    steps: int | None = None
    """Train for so many steps, instead of --epochs."""
    batch_size: int = 32
    """Texts a step."""
    lr: float = 5e-4
    """Learning rate."""
    dropout: float | None = None
    """Instead of the model's own."""
    eval_every: int = 50
    """Steps between two points of the curves."""
    dev: str | None = None
    """Score this text; by default the corpus's own dev split, or else a part of it."""
    test: str | None = None
    """Score this text once at the end."""
    sentences: Several = ()
    """Give the loss and perplexity of these sentences too, or of each line of a file."""
    samples: int = 20
    """Texts that each model writes."""
    seed: int = 0
    """Decides everything random: the same batches for all variants."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 or mps."""
    threads: int | None = None
    """CPU threads; by default the cores this process may use."""
