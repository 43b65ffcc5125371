import re
from collections import Counter


class BPETokenizer:
    """GPT-2: words keep the space before them, bytes, pairs of bytes objects, a list of merges."""

    pattern = re.compile(r" ?[^\s]+|\s+")

    def __init__(self, vocab_size=300):
        self.vocab_size = vocab_size

    def train(self, texts):
        words = Counter(tuple(bytes([b]) for b in w.encode()) for t in texts for w in self.pattern.findall(t))
        self.merges = []
        while len(self.merges) + 256 < self.vocab_size:
            pairs = Counter()
            for w, n in words.items():
                for p in zip(w, w[1:]):
                    pairs[p] += n
            if not pairs:
                break
            best = min(pairs, key=lambda p: (-pairs[p], p))
            self.merges.append(best)
            words = Counter({self.join(w, best): n for w, n in words.items()})
        self.ranks = {p: i for i, p in enumerate(self.merges)}
        self.id_to_token = [bytes([i]) for i in range(256)] + [a + b for a, b in self.merges]
        self.token_to_id = {t: i for i, t in reversed(list(enumerate(self.id_to_token)))}

    def join(self, word, pair):
        out = []
        for s in word:
            if out and out[-1] is not None and (out[-1], s) == pair:
                out[-1:] = [pair[0] + pair[1], None]
            else:
                out.append(s)
        return tuple(s for s in out if s is not None)

    def encode(self, text):
        ids = []
        for w in self.pattern.findall(text):
            symbols = tuple(bytes([b]) for b in w.encode())
            while len(symbols) > 1:
                best = min(zip(symbols, symbols[1:]), key=lambda p: self.ranks.get(p, 10**9))
                if best not in self.ranks:
                    break
                symbols = self.join(symbols, best)
            ids += [self.token_to_id[s] for s in symbols]
        return ids

    def decode(self, ids):
        return b"".join(self.id_to_token[i] for i in ids).decode("utf-8", "replace")
