"""Mistakes in byte-pair encoding."""

from __future__ import annotations

from heedful.course.bugs import Bug

WORDS = """
from collections import Counter

def get_pairs(words):
    pairs = Counter()
    for symbols, count in words.items():
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += count
    return pairs

def merge_word(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return tuple(out)

def train_bpe(text, num_merges):
    words = Counter(tuple(word) + ("</w>",) for word in text.split())
    merges = []
    for _ in range(num_merges):
        pairs = get_pairs(words)
        if not pairs:
            break
        best = max(pairs, key=pairs.get)
        merges.append(best)
        new = Counter()
        for symbols, count in words.items():
            new[merge_word(symbols, best)] += count
        words = new
    return merges

def encode(text, merges):
    tokens = []
    for word in text.split():
        symbols = tuple(word) + ("</w>",)
        for pair in merges:
            symbols = merge_word(symbols, pair)
        tokens.extend(symbols)
    return tokens

def decode(tokens):
    return "".join(tokens).replace("</w>", " ").strip()
"""
BYTES = """
def get_stats(ids):
    counts = {}
    for pair in zip(ids, ids[1:]):
        counts[pair] = counts.get(pair, 0) + 1
    return counts

def merge(ids, pair, idx):
    out, i = [], 0
    while i < len(ids):
        if i < len(ids) - 1 and ids[i] == pair[0] and ids[i + 1] == pair[1]:
            out.append(idx)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out

class BasicTokenizer:
    def train(self, text, vocab_size):
        ids = list(text.encode("utf-8"))
        self.merges, self.vocab = {}, {i: bytes([i]) for i in range(256)}
        for i in range(vocab_size - 256):
            stats = get_stats(ids)
            if not stats:
                break
            pair = max(stats, key=stats.get)
            ids = merge(ids, pair, 256 + i)
            self.merges[pair] = 256 + i
            self.vocab[256 + i] = self.vocab[pair[0]] + self.vocab[pair[1]]

    def encode(self, text):
        ids = list(text.encode("utf-8"))
        while len(ids) >= 2:
            stats = get_stats(ids)
            pair = min(stats, key=lambda p: self.merges.get(p, float("inf")))
            if pair not in self.merges:
                break
            ids = merge(ids, pair, self.merges[pair])
        return ids

    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")
"""
APPLY = "        for pair in merges:\n            symbols = merge_word(symbols, pair)\n"
LONGEST = ('        pieces = {a + b for a, b in merges} | set(symbols)\n        rest, symbols = word + "</w>", []\n        while rest:\n'
           '            piece = max((p for p in pieces if rest.startswith(p)), key=len)\n            symbols.append(piece)\n'
           "            rest = rest[len(piece):]\n")  # fmt: skip
COUNT = (
    "Pairs are counted once per different word, however often the word occurs.",
    "How often does a word that occurs 100 times count?",
)
BEST = "best = max(pairs, key=pairs.get)"

BUGS = (
    Bug("least frequent pair merged", "The rarest pair is merged instead of the most frequent one.", "Which pair shortens the text most?",
        WORDS, ((BEST, "best = min(pairs, key=pairs.get)"),)),
    Bug("word counts ignored", *COUNT, WORDS, (("pairs[pair] += count", "pairs[pair] += 1"),)),
    Bug("counts never updated", "The pairs are counted once, before the first merge.", "Which pairs are there after a merge?", WORDS,
        (("        pairs = get_pairs(words)\n", "        pairs = pairs if merges else get_pairs(words)\n        pairs = {p: c for p, c in pairs.items() if p not in merges}\n"),)),
    Bug("first pair instead of the most frequent", "The largest pair by its letters is merged, not by its count.",
        "What does max compare without key?", WORDS, ((BEST, "best = max(pairs)"),)),
    Bug("longest pair merged", "The pair with the longest text is merged, not the most frequent one.", "What does max compare?", WORDS,
        ((BEST, "best = max(pairs, key=lambda p: len(p[0] + p[1]))"),)),
    Bug("one merge too few", "One merge less than asked for is learned.", "How often does your loop run?", WORDS,
        (("range(num_merges)", "range(num_merges - 1)"),)),
    Bug("merged once per word", "Of several places in a word only the first is merged.", "What happens after the first match?", WORDS,
        (("            out.append(symbols[i] + symbols[i + 1])\n            i += 2\n",
          "            out.append(symbols[i] + symbols[i + 1])\n            out.extend(symbols[i + 2:])\n            break\n"),)),
    Bug("longest piece first", "The longest known piece is taken from the left, whatever was learned first.",
        "In which order do the merges have to be applied?", WORDS, ((APPLY, LONGEST),)),
    Bug("last merge first", "The merges are applied from the last to the first.", "Which merge can use what another one made?", WORDS,
        (("for pair in merges:", "for pair in reversed(merges):"),)),
    Bug("one merge per word", "After one merge the word is left as it is.", "How many merges can a word need?", WORDS,
        ((APPLY, "        for pair in merges:\n            if merge_word(symbols, pair) != symbols:\n                symbols = merge_word(symbols, pair)\n                break\n"),)),
    Bug("spaces lost", "Decoding puts the pieces together without the spaces between words.", "What does </w> stand for?", WORDS,
        (('.replace("</w>", " ")', '.replace("</w>", "")'),)),
    Bug("spaces between pieces", "Decoding puts a space between all pieces.", "Where was a space in the text?", WORDS,
        (('"".join(tokens)', '" ".join(tokens)'),)),
    Bug("text changed", "Encoding changes letters, so that decoding cannot give the text back.", "What happens to the first letter of a word?", WORDS,
        (("for word in text.split():\n        symbols = tuple(word)", "for word in text.split():\n        symbols = tuple(word[:1].upper() + word[1:])"),)),
    Bug("bytes decoded one by one", "Each piece is decoded alone, but a character may be in two pieces.",
        "Which bytes has é, and can a piece end between them?", BYTES,
        (('b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")', '"".join(self.vocab[i].decode("utf-8", errors="replace") for i in ids)'),)),
    Bug("code points instead of bytes", "Characters are taken as numbers below 256, and all others are lost.",
        "Which numbers has ord, and which has encode('utf-8')?", BYTES,
        (("    def encode(self, text):\n        ids = list(text.encode(\"utf-8\"))", "    def encode(self, text):\n        ids = [ord(c) % 256 for c in text]"),)),
    Bug("last merge first", "Of the pairs in the text the one that was learned last is merged.", "Which merge can use what another one made?", BYTES,
        (("pair = min(stats, key=lambda p: self.merges.get(p, float(\"inf\")))", "pair = max(stats, key=lambda p: self.merges.get(p, -1))"),)),
    Bug("counts never updated", "The pairs are counted once, before the first merge.", "Which pairs are there after a merge?", BYTES,
        (("            stats = get_stats(ids)\n            if not stats:", "            stats = get_stats(list(text.encode(\"utf-8\")))\n            stats = {p: c for p, c in stats.items() if p not in self.merges}\n            if not stats:"),)),
    Bug("least frequent pair merged", "The rarest pair is merged instead of the most frequent one.", "Which pair shortens the text most?", BYTES,
        (("pair = max(stats, key=stats.get)", "pair = min(stats, key=stats.get)"),)),
    Bug("every second byte", "After a merge one symbol too many is skipped.", "How far does i move after a match, and how far without?", BYTES,
        (("            out.append(idx)\n            i += 2\n", "            out.append(idx)\n            i += 3\n"),)),
)  # fmt: skip
