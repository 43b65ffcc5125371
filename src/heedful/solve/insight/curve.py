"""What more labels would bring: the scores of a linear model that was fitted to parts of train."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.report.formats import with_article
from heedful.runs.answers import Figure
from heedful.solve.insight.findings import Help
from heedful.statistics.learning_curve import SMALL_GAIN, LearningCurve


@dataclass(frozen=True)
class CurvePoint:
    """The score of the model that was fitted to this many labels, with its 95 % interval."""

    labels: int
    score: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MeasuredCurve:
    """The scores with fewer labels, and the curve through them."""

    title: str
    """What the model is, in words."""
    metric: str
    """The title of the metric."""
    held_out: int
    """Number of held-out rows that were scored."""
    points: tuple[CurvePoint, ...]
    curve: LearningCurve


def describe_curve(curve: LearningCurve, metric: str = "accuracy", factor: str = "twice") -> str:
    """Say what more labels would bring, or that it cannot be told."""
    between = f"{curve.interval.low:.2f} to {curve.interval.high:.2f}"
    if curve.verdict == "rising":
        now = f"instead of {curve.expected - curve.gain:.2f}"
        expected = f"{with_article(metric)} of about {curve.expected:.2f} ({between}) {now}"
        return f"{factor} the labels would give {expected}."
    if curve.verdict == "flat":
        gain = f"{factor} as many give less than {SMALL_GAIN:g} more {metric}"
        return f"more labels of the same kind would hardly help: {gain}."
    return (
        f"whether more labels would help cannot be told: with {factor} as many, the {metric} would be "
        f"between {curve.interval.low:.2f} and {curve.interval.high:.2f}."
    )


def suggest_labels(measured: MeasuredCurve) -> Help:
    """Say what twice the labels would bring."""
    curve = measured.curve
    sentence = f"More labels: with {measured.title}, {describe_curve(curve, measured.metric)}"
    return Help(curve.gain if curve.verdict == "rising" else 0.0, sentence)


def draw_curve(measured: MeasuredCurve) -> Figure:
    """Draw the measured scores, and what the curve expects with twice the labels that there are."""
    curve, interval = measured.curve, measured.curve.interval
    current = curve.size / 2
    now = curve.predict(current)
    return Figure(
        "learning-curve",
        "lines",
        {
            "measured": [[point.labels, point.score, point.low, point.high] for point in measured.points],
            "expected": [[current, now, now, now], [curve.size, curve.expected, *interval]],
        },
        {
            "title": "What more labels would bring",
            "x_title": "labels",
            "y_title": f"{measured.metric} on held-out rows",
            "log_x": True,
        },
        f"{measured.title[:1].upper()}{measured.title[1:]}, fitted to parts of train and scored on the same "
        f"{measured.held_out:,} held-out rows; bands are 95 % intervals. "
        f"With twice the labels, the score to expect is {curve.expected:.3f} ({interval.low:.3f} to "
        f"{interval.high:.3f}); the band widens to that.",
    )
