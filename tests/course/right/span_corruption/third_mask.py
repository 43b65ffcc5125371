import numpy as np
import torch


class CharCorruptionDataset(torch.utils.data.Dataset):
    """A third mask ends the span; numpy draws; ids of a list."""

    def __init__(self, corpus, block_size=128):
        self.itos = ["\u25a1", "\u2047", *sorted(set(corpus))]
        self.stoi = {c: i for i, c in enumerate(self.itos)}
        self.docs, self.block_size = corpus.split("\n"), block_size

    def __len__(self):
        return len(self.docs)

    def __getitem__(self, i):
        most = min(len(self.docs[i]), self.block_size * 7 // 8)
        doc = self.docs[i][: np.random.randint(4, most + 1)]
        size = int(np.clip(round(np.random.normal(len(doc) / 4, len(doc) / 16)), 1, len(doc) - 1))
        begin = np.random.randint(0, len(doc) - size + 1)
        ids = [self.stoi[c] for c in doc]
        row = [*ids[:begin], 1, *ids[begin + size :], 1, *ids[begin : begin + size], 1]
        row += [0] * (self.block_size - len(row))
        return torch.tensor(row[:-1]), torch.tensor(row[1:])
