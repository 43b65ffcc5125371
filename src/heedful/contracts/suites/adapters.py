"""Bottleneck adapters (Houlsby et al. 2019) and soft prompts: claims of the suite `lora`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.contracts.asking import TOLERANCE, ask, collect, difference, relative
from heedful.contracts.subject import Subject
from heedful.contracts.suite import Claim, Fingerprint
from heedful.contracts.verdicts import RefutedError

WIDTH, NARROW, PROMPT = 8, 3, 4
NEAR = 0.1
"""How far, relative to its input, the output of a bottleneck adapter may be before training."""
ADAPTER_OPERATIONS = {
    "bottleneck": f"x [b, t, {WIDTH}] and bottleneck ({NARROW}); returns out [b, t, {WIDTH}] of a new adapter and trained "
    "(how many numbers learn); with given a, up and down are filled with random numbers",
    "soft_prompt": f"x [b, t, {WIDTH}] and length ({PROMPT}); returns out [b, length + t, {WIDTH}] and trained",
}


def draw_states(batch: int = 2, n: int = 3, seed: int = 0) -> Tensor:
    return torch.randn(batch, n, WIDTH, generator=torch.Generator().manual_seed(seed + 1))


def run_bottleneck(subject: Subject, x: Tensor, **more: Any) -> Tensor:
    return ask(subject, "bottleneck", x=x, bottleneck=NARROW, **more)


def check_start(subject: Subject) -> str:
    """A new adapter must change almost nothing."""
    x = draw_states()
    got = run_bottleneck(subject, x)
    if got.shape != x.shape:
        raise RefutedError(f"the shape is {tuple(got.shape)} instead of {tuple(x.shape)}", inputs={"x": x}, got=list(got.shape),
                           expected=list(x.shape))  # fmt: skip
    apart = relative(got, x)
    if apart > NEAR:
        raise RefutedError(f"a new adapter changes its input by {apart:.2g} of its size", inputs={"x": x[:1, :1]}, got=got[:1, :1],
                           expected=x[:1, :1])  # fmt: skip
    return f"a new adapter changes its input by {apart:.2g} of its size"


def check_bend(subject: Subject) -> str:
    """With large random weights the change must not be linear in the input."""
    x = draw_states(1, 2)
    zero, once, twice, half = (
        run_bottleneck(subject, s * x, randomize=True) - s * x for s in (0.0, 1.0, -1.0, 0.5)
    )
    if relative(once + twice, 2 * zero) < TOLERANCE and relative(2 * half, once + zero) < TOLERANCE:
        raise RefutedError("the change is linear: there is no activation between the two layers", inputs={"x": x}, got=once,
                           expected="a change that is not linear in x")  # fmt: skip
    return "there is an activation between the two layers"


def check_narrow(subject: Subject) -> str:
    """Count what learns: two layers with biases."""
    number = int(subject.call("bottleneck", {"x": draw_states(), "bottleneck": NARROW})["trained"])
    least, most = 2 * WIDTH * NARROW, 2 * WIDTH * NARROW + WIDTH + NARROW + 2 * WIDTH
    if not least <= number <= most:
        raise RefutedError(f"{number} parameters learn instead of about 2 d m + d + m = {least + WIDTH + NARROW}",
                           inputs={"d": WIDTH, "m": NARROW}, got=number, expected=[least, most])  # fmt: skip
    return f"{number} parameters learn"


def check_prompt(subject: Subject) -> str:
    """The text must follow the prompt as it is, and the prompt must be the same in each row."""
    x = draw_states(3, 5)
    answer = subject.call("soft_prompt", {"x": x, "length": PROMPT})
    out, expected = answer["out"], [3, PROMPT + 5, WIDTH]
    if list(out.shape) != expected:
        raise RefutedError(f"the shape is {tuple(out.shape)} instead of {tuple(expected)}", got=list(out.shape), expected=expected,
                           inputs={"shape of x": list(x.shape), "length": PROMPT})  # fmt: skip
    if difference(out[:, PROMPT:], x) > 0:
        raise RefutedError(
            "what follows the prompt is not the text as it was",
            inputs={"x": x[:1]},
            got=out[:1, PROMPT:],
            expected=x[:1],
        )
    if difference(out[:1, :PROMPT].expand(3, -1, -1), out[:, :PROMPT]) > 0:
        raise RefutedError(
            "the prompt is another one in each row",
            inputs={"x": x},
            got=out[:, :PROMPT],
            expected="the same vectors",
        )
    if answer["trained"] != PROMPT * WIDTH:
        raise RefutedError(f"{answer['trained']} parameters learn instead of length x d = {PROMPT * WIDTH}", inputs={"length": PROMPT},
                           got=answer["trained"], expected=PROMPT * WIDTH)  # fmt: skip
    return f"{PROMPT} vectors that learn are before the text"


def fingerprint_adapters(subject: Subject) -> Fingerprint:
    """What a new adapter changes, whether it is linear, and what a prompt does."""
    measures: dict[str, Any] = {}
    x = draw_states(2, 5)
    if "bottleneck" in subject.operations:
        measures["adapter start"] = lambda: float(relative(run_bottleneck(subject, x), x) > NEAR)
        measures["adapter trained"] = lambda: float(
            subject.call("bottleneck", {"x": x, "bottleneck": NARROW})["trained"]
        )
        measures["adapter at zero"] = lambda: float(
            run_bottleneck(subject, 0 * x, randomize=True).abs().max() > 1e-6
        )
        measures["adapter linear"] = lambda: float(measure_bend(subject, x) < TOLERANCE)
        measures["adapter residual"] = lambda: float(relative(run_bottleneck(subject, x), 0 * x) > 0.5)
    if "soft_prompt" in subject.operations:
        measures["prompt at"] = lambda: find_text(subject, x)
        measures["prompt trained"] = lambda: float(
            subject.call("soft_prompt", {"x": x, "length": PROMPT})["trained"]
        )
    return collect(measures)


def measure_bend(subject: Subject, x: Tensor) -> float:
    zero, plus, minus = (run_bottleneck(subject, s * x, randomize=True) - s * x for s in (0.0, 1.0, -1.0))
    return relative(plus + minus, 2 * zero)


def find_text(subject: Subject, x: Tensor) -> float:
    """Return where in the output the text begins; -1 if it is not there."""
    out = ask(subject, "soft_prompt", x=x, length=PROMPT)
    n = x.shape[1]
    places = [i for i in range(out.shape[1] - n + 1) if difference(out[:, i : i + n], x) == 0]
    return float(places[0]) if places else -1.0


ADAPTER_CLAIMS = (
    Claim("adapter start", "A new bottleneck adapter changes its input hardly at all.", check_start, "bottleneck",
          "add the input to the output; and begin with small weights, or zeros, in the second layer"),
    Claim("adapter activation", "There is an activation between an adapter's two layers.", check_bend, "bottleneck"),
    Claim("adapter width", "An adapter learns about 2 d m numbers for a bottleneck of m.", check_narrow, "bottleneck"),
    Claim("soft prompt", "A soft prompt puts the same learned vectors before every text.", check_prompt, "soft_prompt",
          "expand the vectors to the batch, and concatenate along the time"),
)  # fmt: skip
