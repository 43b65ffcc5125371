"""Generation: greedy choice, temperature, top-k and top-p, stops, long contexts and caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from heedful.contracts.asking import Inputs, collect
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.verdicts import RefutedError

WORDS, BLOCK, STOP = 7, 8, 3
ROWS = 2000
"""Samples of one distribution: shares are known to about 0.01."""
BOUND = 0.045
SPREAD = 0.7
HISTORY = 0.3
"""How much the earlier tokens count in the model that is given."""


def draw_table(seed: int = 0) -> Tensor:
    """Return the model: the logits [words, words] of what follows each word."""
    return torch.randn(WORDS, WORDS, generator=torch.Generator().manual_seed(seed + 6)) * SPREAD


def predict(table: Tensor, ids: Tensor) -> Tensor:
    """Return logits [b, t, words] of the next word; every word of the past counts."""
    x = table[ids]
    logits: Tensor = x + HISTORY * x.cumsum(1)
    return logits


def draw(batch: int = 1, length: int = 3, new: int = 4, seed: int = 0, **more: Any) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed + 1)
    prompt = torch.randint(WORDS, (batch, length), generator=generator)
    return {
        "table": draw_table(seed),
        "prompt": prompt,
        "new": new,
        "block_size": BLOCK,
        "sample": False,
        **more,
    }


def run(subject: Subject, inputs: Inputs) -> Tensor:
    """Return the whole rows, prompt and what follows."""
    answer = subject.call("generate", {k: v for k, v in inputs.items() if v is not None})
    out: Tensor = answer["out"]
    prompt, new = inputs["prompt"], inputs["new"]
    if out.dim() != prompt.dim() or len(out) != len(prompt):
        raise RefutedError(f"the shape is {tuple(out.shape)} instead of {(len(prompt), prompt.shape[1] + new)}",
                           inputs={"prompt": prompt, "new tokens": new}, got=list(out.shape),
                           expected=[len(prompt), prompt.shape[1] + new])  # fmt: skip
    return out.long()


def choose_greedily(inputs: Inputs) -> Tensor:
    ids: Tensor = inputs["prompt"]
    for _ in range(inputs["new"]):
        logits = predict(inputs["table"], ids[:, -inputs["block_size"] :])
        ids = torch.cat([ids, logits[:, -1].argmax(-1, keepdim=True)], 1)
    return ids


def facts_of(subject: Subject) -> Mapping[str, Any]:
    return subject.operations["generate"]


def check_length(subject: Subject) -> str:
    """The rows must begin with the prompt, and have as many tokens more as were asked for."""
    for new in (1, 3):
        inputs = draw(2, 3, new)
        got = run(subject, inputs)
        if got.shape[1] != 3 + new:
            raise RefutedError(f"{got.shape[1] - 3} tokens follow the prompt instead of {new}", got=got, expected=[2, 3 + new],
                               inputs={"prompt": inputs["prompt"], "new tokens": new})  # fmt: skip
        if not torch.equal(got[:, :3], inputs["prompt"]):
            raise RefutedError("the rows do not begin with the prompt", inputs={"prompt": inputs["prompt"]}, got=got[:, :3],
                               expected=inputs["prompt"])  # fmt: skip
    return "the prompt, and as many tokens as were asked for"


def check_greedy(subject: Subject) -> str:
    """Without sampling each token must be the most likely one."""
    if not facts_of(subject).get("greedy"):
        raise NotApplicable("it always samples")
    for length, new in ((1, 1), (2, 1), (3, 2), (4, 4)):
        for seed in range(3):
            inputs = draw(1, length, new, seed)
            got, expected = run(subject, inputs), choose_greedily(inputs)
            if not torch.equal(got, expected):
                raise RefutedError(
                    "a token is not the most likely one after all tokens before it", got=got, expected=expected,
                    inputs={"prompt": inputs["prompt"], "new tokens": new, "logits of the first new token": predict(inputs["table"], inputs["prompt"])[0, -1]},
                )  # fmt: skip
    return "each token is the most likely one"


def check_rows(subject: Subject) -> str:
    """Each row of a batch must give what it gives alone."""
    if not facts_of(subject).get("greedy"):
        raise NotApplicable("it always samples")
    inputs = draw(3, 3, 3)
    together = run(subject, inputs)
    for row in range(3):
        alone = run(subject, {**inputs, "prompt": inputs["prompt"][row : row + 1]})
        if not torch.equal(together[row : row + 1], alone):
            raise RefutedError(f"row {row} of a batch of 3 gives other tokens than alone", inputs={"prompt": inputs["prompt"]},
                               got=together[row], expected=alone[0])  # fmt: skip
    return "the rows of a batch do not touch each other"


def sample_shares(subject: Subject, **options: Any) -> tuple[Tensor, Tensor]:
    """Return the shares of the words that followed one prompt, and its logits."""
    inputs = draw(1, 3, 1, sample=True)
    one = inputs["prompt"]
    got = run(subject, {**inputs, "prompt": one.expand(ROWS, -1).clone(), **options})[:, -1]
    shares = torch.bincount(got.clamp(0, WORDS - 1), minlength=WORDS).double() / ROWS
    return shares, predict(inputs["table"], one)[0, -1].double()


def refute_shares(message: str, shares: Tensor, expected: Tensor, **about: Any) -> RefutedError:
    drawn = draw_heat_maps(
        {"your shares": shares[None].tolist(), "expected": expected[None].tolist()}, "", "word"
    )
    return RefutedError(message, inputs=about, got=shares, expected=expected, heat_map=drawn)


def require_sampling(subject: Subject, name: str) -> None:
    facts = facts_of(subject)
    if not facts.get("samples"):
        raise NotApplicable("it does not sample")
    if not facts.get(name):
        raise NotApplicable(f"it takes no {name}")


def check_temperature(subject: Subject) -> str:
    """Shares of many samples must be softmax(logits / temperature)."""
    require_sampling(subject, "temperature")
    largest = 0.0
    for temperature in (1.0, 0.5, 2.0):
        shares, logits = sample_shares(subject, temperature=temperature)
        expected = (logits / temperature).softmax(-1)
        largest = max(largest, float((shares - expected).abs().max()))
        if largest > BOUND:
            raise refute_shares(f"at temperature {temperature:g} the shares of {ROWS} samples are not softmax(logits / temperature)",
                                shares, expected, temperature=temperature, logits=logits)  # fmt: skip
    return f"shares of samples are softmax(logits / temperature) to {largest:.2g}"


def top_k(logits: Tensor, k: int) -> Tensor:
    kept = logits >= logits.topk(k).values.min()
    return logits.masked_fill(~kept, -torch.inf).softmax(-1)


def top_p(logits: Tensor, p: float) -> Tensor:
    """Return the probabilities of the smallest set of most likely words that has at least p."""
    probabilities, order = logits.softmax(-1).sort(descending=True)
    before = probabilities.cumsum(-1) - probabilities
    kept = torch.zeros_like(logits, dtype=torch.bool)
    kept[order[before < p]] = True
    return logits.masked_fill(~kept, -torch.inf).softmax(-1)


def check_top_k(subject: Subject) -> str:
    """Only the k most likely words may be sampled, in their proportions."""
    require_sampling(subject, "top_k")
    for k in (1, 2, 4):
        shares, logits = sample_shares(subject, top_k=k)
        expected = top_k(logits, k)
        number = int((shares > 0).sum())
        if number > k:
            raise refute_shares(
                f"with top_k = {k} there are {number} different words",
                shares,
                expected,
                top_k=k,
                logits=logits,
            )
        if float((shares - expected).abs().max()) > BOUND:
            raise refute_shares(
                f"with top_k = {k} the words have other shares", shares, expected, top_k=k, logits=logits
            )
    return "only the k most likely words are sampled, in their proportions"


def check_top_p(subject: Subject) -> str:
    """Only the smallest set of words with at least p may be sampled; the word that reaches p is in it."""
    require_sampling(subject, "top_p")
    for p in (0.3, 0.6, 0.9):
        shares, logits = sample_shares(subject, top_p=p)
        expected = top_p(logits, p)
        if float((shares - expected).abs().max()) > BOUND:
            few = int((shares > 0).sum()) < int((expected > 0).sum())
            raise refute_shares(
                f"with top_p = {p} {'words are missing' if few else 'the words have other shares'}", shares, expected,
                top_p=p, probabilities=logits.softmax(-1),
            )  # fmt: skip
    return "only the smallest set of words with at least p is sampled"


def check_sampling(subject: Subject) -> str:
    """Another seed must give other tokens, and so must the rows of a batch."""
    if not facts_of(subject).get("samples"):
        raise NotApplicable("it does not sample")
    inputs = draw(8, 2, 6, sample=True)
    first, second = (run(subject, {**inputs, "seed": seed})[:, 2:] for seed in (0, 1))
    if first.shape == second.shape and torch.equal(first, second):
        raise RefutedError("sampling gives the same tokens with every seed", inputs={"prompt": inputs["prompt"], "seeds": [0, 1]},
                           got=first, expected="other tokens")  # fmt: skip
    one = inputs["prompt"][:1].expand(8, -1).clone()
    rows = run(subject, {**inputs, "prompt": one})
    if bool((rows == rows[:1]).all()):
        raise RefutedError(
            "all rows of a batch get the same sample",
            inputs={"prompt": one},
            got=rows,
            expected="other tokens in each row",
        )
    return "seeds and rows give other samples"


def is_same_sample(subject: Subject) -> bool:
    inputs = draw(8, 2, 6, sample=True)
    return torch.equal(*(run(subject, {**inputs, "seed": seed}) for seed in (0, 1)))


def draw_stop() -> tuple[dict[str, Any], Tensor]:
    """Return inputs whose first row reaches the stop soon and whose second does later or never."""
    for seed in range(200):
        inputs = draw(2, 2, 5, seed)
        free = choose_greedily(inputs)[:, 2:]
        first = [(row == STOP).nonzero().flatten().tolist() for row in free]
        if (
            not bool((inputs["prompt"] == STOP).any())
            and first[0]
            and first[0][0] == 1
            and not first[1]
            and set(free[0, 2:].tolist()) - {STOP, 0}
        ):
            return {**inputs, "stop": STOP}, choose_greedily(inputs)
    raise NotApplicable("there is no such prompt")


def stop_alone() -> dict[str, Any]:
    """Return the inputs of the row that reaches its stop, alone."""
    inputs, _ = draw_stop()
    return {**inputs, "prompt": inputs["prompt"][:1]}


def check_stop(subject: Subject) -> str:
    """After the stop a row must have nothing else than stops or padding; other rows go on."""
    if not facts_of(subject).get("stop"):
        raise NotApplicable("it has no stop")
    if not facts_of(subject).get("greedy"):
        raise NotApplicable("it always samples")
    inputs, free = draw_stop()
    got = run(subject, inputs)
    after = got[0, 2 + 2 :]
    if len(set(after.tolist())) > 1 or bool(set(after.tolist()) - {STOP, 0, -1, -100}):
        raise RefutedError(
            "a row goes on after its stop",
            inputs={"prompt": inputs["prompt"], "stop": STOP},
            got=got[0],
            expected="stops or padding",
        )
    if got.shape[1] < free.shape[1] or not torch.equal(got[1], free[1, : got.shape[1]]):
        raise RefutedError("a row ends because another one has reached its stop", inputs={"prompt": inputs["prompt"], "stop": STOP},
                           got=got[1], expected=free[1])  # fmt: skip
    alone = run(subject, stop_alone())
    if not torch.equal(alone[0, :4], free[0, :4]):
        raise RefutedError("the stop itself or a token before it is missing", inputs={"prompt": inputs["prompt"][:1], "stop": STOP},
                           got=alone[0], expected=free[0, :4])  # fmt: skip
    return "each row ends at its own stop"


def check_context(subject: Subject) -> str:
    """More tokens than the model can take: the last ones must be given to it."""
    if not facts_of(subject).get("greedy"):
        raise NotApplicable("it always samples")
    inputs = draw(1, 3, BLOCK + 2, seed=2)
    got, expected = run(subject, inputs), choose_greedily(inputs)
    if not torch.equal(got, expected):
        raise RefutedError(f"beyond the longest context of {BLOCK} the tokens are other ones", got=got, expected=expected,
                           inputs={"prompt": inputs["prompt"], "new tokens": BLOCK + 2, "block_size": BLOCK})  # fmt: skip
    return "the last tokens of a long context count"


def check_cache(subject: Subject) -> str:
    """With a cache the tokens must be the same as without."""
    if not facts_of(subject).get("cache"):
        raise NotApplicable("it has no cache")
    inputs = draw(2, 3, 4)
    with_cache, without = (run(subject, {**inputs, "cache": cache}) for cache in (True, False))
    if not torch.equal(with_cache, without):
        raise RefutedError(
            "with a cache the tokens are other ones",
            inputs={"prompt": inputs["prompt"]},
            got=with_cache,
            expected=without,
        )
    return "a cache changes no token"


def fingerprint(subject: Subject) -> Fingerprint:
    """Greedy tokens, and shares of samples under each option."""
    if "generate" not in subject.operations:
        return {}
    facts = facts_of(subject)
    measures: dict[str, Any] = {}
    if facts.get("greedy"):
        measures["greedy"] = lambda: run(subject, draw(3, 3, 4, seed=5)).double()
        measures["long"] = lambda: run(subject, draw(1, 3, BLOCK + 2, seed=2)).double()
        if facts.get("stop"):
            measures["stop"] = lambda: run(subject, draw_stop()[0]).double()
            measures["stop alone"] = lambda: run(subject, stop_alone()).double()
        if facts.get("cache"):
            measures["cache"] = lambda: run(subject, draw(2, 3, 4, cache=True)).double()
    if facts.get("samples"):
        options: dict[str, dict[str, Any]] = {
            "plain": {},
            "cold": {"temperature": 0.5},
            "hot": {"temperature": 2.0},
            "k": {"top_k": 2},
            "k of 1": {"top_k": 1},
            "p": {"top_p": 0.6},
            "p of 0.3": {"top_p": 0.3},
            "p of 0.1": {"top_p": 0.1},
        }
        for name, option in options.items():
            if all(facts.get(key) for key in option):
                measures[f"share {name}"] = lambda option=option: sample_shares(subject, **option)[0]
        measures["seeds"] = lambda: float(is_same_sample(subject))
        measures["length"] = lambda: float(run(subject, draw(2, 3, 3, sample=True)).shape[1])
    return collect(measures)


SHARES = ("plain", "cold", "hot", "k", "k of 1", "p", "p of 0.3", "p of 0.1")
SUITE = Suite(
    "generation",
    "generation: greedy choice, temperature, top-k and top-p, stops, long contexts and caches",
    {
        "generate": "table [words, words] (a model: the logits of what follows each word), prompt [b, t], new (how many tokens), "
        "block_size, sample, and if they are set temperature, top_k, top_p, stop and cache; returns out [b, t + new]",
    },
    (
        Claim("prompt and length", "The rows begin with the prompt, and have as many tokens more as were asked for.", check_length, "generate"),
        Claim("greedy", "Without sampling each token is the most likely one after all tokens before it.", check_greedy, "generate",
              "the logits of the last position, of a model that has read the whole text"),
        Claim("rows", "Each row of a batch gives what it gives alone.", check_rows, "generate"),
        Claim("temperature", "Shares of samples are softmax(logits / temperature).", check_temperature, "generate",
              "divide the logits by the temperature before the softmax"),
        Claim("top-k", "Only the k most likely words are sampled, in their proportions.", check_top_k, "generate",
              "all other logits are minus infinity"),
        Claim("top-p", "Only the smallest set of most likely words with at least p is sampled.", check_top_p, "generate",
              "sort, cumulate, keep the word that reaches p, and go back to the order of the words"),
        Claim("sampling", "Other seeds and other rows give other samples.", check_sampling, "generate"),
        Claim("stop", "Each row ends at its own stop.", check_stop, "generate", "remember which rows have ended"),
        Claim("long context", "Beyond the longest context the last tokens count.", check_context, "generate", "ids[:, -block_size:]"),
        Claim("cache", "A cache changes no token.", check_cache, "generate"),
    ),
    fingerprint,
    {f"share {name}": BOUND for name in SHARES},
    remembers=True,
)  # fmt: skip
