"""What functions return in Python: a run or a study in its folder, whose parts are read when they are used.

    run = heedful.adapt("minilm", "reviews.csv")
    run.results.splits["test"].value
    run.predictions("test").to_pandas()
    run.predict(["What a lovely place."])

Both are paths too: every function that takes a folder takes them. In a notebook they show themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError, unknown
from heedful.runs.answers import Answer, Table
from heedful.runs.directory import Run
from heedful.runs.schemas import Checks, Prediction, Results, SentenceResult, SplitResult
from heedful.runs.studies import Outcome, StudyFolder, StudyRecord

if TYPE_CHECKING:
    from heedful.inference.predictions import PredictedLabel
    from heedful.inference.predictor import Predictor
    from heedful.report.charts.vega import Chart
    from heedful.report.outputs import ReportFiles


class ResultFolder:
    """A folder with results: it can be given wherever a path can, draws its figures and writes its report."""

    def __init__(self, folder: str | Path, *, script: str = "") -> None:
        self.folder = Path(folder)
        self.script = script
        """The batch script, where the work was submitted to a cluster."""

    def __fspath__(self) -> str:
        return str(self.folder)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.folder == self.folder

    def __hash__(self) -> int:
        return hash(self.folder)

    def _repr_html_(self) -> str:
        from heedful.report.notebook import render_folder

        return render_folder(str(self.folder))

    @property
    def figures(self) -> list[str]:
        """Names of the figures."""
        return list(self.draw())

    def draw(self) -> dict[str, Chart]:
        """Return all figures of the report by name."""
        from heedful.report.notebook import draw_figures

        return dict(draw_figures(str(self.folder)))

    def figure(self, name: str) -> Chart:
        """Return one figure, which a notebook shows and `heedful.report.charts.save_chart` writes."""
        charts = self.draw()
        if name not in charts:
            raise unknown("figure", name, charts)
        return charts[name]

    def report(self, out: str | Path | None = None, **options: Any) -> ReportFiles:
        """Write the report as one HTML file, by default report.html in the folder.

        The options are those of `heedful.report`: figures, pdf, markdown, bundle and theme.
        """
        from heedful.report.outputs import write_report

        return write_report([self.folder], out or self.folder / "report.html", **options)


class RunResult(ResultFolder):
    """A run of `heedful.adapt` or `heedful.pretrain`.

    Attributes
    ----------
    folder
        The run directory, which the documents describe file by file.
    results
        Its scores with intervals and baselines, what was trained, and what that cost.
    checks
        What the run found when it examined itself.

    """

    @property
    def run(self) -> Run:
        return Run.open(self.folder)

    @property
    def finished(self) -> bool:
        """Whether the run has results; one that was submitted to a cluster has them later."""
        return Run(self.folder).has_results

    @cached_property
    def results(self) -> Results:
        return self.run.read_results()

    @cached_property
    def checks(self) -> Checks:
        return self.run.read_checks()

    @property
    def config(self) -> dict[str, Any]:
        """The options of the run, as config.toml has them."""
        config = self.run.read_config()
        return dict(config[str(config["command"])])

    def metrics(self) -> Any:
        """Return the curves as a `pyarrow.Table`: one row per split and evaluation."""
        return make_arrow_table([vars(row) for row in self.run.read_metrics()])

    def predictions(self, split: str | None = None) -> Any:
        """Return the stored predictions as a `pyarrow.Table`; `to_pandas()` converts it.

        `split` is by default test, or dev where test was not scored.
        """
        stored = [path.stem.partition("_")[2] for path in sorted(self.folder.glob("predictions_*.jsonl"))]
        name = split or next((name for name in ("test", "dev", *stored) if name in stored), "test")
        if name not in stored:
            raise UserError(f"{self.folder}: {unknown('split with stored predictions', name, stored)}")
        return make_arrow_table([prediction_row(row) for row in self.run.read_predictions(name)])

    @cached_property
    def predictor(self) -> Predictor:
        """The best model, loaded once."""
        from heedful.inference.loading import load_run
        from heedful.process_state import keep_process_state

        with keep_process_state():
            return load_run(self.folder)

    def predict(self, texts: Any, pairs: Any = None) -> list[PredictedLabel]:
        """Return the label of each text, with its confidence, from the best model."""
        return self.predictor.predict(texts, pairs)

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "script": self.script}


class StudyResult(ResultFolder):
    """A study, such as `heedful.search` or `heedful.compare`, and its answer."""

    @property
    def study(self) -> StudyFolder:
        return StudyFolder.open(self.folder)

    @property
    def record(self) -> StudyRecord:
        """The question, its options and its configurations."""
        return self.study.read()

    @property
    def finished(self) -> bool:
        return self.study.concluded

    @property
    def answer(self) -> Answer:
        """The answer in sentences, with its tables and facts; while runs are missing, the answer so far."""
        answer = self.study.find_answer()
        if answer is None:
            raise UserError(f"{self.folder}: has no answer yet; the same call continues the study")
        return answer

    @property
    def outcomes(self) -> list[Outcome]:
        """The state of each run: finished, failed with its reason, pruned, or still to come."""
        return self.study.read_outcomes()

    @property
    def runs(self) -> list[RunResult]:
        """The finished runs."""
        return [RunResult(outcome.folder) for outcome in self.outcomes if outcome.state == "finished"]

    @property
    def best(self) -> RunResult | None:
        """The run with the best score on dev; None if no run was scored."""
        from heedful.studies.base import find_best

        best = find_best(self.outcomes)
        return None if best is None else RunResult(best.folder)

    def table(self) -> Table:
        """Return all runs, one per row: settings, state, scores, seconds. `to_pandas()` converts it."""
        outcomes = self.outcomes
        settings = list(dict.fromkeys(name for o in outcomes for name in o.configuration.settings))
        splits = list(dict.fromkeys(name for o in outcomes if o.results for name in o.results.splits))
        rows = [
            (
                o.name,
                *(simplify_setting(o.configuration.settings.get(name)) for name in settings),
                o.state,
                *(o.results.splits[s].value if o.results and s in o.results.splits else None for s in splits),
                o.results.seconds if o.results else None,
                o.ended.reason if o.ended else None,
            )
            for o in outcomes
        ]
        columns = ("run", *settings, "state", *splits, "seconds", "reason")
        return Table(columns, tuple(rows), self.record.question)


class SolveResult(StudyResult):
    """What `heedful.solve` found: an answer, and the chosen model."""

    @property
    def best(self) -> RunResult:
        """The chosen run; its model is the one that `predict` uses."""
        return RunResult(Run.open(self.folder).path)

    def predict(self, texts: Any, pairs: Any = None) -> list[PredictedLabel]:
        """Return the label of each text, with its confidence, from the chosen model."""
        return self.predictor.predict(texts, pairs)

    @cached_property
    def predictor(self) -> Predictor:
        """The chosen model, loaded once."""
        return self.best.predictor

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder, "script": self.script}


class EvaluationResult:
    """Scores of a run's best model, from `heedful.evaluate`.

    Attributes
    ----------
    splits
        The result of each split, or of each text of a language model: value, interval, baselines.
    sentences
        The scores of single sentences, for a language model.
    recorded
        The values that the run itself recorded when it ended.

    """

    def __init__(
        self,
        run: RunResult,
        splits: dict[str, SplitResult],
        sentences: Sequence[SentenceResult] = (),
    ) -> None:
        self.run, self.splits, self.sentences = run, splits, tuple(sentences)
        before = run.results.splits if run.finished else {}
        self.recorded = {
            name: before[name].value
            for name, split in splits.items()
            if name in before and before[name].metric == split.metric
        }

    @property
    def result(self) -> SplitResult:
        """The result of the first split."""
        if not self.splits:
            raise UserError("only sentences were scored; they are in sentences")
        return next(iter(self.splits.values()))

    @property
    def value(self) -> float | None:
        """The value of the metric on the first split."""
        return self.result.value

    @property
    def ci95(self) -> tuple[float | None, float | None] | None:
        """A 95 % interval of `value`."""
        return self.result.ci95

    def table(self) -> Table:
        columns = ("split", "metric", "value", "low", "high", "n", "recorded")
        rows = [
            (name, r.metric, r.value, *(r.ci95 or (None, None)), r.n, self.recorded.get(name))
            for name, r in self.splits.items()
        ]
        return Table(columns, tuple(rows), f"{self.run.folder}, best model")

    def __repr__(self) -> str:
        scores = ", ".join(f"{name} {r.metric} {r.value}" for name, r in self.splits.items())
        return f"EvaluationResult({scores or f'{len(self.sentences)} sentences'})"

    def _repr_html_(self) -> str:
        columns = ("sentence", "tokens", "loss", "perplexity", "unknown")
        rows = tuple((s.text, s.tokens, s.loss, s.perplexity, s.unknown) for s in self.sentences)
        parts = [self.table()] if self.splits else []
        parts += [Table(columns, rows)] if rows else []
        return "".join(table._repr_html_() for table in parts)


def simplify_setting(value: Any) -> Any:
    """Return a setting as one cell: a list as text."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value


def make_arrow_table(rows: Sequence[Any]) -> Any:
    """Return records as a `pyarrow.Table`, without the columns that no record has."""
    import pyarrow as pa

    columns = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    return pa.table({name: [row.get(name) for row in rows] for name in columns})


def prediction_row(prediction: Prediction) -> dict[str, Any]:
    """Return a prediction as one row; each class of a classifier has a column `p_CLASS`."""
    values = vars(prediction) | {"confidence": prediction.probabilities.get(prediction.predicted)}
    probabilities = values.pop("probabilities")
    if len(probabilities) > 1:  # a free answer has only its own
        values |= {f"p_{label}": probability for label, probability in probabilities.items()}
    return values
