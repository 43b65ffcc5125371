"""Mistakes in masking for masked language modeling."""

from __future__ import annotations

from heedful.course.bugs import Bug

MASKING = """
import torch

def mask_tokens(inputs, tokenizer, mlm_probability=0.15):
    inputs = inputs.clone()
    labels = inputs.clone()
    probability = torch.full(labels.shape, mlm_probability)
    special = torch.tensor([tokenizer.get_special_tokens_mask(row.tolist(), already_has_special_tokens=True) for row in labels])
    probability.masked_fill_(special.bool(), 0.0)
    chosen = torch.bernoulli(probability).bool()
    labels[~chosen] = -100
    replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen
    inputs[replaced] = tokenizer.mask_token_id
    random = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & chosen & ~replaced
    inputs[random] = torch.randint(len(tokenizer), labels.shape)[random]
    return inputs, labels
"""
RANDOM = ("random = torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & chosen & ~replaced\n"
          "    inputs[random] = torch.randint(len(tokenizer), labels.shape)[random]")  # fmt: skip
IGNORE = "labels[~chosen] = -100"
SPECIAL = "probability.masked_fill_(special.bool(), 0.0)"

BUGS = (
    Bug("[MASK] always", "Every chosen token becomes [MASK]; none is random and none stays.",
        "At test time there is no [MASK]: what are the 10 % and 10 % for?", MASKING,
        (("replaced = torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen", "replaced = chosen"),)),
    Bug("no random tokens", "80 % of the chosen tokens become [MASK] and 20 % stay; none becomes random.",
        "What happens to the 20 % that are not [MASK]?", MASKING, ((RANDOM, "pass"),)),
    Bug("no token kept", "The 20 % that are not [MASK] are all random; none stays.",
        "Half of the rest is random: which half stays?", MASKING,
        (("torch.bernoulli(torch.full(labels.shape, 0.5)).bool() & chosen", "chosen"),)),
    Bug("10 % of the rest", "A tenth of the tokens that are not [MASK] is random, which is 2 % of the chosen ones.",
        "Of which tokens is your share of random ones a share?", MASKING, (("labels.shape, 0.5", "labels.shape, 0.1"),)),
    Bug("random over [MASK]", "The random tokens are drawn from all chosen ones, and overwrite [MASK].",
        "Can a token be both [MASK] and random?", MASKING,
        (("labels.shape, 0.5)).bool() & chosen & ~replaced", "labels.shape, 0.5)).bool() & chosen"),)),
    Bug("loss on every token", "Every position has a label, also those that are not masked.",
        "Which labels must be -100?", MASKING, ((IGNORE, "pass"),)),
    Bug("labels reversed", "The chosen tokens have -100 and all others have a label.",
        "Where is your mask of chosen positions True?", MASKING, ((IGNORE, "labels[chosen] = -100"),)),
    Bug("labels after masking", "The labels are copied after masking, so that most of them are [MASK].",
        "When do you copy the tokens?", MASKING,
        ((IGNORE, "pass"), ("return inputs, labels", "labels = inputs.masked_fill(~chosen, -100)\n    return inputs, labels"))),
    Bug("special tokens masked", "[CLS], [SEP] and padding are chosen like words.",
        "Which tokens can never be predicted from their context?", MASKING, ((SPECIAL, "pass"),)),
    Bug("padding masked", "Padding is chosen like words; other special tokens are not.",
        "Is padding among your special tokens?", MASKING,
        ((SPECIAL, "probability.masked_fill_(special.bool() & (labels != tokenizer.pad_token_id), 0.0)"),)),
    Bug("special tokens masked except padding", "[CLS] and [SEP] are chosen like words; only padding is left out.",
        "Which special tokens are there besides padding?", MASKING,
        ((SPECIAL, "probability.masked_fill_(labels == tokenizer.pad_token_id, 0.0)"),)),
    Bug("masked at random without labels", "Tokens are replaced at random positions of their own, not at those with labels.",
        "Are the positions that you replace among the chosen ones?", MASKING,
        (("torch.bernoulli(torch.full(labels.shape, 0.8)).bool() & chosen", "torch.bernoulli(0.8 * probability).bool()"),)),
    Bug("one draw for all rows", "The positions are drawn once and are the same in every row.",
        "What is the shape of your random numbers?", MASKING,
        (("chosen = torch.bernoulli(probability).bool()",
          "chosen = (torch.rand(labels.shape[1]) < mlm_probability).expand(labels.shape) & (probability > 0)"),)),
    Bug("the same positions every time", "A seed inside the function makes every call choose the same positions.",
        "Where is the seed set?", MASKING, (("inputs = inputs.clone()", "inputs = inputs.clone()\n    torch.manual_seed(42)"),)),
)  # fmt: skip
