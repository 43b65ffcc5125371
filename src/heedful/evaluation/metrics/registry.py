"""The metrics of this package, each one entry, and the registry of all metrics by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from heedful.errors import UserError, shorten, unknown
from heedful.evaluation.metrics import counts, numbers, probabilities, several_labels
from heedful.evaluation.metrics.base import Metric
from heedful.evaluation.metrics.functions import (
    Array,
    accuracy,
    exact_match,
    share_interval,
    share_test,
    text_perplexity,
    text_perplexity_interval,
)
from heedful.evaluation.metrics.resampling import OnWeights
from heedful.plugins import Registry
from heedful.problems import PROBLEMS

ONE_LABEL, SEVERAL, ORDERED, NUMBER = ("label", "ordered"), ("labels",), ("ordered",), ("number",)
ANY_LABELS = (*ONE_LABEL, *SEVERAL)
PLACE = "LABEL"
"""What stands in the names of metrics of one label, such as f1:LABEL, for the name of the label."""


class LabelMetric(Metric):
    """A metric of one label: `f1:LABEL` is a family of metrics, and `f1:spam` one of them.

    Its function takes the number of the label first; `bind` finds the number.
    """

    def __init__(
        self,
        family: str,
        of_number: Callable[[int, Array, Array], OnWeights],
        *,
        of: str,
        label: str = PLACE,
        number: int | None = None,
        **options: Any,
    ) -> None:
        self.family, self.of_number, self.of, self.label, self.number = family, of_number, of, label, number
        self.options = options
        weigh = self.refuse_unbound if number is None else partial(of_number, number)
        title = f"{of} of {shorten(label, 30)}"
        super().__init__(f"{family}:{label}", weigh=weigh, title=title, stratified=True, **options)

    def refuse_unbound(self, targets: Array, outputs: Array) -> OnWeights:
        raise ValueError(f"{self.name}: the number of the label is not known; see Metric.bind")

    def of_label(self, label: str, number: int | None = None) -> LabelMetric:
        if not label:
            raise UserError(f"--metric {self.family}: names a label too, as {self.family}:spam does")
        return LabelMetric(
            self.family, self.of_number, of=self.of, label=label, number=number, **self.options
        )

    def bind(self, labels: Sequence[str]) -> Metric:
        if self.label not in labels:
            raise UserError(f"--metric {self.name}: {unknown('label', self.label, labels)}")
        return self.of_label(self.label, list(labels).index(self.label))


class MetricRegistry(Registry[Metric]):
    """The metrics by name; `f1:spam` is found in the family `f1:LABEL`."""

    def find_family(self, name: object) -> str | None:
        family, _, label = str(name).partition(":")
        in_registry = super().__contains__(f"{family}:{PLACE}")
        return f"{family}:{PLACE}" if in_registry and label != PLACE else None

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self.find_family(name) is not None

    def __getitem__(self, name: str) -> Metric:
        family = None if super().__contains__(name) else self.find_family(name)
        if family is None:
            return super().__getitem__(name)
        metric = super().__getitem__(family)
        assert isinstance(metric, LabelMetric)
        return metric.of_label(name.partition(":")[2])


def find_metric(name: str, labels: Sequence[str]) -> Metric:
    """Return the metric of that name for these labels; an unknown name or label is a `UserError`."""
    return METRICS.find(name).bind(labels)


def fits_problem(metric: Metric, problem: str) -> bool:
    """Whether a metric is for a kind of problem, or for one that it is a special case of."""
    kind = PROBLEMS.find(problem)
    names = {problem, *(vars(base).get("name") for base in kind.__mro__)}
    return not metric.problems or metric.name == kind.metric or bool(names & set(metric.problems))


def list_fitting(problem: str) -> list[str]:
    """Return the names of the metrics that are for a kind of problem."""
    return [name for name in METRICS if fits_problem(METRICS[name], problem)]


def check_metric(name: str, problem: str) -> None:
    """Refuse a metric that is not for a kind of problem, and name those that are."""
    if not fits_problem(METRICS.find(name), problem):
        fitting = ", ".join(list_fitting(problem))
        title = PROBLEMS.find(problem).title
        raise UserError(f"--metric {name}: is not for {title}; there are {fitting}")


ACCURACY = Metric(
    "accuracy",
    accuracy,
    interval=share_interval,
    paired_test=share_test,
    is_share=True,
    problems=ONE_LABEL,
)
BALANCED_ACCURACY = Metric(
    "balanced_accuracy", weigh=counts.balanced_accuracy, stratified=True, problems=ONE_LABEL
)
MACRO_F1 = Metric(
    "macro_f1",
    weigh=counts.macro_f1,
    stratified=True,
    undefined=0.0,
    problems=ANY_LABELS,
    title="macro F1",
)
WEIGHTED_F1 = Metric(
    "weighted_f1", weigh=counts.weighted_f1, undefined=0.0, problems=ANY_LABELS, title="weighted F1"
)
F1 = LabelMetric("f1", counts.f1_of_class, of="F1", undefined=0.0, problems=ANY_LABELS)
MATTHEWS = Metric(
    "matthews",
    weigh=counts.matthews,
    stratified=True,
    undefined=0.0,
    problems=ONE_LABEL,
    title="Matthews correlation",
)
QUADRATIC_KAPPA = Metric(
    "quadratic_kappa",
    weigh=counts.quadratic_kappa,
    undefined=0.0,
    problems=ORDERED,
    title="quadratic-weighted kappa",
)

AUROC = Metric(
    "auroc",
    weigh=probabilities.auroc,
    comparable=probabilities.rank_columns,
    reads="probabilities",
    stratified=True,
    problems=ANY_LABELS,
    title="AUROC",
)
AVERAGE_PRECISION = Metric(
    "average_precision",
    weigh=probabilities.average_precision,
    comparable=probabilities.rank_columns,
    reads="probabilities",
    stratified=True,
    problems=ANY_LABELS,
)
AVERAGE_PRECISION_OF = LabelMetric(
    "average_precision",
    probabilities.average_precision_of_class,
    of="average precision",
    comparable=probabilities.rank_columns,
    reads="probabilities",
    problems=ANY_LABELS,
)
LOG_LOSS = Metric(
    "log_loss",
    weigh=probabilities.log_loss,
    reads="probabilities",
    higher_is_better=False,
    problems=ANY_LABELS,
)
BRIER = Metric(
    "brier",
    weigh=probabilities.brier,
    reads="probabilities",
    higher_is_better=False,
    problems=ANY_LABELS,
    title="Brier score",
)

MICRO_F1 = Metric("micro_f1", weigh=counts.micro_f1, undefined=0.0, problems=SEVERAL, title="micro F1")
SUBSET_ACCURACY = Metric(
    "subset_accuracy",
    weigh=several_labels.subset_accuracy,
    interval=share_interval,
    paired_test=share_test,
    is_share=True,
    problems=SEVERAL,
)
HAMMING_LOSS = Metric(
    "hamming_loss",
    weigh=several_labels.hamming_loss,
    higher_is_better=False,
    problems=SEVERAL,
    title="Hamming loss",
)
JACCARD = Metric("jaccard", weigh=several_labels.jaccard, problems=SEVERAL, title="Jaccard score")
LABEL_RANKING_AVERAGE_PRECISION = Metric(
    "label_ranking_average_precision",
    weigh=several_labels.label_ranking_average_precision,
    reads="probabilities",
    problems=SEVERAL,
)

PEARSON = Metric(
    "pearson",
    weigh=numbers.pearson,
    undefined=0.0,
    comparable=numbers.standardize,
    problems=NUMBER,
    title="Pearson correlation",
)
SPEARMAN = Metric(
    "spearman",
    weigh=numbers.spearman,
    undefined=0.0,
    comparable=probabilities.rank_columns,
    problems=NUMBER,
    title="Spearman correlation",
)
MAE = Metric(
    "mae",
    weigh=numbers.mae,
    higher_is_better=False,
    problems=(*NUMBER, *ORDERED),
    title="mean absolute error",
)
RMSE = Metric("rmse", weigh=numbers.rmse, higher_is_better=False, problems=(*NUMBER, *ORDERED), title="RMSE")
R2 = Metric("r2", weigh=numbers.r2, problems=NUMBER, title="R2")

EXACT_MATCH = Metric(
    "exact_match",
    exact_match,
    interval=share_interval,
    paired_test=share_test,
    is_share=True,
    problems=("text",),
)
PERPLEXITY = Metric(
    "perplexity",
    text_perplexity,
    higher_is_better=False,
    interval=text_perplexity_interval,
    reads="losses",
    unit="tokens",
    problems=("next_token",),
)
METRICS: Registry[Metric] = MetricRegistry(
    "metric",
    {
        metric.name: f"{__name__}:{name}"
        for name, metric in list(globals().items())
        if isinstance(metric, Metric)
    },
)
