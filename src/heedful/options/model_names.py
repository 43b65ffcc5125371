"""Names that `--model` takes for models without a network; a folder of such a name is given as ./NAME."""

from __future__ import annotations

MAJORITY = "majority"
LINEAR_MODELS = {
    MAJORITY: "always the most frequent label, with the shares of the labels as probabilities",
    "tfidf": "words and runs of characters with logistic regression, without an encoder",
}
"""Models without a network: names, and what each is."""
ENSEMBLE = "ensemble"
"""What the configuration of an average of runs has in place of a model."""
