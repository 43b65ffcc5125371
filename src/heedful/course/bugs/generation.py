"""Mistakes in generation."""

from __future__ import annotations

from heedful.course.bugs import Bug

SAMPLE = """
import torch
from torch.nn import functional as F

@torch.no_grad()
def generate(model, idx, max_new_tokens, temperature=1.0, do_sample=False, top_k=None, top_p=None, eos_id=None):
    ended = torch.zeros(len(idx), dtype=torch.bool)
    for _ in range(max_new_tokens):
        context = idx[:, -model.block_size:]
        logits, _ = model(context)
        logits = logits[:, -1, :]
        logits = logits / temperature
        if top_k is not None:
            kth = torch.topk(logits, top_k).values[:, -1:]
            logits = logits.masked_fill(logits < kth, float("-inf"))
        if top_p is not None:
            ordered, places = torch.sort(logits, descending=True)
            probs = F.softmax(ordered, dim=-1)
            drop = probs.cumsum(-1) - probs >= top_p
            drop = torch.zeros_like(drop).scatter(1, places, drop)
            logits = logits.masked_fill(drop, float("-inf"))
        probs = F.softmax(logits, dim=-1)
        if do_sample:
            token = torch.multinomial(probs, num_samples=1)
        else:
            token = probs.argmax(dim=-1, keepdim=True)
        if eos_id is not None:
            token = token.masked_fill(ended[:, None], eos_id)
            ended |= token[:, 0] == eos_id
        idx = torch.cat([idx, token], dim=1)
        if eos_id is not None and bool(ended.all()):
            break
    return idx
"""
LAST = "logits = logits[:, -1, :]"
COLD = "        logits = logits / temperature\n"
CONTEXT = "context = idx[:, -model.block_size:]"
STOPS = "token = token.masked_fill(ended[:, None], eos_id)"
DROP = "drop = probs.cumsum(-1) - probs >= top_p"
BACK = "drop = torch.zeros_like(drop).scatter(1, places, drop)"
PROBS = "        probs = F.softmax(logits, dim=-1)\n        if do_sample:"

