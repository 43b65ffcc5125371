"""Masked language modeling: which tokens are hidden, by what, and which labels remain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from heedful.contracts.asking import collect
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.verdicts import RefutedError

PAD, UNKNOWN, CLS, SEP, MASK = range(5)
"""Ids of the special tokens in every input of this suite."""
FIRST_WORD, VOCABULARY = 5, 105
RATE = 0.15
ROWS, WIDTH = 300, 64
"""About 2,500 tokens are chosen, so that shares are known to about 0.01."""
BOUND = 0.03


def draw_tokens(rows: int, width: int, seed: int = 0) -> Tensor:
    """Return rows of [CLS] words [SEP] [PAD] ...; half of them are padded."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(FIRST_WORD, VOCABULARY, (rows, width), generator=generator)
    tokens[:, 0], tokens[:, -1] = CLS, SEP
    for row in range(0, rows, 2):
        end = max(3, width - 1 - (row * 7) % (width // 2))
        tokens[row, end], tokens[row, end + 1 :] = SEP, PAD
    return tokens


@dataclass(frozen=True)
class Masking:
    """What came back for some tokens, and what can be counted in it."""

    tokens: Tensor
    inputs: Tensor
    labels: Tensor

    @property
    def chosen(self) -> Tensor:
        """Where a token is to be predicted: the label is not negative."""
        return self.labels >= 0

    @property
    def special(self) -> Tensor:
        return self.tokens < FIRST_WORD

    def share(self, what: Tensor, of: Tensor) -> float:
        return float(what[of].double().mean()) if bool(of.any()) else 0.0


def run(subject: Subject, tokens: Tensor, seed: int = 0) -> Masking:
    """Mask tokens; both answers must have the shape of the tokens."""
    answer = subject.call(
        "mask",
        {"tokens": tokens, "mask_id": MASK, "pad_id": PAD, "special_ids": list(range(FIRST_WORD)),
         "vocab_size": VOCABULARY, "rate": RATE, "seed": seed},
    )  # fmt: skip
    for name in ("inputs", "labels"):
        value = answer.get(name)
        if not isinstance(value, Tensor) or value.shape != tokens.shape:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise RefutedError(f"the {name} have shape {shape} instead of {tuple(tokens.shape)}",
                               inputs={"shape of the tokens": list(tokens.shape)}, got=shape,
                               expected=list(tokens.shape))  # fmt: skip
    return Masking(tokens, answer["inputs"].long(), answer["labels"].long())


def run_many(subject: Subject, seed: int = 0) -> Masking:
    return run(subject, draw_tokens(ROWS, WIDTH), seed)


def refute(masking: Masking, wrong: Tensor, message: str, expected: str) -> RefutedError:
    """Return an error with a short piece of the first row that is wrong."""
    row = int(wrong.any(1).nonzero()[0, 0])
    at = int(wrong[row].nonzero()[0, 0])
    part = slice(max(0, at - 2), at + 3)
    pieces = {name: getattr(masking, name)[row, part] for name in ("tokens", "inputs", "labels")}
    drawn = draw_heat_maps({"tokens, inputs, labels": torch.stack(list(pieces.values()))}, "", "position")
    return RefutedError(
        message, inputs={"tokens": pieces["tokens"], "special ids": "0 PAD, 1 UNK, 2 CLS, 3 SEP, 4 MASK"},
        got={"inputs": pieces["inputs"], "labels": pieces["labels"]}, expected=expected, heat_map=drawn,
    )  # fmt: skip


def check_shape(subject: Subject) -> str:
    """Check both answers for three sizes."""
    for sizes in ((1, 8), (3, 8), (8, 16)):
        run(subject, draw_tokens(*sizes))
    return "inputs and labels have the shape of the tokens"


def check_rate(subject: Subject) -> str:
    """Count how many ordinary tokens are to be predicted."""
    masking = run_many(subject)
    share = masking.share(masking.chosen, ~masking.special)
    if abs(share - RATE) > BOUND:
        wrong = masking.chosen if share > RATE else ~masking.chosen
        raise refute(masking, wrong & ~masking.special, f"{share:.1%} of the tokens have a label instead of {RATE:.0%}",
                     "a label at 15 % of the positions, -100 at all others")  # fmt: skip
    return f"{share:.1%} of the tokens are to be predicted (15 % were asked for)"


def check_labels(subject: Subject) -> str:
    """Labels must be the tokens before masking."""
    masking = run_many(subject)
    if not bool(masking.chosen.any()):
        raise refute(
            masking, ~masking.chosen, "no position has a label", "the token at 15 % of the positions"
        )
    wrong = masking.chosen & (masking.labels != masking.tokens)
    if bool(wrong.any()):
        raise refute(masking, wrong, f"{masking.share(wrong, masking.chosen):.0%} of the labels are not the original token",
                     "the original token as the label of each chosen position")  # fmt: skip
    return "each label is the token that was there"


def check_special(subject: Subject) -> str:
    """Padding, [CLS] and [SEP] must never be chosen or replaced."""
    masking = run_many(subject)
    wrong = masking.special & (masking.chosen | (masking.inputs != masking.tokens))
    if bool(wrong.any()):
        names = {PAD: "padding", CLS: "[CLS]", SEP: "[SEP]"}
        found = " and ".join(names[i] for i in sorted({int(t) for t in masking.tokens[wrong]}))
        raise refute(
            masking, wrong, f"{found} is chosen for prediction", "special tokens stay, with label -100"
        )
    return "special tokens and padding are never chosen"


def check_unchosen(subject: Subject) -> str:
    """What is not predicted must be visible as it is."""
    masking = run_many(subject)
    wrong = ~masking.chosen & (masking.inputs != masking.tokens)
    if bool(wrong.any()):
        raise refute(
            masking,
            wrong,
            f"{int(wrong.sum())} tokens without a label are changed",
            "tokens without a label stay",
        )
    return "tokens without a label stay as they are"


def shares_of_fate(masking: Masking) -> dict[str, float]:
    """Return which shares of the chosen ordinary tokens are masked, kept and replaced."""
    chosen = (masking.inputs != masking.tokens) & ~masking.special | masking.chosen & ~masking.special
    masked = masking.share(masking.inputs == MASK, chosen)
    kept = masking.share(masking.inputs == masking.tokens, chosen)
    return {"[MASK]": masked, "random": 1 - masked - kept, "kept": kept}


def check_fate(subject: Subject) -> str:
    """Of the chosen tokens 80 % become [MASK], 10 % a random token, and 10 % stay."""
    masking = run_many(subject)
    if not bool(masking.chosen.any()):
        raise NotApplicable("no position is chosen")
    shares = shares_of_fate(masking)
    for name, expected in (("[MASK]", 0.8), ("random", 0.1), ("kept", 0.1)):
        if abs(shares[name] - expected) > BOUND:
            told = ", ".join(f"{share:.0%} {key}" for key, share in shares.items())
            raise refute(
                masking, masking.chosen, f"of the chosen tokens {told}", "80 % [MASK], 10 % random, 10 % kept"
            )
    return ", ".join(f"{share:.1%} {name}" for name, share in shares.items())


def check_random_tokens(subject: Subject) -> str:
    """The random tokens must come from the whole vocabulary."""
    masking = run_many(subject)
    random = masking.chosen & (masking.inputs != masking.tokens) & (masking.inputs != MASK)
    drawn = masking.inputs[random]
    if not len(drawn):
        raise NotApplicable("there are no random tokens")
    outside = random & ((masking.inputs < 0) | (masking.inputs >= VOCABULARY))
    if bool(outside.any()):
        raise refute(
            masking, outside, "a random token is not in the vocabulary", f"ids from 0 to {VOCABULARY - 1}"
        )
    number = len(set(drawn.tolist()))
    if number < min(30, len(drawn) // 2):
        raise refute(
            masking,
            random,
            f"{len(drawn)} random tokens are only {number} different ones",
            "tokens of the whole vocabulary",
        )
    return f"{number} different random tokens"


def check_fresh(subject: Subject) -> str:
    """Two draws must differ, and so must the rows of one."""
    first, second = (run_many(subject, seed).chosen for seed in (0, 1))
    if bool((first == second).all()):
        raise RefutedError("the same positions are chosen every time", inputs={"seeds": [0, 1]},
                           got="the same positions", expected="other positions at every call")  # fmt: skip
    rows = first[1::2, 1:-1]
    if bool((rows == rows[:1]).all()):
        raise RefutedError("the same positions are chosen in every row", inputs={"rows": len(rows)},
                           got=rows[0].nonzero().flatten(), expected="other positions in every row")  # fmt: skip
    return "every call and every row chooses other positions"


def fingerprint(subject: Subject) -> Fingerprint:
    """Shares of what happens to tokens."""
    taken = collect({"masking": lambda: run_many(subject), "again": lambda: run_many(subject, 1)})
    if "masking" not in taken:
        return {}
    masking: Masking = taken["masking"]
    chosen = masking.chosen & ~masking.special
    found: dict[str, Any] = {
        "chosen": masking.share(masking.chosen, ~masking.special),
        "special chosen": masking.share(masking.chosen, (masking.tokens == CLS) | (masking.tokens == SEP)),
        "padding chosen": masking.share(masking.chosen, masking.tokens == PAD),
        "special replaced": masking.share(masking.inputs != masking.tokens, masking.special),
        "original labels": masking.share(masking.labels == masking.tokens, chosen),
        "labels are inputs": masking.share(masking.labels == masking.inputs, chosen),
        "changed without label": masking.share(
            masking.inputs != masking.tokens, ~masking.chosen & ~masking.special
        ),
        "same rows": float(bool((chosen[1::2] == chosen[1:2]).all())),
        **shares_of_fate(masking),
    }
    if "again" in taken:
        found["same calls"] = float(torch.equal(masking.inputs, taken["again"].inputs))
    random = chosen & (masking.inputs != masking.tokens) & (masking.inputs != MASK)
    found["different random"] = min(1.0, len(set(masking.inputs[random].tolist())) / 30)
    return found


SUITE = Suite(
    "masked",
    "masking for masked language modeling: 15 % of the tokens, of which 80 % [MASK], 10 % random, 10 % kept",
    {
        "mask": "tokens [b, t], mask_id, pad_id, special_ids (padding included), vocab_size and rate; "
        "returns inputs and labels [b, t], labels negative where nothing is predicted",
    },
    (
        Claim("masked shapes", "Inputs and labels have the shape of the tokens.", check_shape, "mask"),
        Claim("rate", "15 % of the ordinary tokens have a label; all other labels are -100.", check_rate, "mask",
              "labels[~chosen] = -100"),
        Claim("labels", "The label of a chosen position is the token that was there.", check_labels, "mask",
              "copy the tokens before you change them"),
        Claim("special tokens", "Padding and special tokens are never chosen.", check_special, "mask",
              "set their probability to 0 before drawing"),
        Claim("unchosen tokens", "Tokens without a label are visible as they are.", check_unchosen, "mask"),
        Claim("fate", "Of the chosen tokens 80 % become [MASK], 10 % a random token, 10 % stay.", check_fate, "mask",
              "half of the 20 % that are not [MASK] are random: a share of 0.5 of the rest"),
        Claim("random tokens", "Random tokens come from the whole vocabulary.", check_random_tokens, "mask"),
        Claim("fresh draws", "Every call and every row chooses other positions.", check_fresh, "mask",
              "no seed inside the function, and one draw per position"),
    ),
    fingerprint,
    dict.fromkeys(("chosen", "special chosen", "padding chosen", "special replaced", "original labels",
                   "labels are inputs", "changed without label", "[MASK]", "random", "kept"), 0.03),
    remembers=True,
)  # fmt: skip
