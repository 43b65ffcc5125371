"""The process that trains: it takes one request per line, and answers each with one line of JSON.

The process that plans (`heedful.solve.runner`) stays light and in control: it can end this one when the time
is over, and survives it if a candidate needs more memory than there is.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

TIMED_TEXTS = 64
"""Number of texts that are labeled to measure the time per text."""
PILOT_SECONDS = 6.0
PILOT_STEPS = 4
RUNGS = (1 / 3, 2 / 3)
"""Parts of the training after which a run that is behind its rival is stopped."""


def main() -> int:
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever is printed goes to the log, the answers alone to the channel
    from heedful.logs import print_messages
    from heedful.training.signals import StoppedError, stop_with_parent

    stop_with_parent(os.getppid())

    def answer(facts: Mapping[str, Any]) -> None:
        channel.write(json.dumps(facts) + "\n")
        channel.flush()

    with print_messages():
        from heedful.training import train  # noqa: F401  (the long import comes before the first request)

        answer({"ready": True})
        for line in sys.stdin:
            try:
                answer(handle(json.loads(line)))
            except StoppedError:
                return 0
    return 0


def handle(request: dict[str, Any]) -> dict[str, Any]:
    """Do what is asked; an error becomes the answer."""
    from heedful.errors import UserError
    from heedful.studies.base import describe_failure
    from heedful.training.signals import StoppedError

    try:
        return ACTIONS[request.pop("do")](**request)
    except StoppedError:
        raise
    except Exception as error:
        if not isinstance(error, UserError):
            traceback.print_exc()
        return {"error": describe_failure(error)}


def measure_speed(options: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Take a few training steps and score a few rows, and return what a row takes."""
    import numpy as np

    from heedful.runs.directory import Run
    from heedful.training.build import build_adapt, learning_rate

    job = build_adapt(make_options(options | {"head_start": "random"}))
    loop = job.make_loop(Run(options["out"]))
    loop.model.train()
    end = time.monotonic() + min(seconds, PILOT_SECONDS)
    loop.step(0)  # slower: memory is found and threads are started
    begun, steps, rows = time.monotonic(), 0, 0
    while steps < PILOT_STEPS or (time.monotonic() < end and steps < loop.plan.total - 1):
        steps += 1
        rows += len(loop.choose_examples(steps))
        loop.step(steps)
        if time.monotonic() > end + seconds:
            break
    train_row = (time.monotonic() - begun) / max(1, rows)
    lengths = loop.objective.train_lengths()
    sample = np.sort(np.random.default_rng(0).permutation(len(lengths))[:TIMED_TEXTS])
    begun = time.monotonic()
    loop.score_split("train", sample)
    forward_row = (time.monotonic() - begun) / len(sample)
    return {
        "train_row": train_row,
        "forward_row": forward_row,
        "epochs": job.options.epochs,
        "batch_size": job.options.batch_size,
        "precision": job.precision,
        "lr": learning_rate(job.options),
    }


def train_candidate(options: dict[str, Any], seconds: float, rival: str | None = None) -> dict[str, Any]:
    """Make one run, whose training stops after this many seconds; measure what its model costs.

    The model of a fold is not used, and its weights may be gone already; one that is fitted again on train
    and dev costs what it did before. With a rival, a finished run that differs in its learning rate, training
    ends as soon as it is behind (`follow_rival`). No run fits a bag of words of its own, since `tfidf` is a
    candidate.
    """
    from heedful.training.train import train_run

    begun, asked = time.monotonic(), make_options(options)
    try:
        finished = train_run(
            asked,
            deadline=begun + seconds,
            on_row=None if rival is None else follow_rival(Path(rival)),
            with_bag=False,
        )
    except BehindError as behind:
        return {"behind": str(behind)}
    trained = max(time.monotonic() - begun, finished.results.seconds)  # longer if it is a finished run
    cost = {} if "fold" in options or "with_dev" in options else measure_cost(finished.folder)
    return {"seconds": trained, "cut": was_cut(finished.folder), **cost}


class BehindError(Exception):
    """A run was stopped because its rival was better at the same point."""


def follow_rival(folder: Path) -> Callable[[Any], None]:
    """Return what a run calls with each score: it raises where dev is worse than the rival's was by then.

    That is successive halving with a rival that is known to the end: what survives continues, so that no step
    is taken twice. Both are compared at the first evaluations after a third and after two thirds.
    """
    from heedful.evaluation.metrics import METRICS
    from heedful.runs.directory import Run

    rival = Run.open(folder)
    known = {
        row.step: row.value for row in rival.read_metrics() if row.split == "dev" and row.value is not None
    }
    metric = METRICS.find(rival.read_results().splits["dev"].metric)
    last, waiting = max(known, default=0), list(RUNGS)

    def compare(row: Any) -> None:
        if row.split != "dev" or not waiting or row.step < waiting[0] * last or row.step not in known:
            return
        waiting.pop(0)
        before = known[row.step]
        if metric.sort_key(row.value) < metric.sort_key(before):
            scores = f"{row.value:.3f} against {before:.3f}"
            raise BehindError(
                f"was behind {folder.name} after {row.step} of {last} steps ({scores}), and stopped"
            )

    return compare


