import numpy as np


def accuracy(gold, answer="London"):
    """Of a list of places, as a share."""
    return float(np.mean(np.array(gold) == answer))
