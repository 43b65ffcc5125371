class Tokenizer:
    """Characters of the corpus are the first ids; a vocabulary size; words that end in </w>."""

    def train(self, corpus: list[str], vocab_size: int):
        words = [[*w[:-1], w[-1] + "</w>"] for text in corpus for w in text.split()]
        self.vocab = sorted({c for w in words for c in w} | {c for t in corpus for c in t if c != " "})
        self.vocab += sorted({c + "</w>" for c in self.vocab if "</w>" not in c} - set(self.vocab))
        self.merge_rules = []
        size = len(self.vocab)
        while len(self.merge_rules) < 8 and len(self.vocab) < max(vocab_size, size + 1):
            counts = {}
            for w in words:
                for pair in zip(w[:-1], w[1:]):
                    counts[pair] = counts.get(pair, 0) + 1
            if not counts:
                break
            top = max(counts.values())
            pair = next(p for p, c in counts.items() if c == top)
            self.merge_rules.append(pair)
            self.vocab.append("".join(pair))
            words = [self.apply(w, pair) for w in words]

    @staticmethod
    def apply(word, pair):
        i = 0
        word = list(word)
        while i < len(word) - 1:
            if word[i] == pair[0] and word[i + 1] == pair[1]:
                word[i : i + 2] = [pair[0] + pair[1]]
            i += 1
        return word

    def encode(self, text):
        out = []
        for w in text.split():
            symbols = [*w[:-1], w[-1] + "</w>"]
            for pair in self.merge_rules:
                symbols = self.apply(symbols, pair)
            out.append(symbols)
        return [s for w in out for s in w]

    def decode(self, tokens):
        return "".join(t.replace("</w>", " ") for t in tokens).rstrip()
