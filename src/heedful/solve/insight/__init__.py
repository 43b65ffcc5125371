"""What the data itself says: near-duplicates, words that give a label away, unfamiliar texts, more labels."""

from heedful.solve.insight.data import Insight, examine_data
from heedful.solve.insight.labels import describe_curve, list_rows_to_label

__all__ = ["Insight", "describe_curve", "examine_data", "list_rows_to_label"]
