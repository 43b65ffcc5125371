import random


def corrupt(document, block_size):
    """A function that returns the whole string; the document may begin anywhere."""
    length = random.randint(4, min(len(document), int(block_size * 7 / 8)))
    first = random.randint(0, len(document) - length)
    document = document[first : first + length]
    span = max(1, int(random.uniform(0, 0.5) * length))
    start = random.randint(0, length - span)
    row = document[:start] + "\u2047" + document[start + span :] + "\u2047" + document[start : start + span]
    return row + "\u25a1" * (block_size - len(row))
