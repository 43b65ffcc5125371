"""`heedful generate`: continue a text with a language model."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import Device, Flag, Json, console, print_json
from heedful.errors import UserError, shorten
from heedful.options.types import Bounds, Positive, Seed, Weight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heedful.inference.writer import Continuation, Writer

WHY = {"stop": "ended", "max_tokens": "cut at --max-tokens", "room": "cut: the model's context is full"}


def command(
    model: str,
    prompt: str | None = None,
    /,
    *,
    source: Annotated[Path | None, Parameter(name="--in")] = None,
    max_tokens: Positive = 200,
    temperature: Weight | None = None,
    top_k: Positive | None = None,
    top_p: Annotated[float, Bounds(above=0, most=1)] | None = None,
    greedy: Flag = False,
    samples: Positive = 1,
    stop: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    slide: Annotated[bool, Parameter(negative="--no-slide")] = True,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Continue a prompt with a language model.

    The model is that of a run of heedful pretrain, or a decoder or
    encoder-decoder by name. A single text is printed token by token. The same
    seed gives the same text. A text ends at the end-of-text token, at --stop or
    after --max-tokens. The model's context is the length that it was trained on.
    When it is full, a decoder continues from the second half of it; with
    --no-slide, and with an encoder-decoder, the text ends there.

    Examples:
      heedful generate runs/shakespeare "ROMEO:"
      heedful generate runs/shakespeare "ROMEO:" --temperature 0.8 --samples 5
      heedful generate runs/shakespeare --in prompts.txt --greedy --json
      heedful generate gpt2 "The sea was" --top-k 40 --top-p 0.95

    Parameters
    ----------
    model
        Folder of a run or a model, or a Hub id.
    prompt
        The beginning of the text; for an encoder-decoder its input.
    source
        A file of prompts, one per line, instead of PROMPT.
    max_tokens
        Largest number of tokens to write.
    temperature
        Below 1 for more probable tokens, above 1 for more surprising ones; 0 is --greedy. By default 1.
    top_k
        Sample from this many most probable tokens.
    top_p
        Sample from the fewest tokens that together have this probability.
    greedy
        Always take the most probable token.
    samples
        Number of texts per prompt.
    stop
        A token that ends a text, as it is spelled. Repeat the option for several tokens.
    slide
        Continue when the context is full, from the second half of it.
    seed
        Seed of everything random.
    """
    if (prompt is None) == (source is None):
        raise UserError("generate continues one prompt, or those of a file with --in FILE; give one of them")
    if greedy and not (temperature is None and top_k is None and top_p is None):
        raise UserError("--greedy takes the most probable token; --temperature, --top-k and --top-p draw one")
    from heedful.inference.generation import Sampling
    from heedful.inference.networks import load_writer

    chosen = 0.0 if greedy else 1.0 if temperature is None else temperature
    sampling = Sampling(temperature=chosen, top_k=top_k, top_p=top_p, seed=seed)
    prompts = [prompt] if prompt is not None else read_prompts(source)
    writer = load_writer(model, device=device)
    refuse_unknown(writer, prompts)
    if slide:
        tell_unread(writer, prompts)
    alone = len(prompts) * samples == 1 and not json
    if alone:
        say("" if writer.whole else prompts[0])
    texts = writer.write(
        prompts, samples=samples, max_tokens=max_tokens, sampling=sampling, stop=stop, slide=slide,
        seen=say if alone else None,
    )  # fmt: skip
    if json:
        print_json({"model": model, **asdict(sampling), "texts": [asdict(one) for one in texts]})
    elif alone:
        say("\n")
        print(f"heedful: {texts[0].tokens} tokens, {WHY[texts[0].stopped]}", file=sys.stderr)
    else:
        show(texts, samples, whole=writer.whole)


def read_prompts(source: Path | None) -> list[str]:
    from heedful.data.text_files import read_lines, strip_line_end

    assert source is not None
    if not source.is_file():
        raise UserError(f"--in {source}: there is no such file")
    prompts = [strip_line_end(line) for _, line in read_lines(source) if line.strip()]
    if not prompts:
        raise UserError(f"--in {source}: has no line with text")
    return prompts


def refuse_unknown(writer: Writer, prompts: Sequence[str]) -> None:
    """Refuse characters that the model does not know; warn about unknown words."""
    for prompt in prompts:
        unknown = writer.unknown(prompt)
        if not unknown:
            continue
        listed = ", ".join(f'"{shorten(part, 20)}"' for part in unknown[:8])
        if writer.tokenizer.kind == "char":
            raise UserError(
                f'the prompt "{shorten(prompt)}" has characters that the model does not know: {listed}'
            )
        print(f"heedful: unknown to the model's vocabulary: {listed}", file=sys.stderr)


def tell_unread(writer: Writer, prompts: Sequence[str]) -> None:
    """Say so if the beginning of a prompt is left out because the model's context is too short."""
    longest, context = max(len(writer.encode_prompt(prompt)) for prompt in prompts), writer.context
    if longest > context and not writer.whole:
        print(
            f"heedful: a prompt has {longest:,} tokens and the model's context {context:,}; "
            "only the end of the prompt is read",
            file=sys.stderr,
        )


def say(text: str) -> None:
    """Write to the terminal at once, without control characters."""
    from heedful.inference.writer import harmless

    sys.stdout.write(harmless(text))
    sys.stdout.flush()


def show(texts: Sequence[Continuation], samples: int, *, whole: bool) -> None:
    """Print several texts, each with its number."""
    from heedful.inference.writer import harmless

    out = console()
    for i, one in enumerate(texts):
        number = f"{i // samples + 1}" if samples == 1 else f"{i // samples + 1}.{i % samples + 1}"
        out.print(f"[{number}] {one.tokens} tokens, {WHY[one.stopped]}", style="bold", markup=False)
        print(harmless(one.text if whole else one.prompt + one.text), end="\n\n")
