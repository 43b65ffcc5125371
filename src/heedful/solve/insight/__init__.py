"""What the data itself says: near-duplicates, words that give a label away, unfamiliar texts, labels."""

from heedful.solve.insight.data import examine_data
from heedful.solve.insight.findings import Insight
from heedful.solve.insight.labels import describe_curve, examine_labels, list_rows_to_label

__all__ = ["Insight", "describe_curve", "examine_data", "examine_labels", "list_rows_to_label"]