def was_cut(folder: Path) -> bool:
    """Whether the training of a run ended before its last epoch, or its last step if it counts steps."""
    from heedful.runs.directory import Run

    run = Run.open(folder)
    config, rows = run.read_config()["adapt"], run.read_metrics()
    if (steps := config.get("steps")) is not None:
        return bool(rows) and max(row.step for row in rows) < steps
    epochs = config.get("epochs")
    return epochs is not None and bool(rows) and max(row.epoch for row in rows) < epochs - 1e-6


def measure_cost(folder: Path) -> dict[str, Any]:
    """Measure the time per text of a run's best model, and the bytes of its weights."""
    from heedful.inference.loading import load_run
    from heedful.runs.directory import Run

    run = Run.open(folder)
    rows = run.read_predictions("dev")[:TIMED_TEXTS]
    predictor = load_run(folder)
    pairs = None if rows[0].pair is None else [str(row.pair) for row in rows]
    texts = [str(row.text) for row in rows]
    predictor.predict_proba(texts[:2], None if pairs is None else pairs[:2])  # the first call is slower
    begun = time.monotonic()
    predictor.predict_proba(texts, pairs)
    seconds = (time.monotonic() - begun) / len(rows)
    files = count_bytes(run.best)
    return {
        "ms_per_text": 1000 * seconds,
        "megabytes": max(files, 4 * run.read_results().total_parameters) / 1e6,
        "disk_megabytes": files / 1e6,
    }


def count_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def make_ensemble(options: dict[str, Any], candidates: list[str], folds: int) -> dict[str, Any]:
    """Make the run of an average of candidates, and those of its folds, which hold its predictions."""
    import numpy as np

    from heedful.runs.directory import Run
    from heedful.runs.studies import StudyFolder
    from heedful.solve.ensemble import blend_candidates
    from heedful.solve.held_out import fold_names
    from heedful.solve.plan import FOLDS
    from heedful.training.ensemble import average_runs

    begun, out = time.monotonic(), Path(options["out"])
    folder = StudyFolder(out.parent.parent)
    blend = blend_candidates(folder, candidates, folds)
    assert blend is not None
    weights = {folder.run(name): weight for name, weight in blend.weights.items()}
    runs = [Run.open(folder.run(name)) for name in (candidates[0], *fold_names(candidates[0], folds))]
    ends = np.cumsum([len(run.read_predictions("dev")) for run in runs])
    dev, *others = np.split(blend.probabilities, ends[:-1])
    for number, (name, part) in enumerate(zip(fold_names(out.name, folds), others, strict=True), 1):
        changed = {"out": str(folder.run(name)), "fold": f"{number}/{FOLDS}"}
        average_runs(make_fold_options(options, changed), weights, part, keep_members=False)
    average_runs(make_options(options), weights, dev)
    return {"seconds": time.monotonic() - begun, "disk_megabytes": count_bytes(Run.open(out).best) / 1e6}


def average_refitted(options: dict[str, Any], weights: dict[str, float]) -> dict[str, Any]:
    """Make the run of an average of runs on train and dev, with the weights that were chosen before."""
    from heedful.training.ensemble import average_runs

    average_runs(make_options(options), {Path(run): weight for run, weight in weights.items()}, None)
    return {}


def make_fold_options(options: dict[str, Any], changed: dict[str, Any]) -> Any:
    """Return the options of a fold, which has no dev split of its own to take rows of."""
    return make_options({key: value for key, value in options.items() if key != "dev_rows"} | changed)


def measure_made(run: str) -> dict[str, Any]:
    """Measure what the model of a finished run costs."""
    return {"cut": was_cut(Path(run)), **measure_cost(Path(run))}


def score_test(run: str, rows: int | None) -> dict[str, Any]:
    from heedful.training.rescore import add_split

    add_split(run, "test", rows, with_bag=False)
    return {}


def measure_curve(options: dict[str, Any], **request: Any) -> dict[str, Any]:
    from heedful.solve.probes import answer_curve

    return answer_curve(make_options(options), **request)


def measure_long_texts(options: dict[str, Any], **request: Any) -> dict[str, Any]:
    from heedful.solve.long_texts import answer_long_texts

    return answer_long_texts(make_options(options), **request)


def label_rows(options: dict[str, Any], **request: Any) -> dict[str, Any]:
    from heedful.solve.probes import label_unlabeled

    return label_unlabeled(make_options(options), **request)


def make_options(table: dict[str, Any]) -> Any:
    from heedful.options.configuration import check_table
    from heedful.options.training import AdaptOptions

    return AdaptOptions(**check_table(AdaptOptions, table, "heedful solve"))


ACTIONS: dict[str, Callable[..., dict[str, Any]]] = {
    "speed": measure_speed,
    "train": train_candidate,
    "cost": measure_made,
    "ensemble": make_ensemble,
    "average": average_refitted,
    "test": score_test,
    "curve": measure_curve,
    "label": label_rows,
    "long texts": measure_long_texts,
}

if __name__ == "__main__":
    sys.exit(main())
