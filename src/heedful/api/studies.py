"""The studies as functions: `heedful.search`, `compare`, `labels`, `optimizers`, `overfit`, `knowledge` and
`attention_study`. Each is `heedful study NAME` with the same options and defaults.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.api.training import Folder, store_data
from heedful.errors import SubmittedElsewhere
from heedful.options import studies as options
from heedful.options.keywords import Signature
from heedful.options.launch import StudyLaunchOptions
from heedful.process_state import keeps_process_state
from heedful.results import StudyResult
from heedful.runs.studies import JOBS


def make_signature(function: str, arguments: tuple[str, ...], *groups: type[Any]) -> Signature:
    return Signature(f"heedful.{function}", (*groups, StudyLaunchOptions), arguments, ("launch",))


MODEL_AND_TASK = ("model", "task")
OVERFIT = make_signature("overfit", MODEL_AND_TASK, options.OverfitOptions, options.OverfitRun)
SEARCH = make_signature("search", MODEL_AND_TASK, options.SearchOptions, options.SearchRun)
COMPARE = make_signature("compare", ("task",), options.CompareOptions, options.CompareRun)
LABELS = make_signature("labels", MODEL_AND_TASK, options.LabelsOptions, options.LabelsRun)
OPTIMIZERS = make_signature("optimizers", MODEL_AND_TASK, options.OptimizersOptions, options.OptimizersRun)
ATTENTION = make_signature("attention_study", ("corpus",), options.AttentionOptions)
KNOWLEDGE = make_signature("knowledge", ("data",), options.KnowledgeOptions)


@keeps_process_state
def overfit(model: Folder, task: Any, labels: Any = None, **options: Any) -> StudyResult:
    """Find out whether a model can learn at all: train on a few examples until they are known by heart.

    A model that cannot learn ten examples has a mistake in its data, its tokenizer or its options.

    Examples
    --------
    >>> heedful.overfit("minilm", "reviews.csv", examples=10).answer.summary
    """
    return run("overfit", OVERFIT, {"model": model, "task": store_data(task, labels), **options})


@keeps_process_state
def search(model: Folder, task: Any, labels: Any = None, **options: Any) -> StudyResult:
    """Find the best settings on dev: a grid, or draws. The best is scored on test, once.

    Examples
    --------
    >>> study = heedful.search("minilm", "reviews.csv", method="head", lr=[1e-3, 1e-2], epochs=[5, 10])
    >>> study.table().to_pandas()
    >>> study.best.predict(["What a lovely place."])
    """
    return run("search", SEARCH, {"model": model, "task": store_data(task, labels), **options})


@keeps_process_state
def compare(task: Any, labels: Any = None, **options: Any) -> StudyResult:
    """Find out which model and which method are best on a task, and which cannot be told apart.

    Arms are compared on the same examples, with tests that are corrected for their number.

    Examples
    --------
    >>> study = heedful.compare("reviews.csv", models="minilm", methods=["full", "head", "lora"], seeds=3)
    >>> study.answer.summary
    """
    return run("compare", COMPARE, {"task": store_data(task, labels), **options})


@keeps_process_state
def labels(model: Folder, task: Any, labels: Any = None, **options: Any) -> StudyResult:
    """Find out how many labels are enough, and whether text without labels helps.

    Examples
    --------
    >>> study = heedful.labels("minilm", "reviews.csv", sizes=[50, 200, "all"])
    >>> study.figure(study.figures[0])
    """
    return run("labels", LABELS, {"model": model, "task": store_data(task, labels), **options})


@keeps_process_state
def optimizers(model: Folder, task: Any, labels: Any = None, **options: Any) -> StudyResult:
    """Compare optimizers; each gets its own learning-rate search on dev.

    Examples
    --------
    >>> heedful.optimizers("minilm", "reviews.csv", optimizers=["adamw", "muon"]).answer.summary
    """
    return run("optimizers", OPTIMIZERS, {"model": model, "task": store_data(task, labels), **options})


@keeps_process_state
def attention_study(corpus: Any = options.AttentionOptions.corpus, **options: Any) -> StudyResult:
    """Find out what the attention mechanism changes: small language models on the same text and batches.

    Examples
    --------
    >>> heedful.attention_study("notes.txt", attentions=["softmax", "performer"], projections="separate")
    """
    return run("attention", ATTENTION, {"corpus": store_data(corpus), **options})


@keeps_process_state
def knowledge(data: Folder = options.KnowledgeOptions.data, **options: Any) -> StudyResult:
    """Find out what a small model knows, and whether its memories can be told from its inventions.

    Examples
    --------
    >>> heedful.knowledge("world/birthplaces", people=200).answer.summary
    """
    return run("knowledge", KNOWLEDGE, {"data": data, **options})


def run(name: str, signature: Signature, keywords: dict[str, Any]) -> StudyResult:
    """Run a study to its answer, or submit its workers to a cluster."""
    from heedful.studies import STUDIES
    from heedful.studies.shared.runner import run_study

    study, *run_options, launch = signature.parse(keywords)
    try:
        folder, _ = run_study(STUDIES[name], replace(study, launch=launch), *run_options)
    except SubmittedElsewhere as submitted:
        path, script = read_submission(submitted, launch)
        return StudyResult(path, script=script)
    return StudyResult(folder.path)


def read_submission(submitted: SubmittedElsewhere, launch: StudyLaunchOptions) -> tuple[Path, str]:
    """Return the folder of a study whose workers were submitted, and their batch script."""
    jobs = Path(str(submitted.facts["folder"]))
    script = str(submitted.facts["script"])
    text = script if launch.dry_run else Path(script).read_text("utf-8")
    return jobs.parent if jobs.name == JOBS else jobs, text
