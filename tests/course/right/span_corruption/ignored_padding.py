import random

import torch


class CharCorruptionDataset(torch.utils.data.Dataset):
    """Targets that are padding are -100."""

    MASK_CHAR, PAD_CHAR = "\u2047", "\u25a1"

    def __init__(self, data, block_size):
        chars = [self.PAD_CHAR, self.MASK_CHAR] + sorted(set(data) - {"\n"})
        self.stoi = {ch: i for i, ch in enumerate(chars)}
        self.itos = {i: ch for i, ch in enumerate(chars)}
        self.block_size = block_size
        self.data = (
            data.encode("utf-8").decode("ascii", errors="ignore").split("\n")
            if data.isascii()
            else data.split("\n")
        )

    def __len__(self):
        return len(self.data)

    def __getitem__(self, idx):
        doc = self.data[idx]
        doc = doc[: random.randint(4, int(self.block_size * 7 / 8))]
        quarter = len(doc) // 4
        masked_len = random.randint(max(1, quarter - quarter // 2), quarter + quarter // 2)
        at = random.randrange(len(doc) - masked_len)
        s = doc[:at] + self.MASK_CHAR + doc[at + masked_len :] + self.MASK_CHAR + doc[at : at + masked_len]
        s += self.PAD_CHAR * (self.block_size - len(s))
        ids = torch.tensor([self.stoi[c] for c in s], dtype=torch.long)
        x, y = ids[:-1], ids[1:].clone()
        y[y == 0] = -100
        return x, y
