import collections
import re


def get_vocab(text):
    vocab = collections.defaultdict(int)
    for word in text.strip().split():
        vocab[" ".join(list(word)) + " </w>"] += 1
    return vocab


def get_stats(vocab):
    pairs = collections.defaultdict(int)
    for word, freq in vocab.items():
        symbols = word.split()
        for i in range(len(symbols) - 1):
            pairs[symbols[i], symbols[i + 1]] += freq
    return pairs


def merge_vocab(pair, v_in):
    p = re.compile(r"(?<!\S)" + re.escape(" ".join(pair)) + r"(?!\S)")
    return {p.sub("".join(pair), word): n for word, n in v_in.items()}


def learn_bpe(vocab, num_merges):
    """The paper's own lines, from counts of spaced words."""
    merges = []
    for _ in range(num_merges):
        pairs = get_stats(vocab)
        if not pairs:
            break
        best = max(pairs, key=lambda p: (pairs[p], p))
        vocab = merge_vocab(best, vocab)
        merges.append(best)
    return merges


def tokenize(text, merges):
    out = []
    for word in text.split():
        spaced = " ".join(word) + " </w>"
        for pair in merges:
            spaced = next(iter(merge_vocab(pair, {spaced: 1})))
        out += spaced.split()
    return out


def detokenize(tokens):
    return "".join(tokens).replace("</w>", " ")
