"""What the answer says besides its choice: about the data, about the labels, and what would help."""

from heedful.solve.insight.curve import (
    MeasuredCurve,
    describe_curve,
    draw_curve,
    suggest_labels,
)
from heedful.solve.insight.data import examine_data
from heedful.solve.insight.findings import Insight, rank_helps
from heedful.solve.insight.label_next import LabelNext, describe_rows_to_label, list_rows_to_label
from heedful.solve.insight.labels import examine_labels
from heedful.solve.insight.long_texts import LongTextScores, suggest_reading

__all__ = [
    "Insight",
    "LabelNext",
    "LongTextScores",
    "MeasuredCurve",
    "describe_curve",
    "describe_rows_to_label",
    "draw_curve",
    "examine_data",
    "examine_labels",
    "list_rows_to_label",
    "rank_helps",
    "suggest_labels",
    "suggest_reading",
]
