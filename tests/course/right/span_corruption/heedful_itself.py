import numpy as np

from heedful.data.corruption import hide_single_span


class CharCorruptionDataset:
    """The package's own span corruption."""

    def __init__(self, data, block_size):
        self.itos = ["\u25a1", "\u2047", *sorted(set(data))]
        stoi = {c: i for i, c in enumerate(self.itos)}
        self.documents, self.block = (
            [np.array([stoi[c] for c in line]) for line in data.split("\n")],
            block_size,
        )

    def __getitem__(self, i):
        generator = np.random.default_rng(np.random.randint(2**31))
        x, y = hide_single_span(
            [self.documents[i]], block=self.block, mask_id=1, pad_id=0, generator=generator
        )
        return x[0].tolist(), np.where(y[0] < 0, 0, y[0]).tolist()
