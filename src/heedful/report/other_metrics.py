"""The metrics of a run beside the one that selects: a table, and bars of the F1 of each of several labels."""

from __future__ import annotations

from typing import Any

from heedful.report.charts import Chart, bars
from heedful.report.facts import RunFacts

PER_LABEL = "f1:"


def draw_label_scores(run: RunFacts) -> Chart | None:
    """Draw the F1 of each of several labels, with intervals; None for other kinds of answers."""
    result = run.detail_result
    rows: list[dict[str, Any]] = []
    for name, metric in ((result.other_metrics or {}) if result else {}).items():
        if name.startswith(PER_LABEL):
            row = {"label": name.removeprefix(PER_LABEL), "value": metric.value}
            low, high = metric.ci95 or (None, None)
            rows.append(row if low is None or high is None else {**row, "low": low, "high": high})
    if not rows:
        return None
    return bars(rows, title=f"F1 of each label on {run.detail_split}", y_title="F1", y_domain=(0, 1))


def list_other_metrics(run: RunFacts) -> list[list[str]]:
    """Return the rows of a table: metric, value and interval on the split that is shown in detail."""
    result, rows = run.detail_result, []
    for name, metric in ((result.other_metrics or {}) if result else {}).items():
        low, high = metric.ci95 or (None, None)
        interval = "" if low is None or high is None else f"{low:.3f} to {high:.3f}"
        value = "" if metric.value is None else f"{metric.value:.3f}"
        rows.append([metric.title or name.replace("_", " "), value, interval])
    return rows