BUGS = (
    Bug("first position read", "The logits of the first position choose the next token, not those of the last.",
        "Which position has read the whole text?", SAMPLE, ((LAST, "logits = logits[:, 0, :]"),)),
    Bug("position before the last read", "The logits of the position before the last are used.", "Which index has the last position?", SAMPLE,
        ((LAST, "logits = logits[:, -2 if logits.size(1) > 1 else -1, :]"),)),
    Bug("only the last token given", "The model gets the last token alone, and knows nothing of the text before.",
        "What has the model read when it chooses?", SAMPLE, ((CONTEXT, "context = idx[:, -1:]"),)),
    Bug("prompt never extended", "The model gets the prompt every time, and not what was generated.", "What has the model read when it chooses?",
        SAMPLE, (("    ended = torch.zeros", "    prompt = idx\n    ended = torch.zeros"), (CONTEXT, "context = prompt[:, -model.block_size:]"))),
    Bug("beginning of a long text kept", "A text that is too long loses its end instead of its beginning.", "Which tokens matter most for the next one?",
        SAMPLE, ((CONTEXT, "context = idx[:, :model.block_size]"),)),
    Bug("temperature multiplied", "The logits are multiplied by the temperature.", "Should a high temperature make the shares more equal?", SAMPLE,
        ((COLD, "        logits = logits * temperature\n"),)),
    Bug("temperature without effect", "The temperature is an argument that nothing uses.", "Where do you use the temperature?", SAMPLE, ((COLD, ""),)),
    Bug("temperature without effect", "The probabilities are divided by the temperature, which multinomial undoes.",
        "What does dividing all probabilities by one number change?", SAMPLE,
        ((COLD, ""), (PROBS, PROBS.replace("F.softmax(logits, dim=-1)", "F.softmax(logits, dim=-1) / temperature")))),
    Bug("samples from the logits", "The logits, not their softmax, are taken for the shares.", "What must the shares be?", SAMPLE,
        ((PROBS, PROBS.replace("F.softmax(logits, dim=-1)", "logits - logits.masked_fill(logits.isinf(), 0).amin(-1, keepdim=True) + 1e-3\n        probs = probs.clamp(min=0)")),)),
    Bug("never samples", "The most likely token is chosen although samples are asked for.", "What does your sampling flag change?", SAMPLE,
        (("torch.multinomial(probs, num_samples=1)", "probs.argmax(dim=-1, keepdim=True)"),)),
    Bug("always samples", "A sample is drawn although the most likely token is asked for.", "What does your sampling flag change?", SAMPLE,
        (("token = probs.argmax(dim=-1, keepdim=True)", "token = torch.multinomial(probs, num_samples=1)"),)),
    Bug("one sample for all rows", "One token is drawn for the first row and given to all.", "How many draws has a batch?", SAMPLE,
        (("torch.multinomial(probs, num_samples=1)", "torch.multinomial(probs[:1], num_samples=1).expand(len(probs), 1)"),)),
    Bug("top-k ignored", "top_k is an argument that nothing uses.", "masked_fill returns a new tensor.", SAMPLE,
        (('            logits = logits.masked_fill(logits < kth, float("-inf"))\n', '            logits.masked_fill(logits < kth, float("-inf"))\n'),)),
    Bug("dropped logits are zero", "Logits beyond the first k are set to 0 instead of minus infinity, and exp(0) is 1.",
        "What does the softmax do with a logit of 0?", SAMPLE, (('logits.masked_fill(logits < kth, float("-inf"))', "logits.masked_fill(logits < kth, 0.0)"),)),
    Bug("least likely kept", "The k least likely tokens are kept.", "What does largest=False do?", SAMPLE,
        (("            kth = torch.topk(logits, top_k).values[:, -1:]\n            logits = logits.masked_fill(logits < kth,",
          "            kth = torch.topk(logits, top_k, largest=False).values[:, -1:]\n            logits = logits.masked_fill(logits > kth,"),)),
    Bug("top-p without the token that reaches it", "The token with which the sum reaches p is dropped too.",
        "Which is the smallest set that has at least p?", SAMPLE,
        ((DROP, "drop = probs.cumsum(-1) > top_p\n            drop[:, 0] = False"),)),
    Bug("top-p in the order of likelihood", "What is dropped is in the order of likelihood, and never put back into that of the words.",
        "Which word is at place 0 after sorting?", SAMPLE, ((BACK, "pass"),)),
    Bug("top-p without sorting", "The probabilities are summed in the order of the words.", "Which words should be in the set?", SAMPLE,
        (("ordered, places = torch.sort(logits, descending=True)", "ordered, places = logits, torch.arange(logits.size(-1)).expand_as(logits)"),)),
    Bug("top-p as a threshold", "Every token with a probability below p is dropped.", "Of what is p the sum?", SAMPLE,
        ((DROP, "drop = (probs < top_p) & (probs < probs.max(-1, keepdim=True).values)"),)),
    Bug("goes on after the stop", "Nothing keeps a row from going on after its stop.", "Which tokens may follow a stop?", SAMPLE, ((STOPS, "pass"),)),
    Bug("first stop ends all rows", "The loop ends as soon as one row has reached its stop.", "Which rows have ended?", SAMPLE,
        (("bool(ended.all())", "bool(ended.any())"),)),
    Bug("stop not kept", "The stop itself is not in the result.", "What is the last token of a finished row?", SAMPLE,
        (("        idx = torch.cat([idx, token], dim=1)\n        if eos_id is not None and bool(ended.all()):\n            break\n",
          "        if eos_id is not None and bool(ended.all()):\n            break\n        idx = torch.cat([idx, token], dim=1)\n"),)),
    Bug("one token too few", "The loop runs once less than asked for.", "How often does your loop run?", SAMPLE,
        (("range(max_new_tokens)", "range(max_new_tokens - 1)"),)),
    Bug("length of the whole", "The number of new tokens is taken for the length of the whole row.", "Does max_new_tokens count the prompt?", SAMPLE,
        (("range(max_new_tokens)", "range(max(1, max_new_tokens - idx.size(1)))"),)),
)  # fmt: skip
