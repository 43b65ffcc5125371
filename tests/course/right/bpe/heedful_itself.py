from heedful.text import train


class BPETokenizer:
    """The package's own tokenizer: bytes, and words with their space."""

    def train(self, texts, num_merges):
        empty = train(texts, kind="bpe", vocab_size=361, min_count=1)
        size = empty.vocab_size + num_merges - len(self.read(empty)[1])
        self.tokenizer = train(texts, kind="bpe", vocab_size=size, min_count=1)
        self.vocab, self.merges = self.read(self.tokenizer)

    @staticmethod
    def read(tokenizer):
        model = tokenizer.description["model"]
        merges = [tuple(m) if isinstance(m, list) else tuple(m.split(" ")) for m in model["merges"]]
        return model["vocab"], merges

    def encode(self, text):
        return [i for i in self.tokenizer.encode(text).ids if i not in self.tokenizer.special_ids]

    def decode(self, ids):
        return self.tokenizer.decode(ids)
