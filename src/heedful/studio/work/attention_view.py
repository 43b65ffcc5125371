"""What a person changes about attention: mechanism, temperature, masking, and heads that are off."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, get_origin

import torch
from torch import Tensor, nn

from heedful.attention import MECHANISMS, Mask, Mechanism, find_capable, make
from heedful.attention.registry import options as list_options
from heedful.errors import UserError, shorten, unknown
from heedful.models import Classifier, Decoder, Encoder, EncoderDecoder, LanguageModel
from heedful.models.blocks import Attention
from heedful.models.heads import Model
from heedful.options.values import parse_assignments

Body = Encoder | Decoder | EncoderDecoder
Masking = Literal["own", "none", "causal", "zero_after", "zero_scores"]
UNSAFE = ("zero_after", "zero_scores")
"""Mechanisms that are softmax under a causal mask that leaks."""
HIDDEN = ("scale", "dropout", "unsafe", "straight_through")
"""Options that change nothing that is looked at, or that have a control of their own."""
COLDEST, HOTTEST = 0.01, 100.0
SMALL_BLOCKS = {"bigbird": {"block": 8, "window": 3, "n_global": 1, "n_random": 1}}
"""Values that show something in a text of a few lines; the mechanism's own are for thousands of tokens."""


@dataclass(frozen=True)
class Site:
    """One attention layer of a model."""

    part: str
    """self; of an encoder-decoder encoder, decoder or cross."""
    layer: int
    attention: Attention


@dataclass(frozen=True)
class AttentionView:
    """How a model attends while it is looked at; by default as it was made."""

    mechanism: str = ""
    """The name of another mechanism; "" for the model's own."""
    options: tuple[tuple[str, Any], ...] = ()
    temperature: float = 1.0
    """Divides the scores."""
    masking: Masking = "own"
    off: frozenset[tuple[str, int, int]] = frozenset()
    """Part, layer and head, counted from 0, of the heads whose output is zero."""


def find_body(model: Model) -> Body:
    return model.body if isinstance(model, Classifier | LanguageModel) else model


def find_sites(body: Body) -> list[Site]:
    """Return the attention layers of a model, part by part; those of a foreign one are refused."""
    sites: list[Site] = []
    for name, stack in body.stacks().items() if isinstance(body, Body) else ():
        layers: list[Any] = list(stack.layers)
        part = name if isinstance(body, EncoderDecoder) else "self"
        sites += [Site(part, i, layer.attn) for i, layer in enumerate(layers)]
        if layers and layers[0].has_cross:
            sites += [Site("cross", i, layer.cross) for i, layer in enumerate(layers)]
    if not sites:
        raise UserError(
            "this model runs on attention code of its own, which cannot be watched; a family of ours can"
        )
    return sites


def list_mechanisms(body: Body) -> list[str]:
    """Return the mechanisms that make weights and can do what a model needs, its own first."""
    own = body.config.attention
    needs = ["explicit_weights"]
    needs += ["cross"] if isinstance(body, EncoderDecoder) else []
    needs += [] if isinstance(body, Encoder) else ["causal"]
    needs += ["bias"] if body.config.position == "relative" else []
    return [own, *(name for name in find_capable(*needs) if name != own)]


def list_maskings(body: Body) -> list[str]:
    """Return the masks that can be chosen, the model's own first; those that leak are masks of softmax."""
    if isinstance(body, EncoderDecoder):
        return ["own", "none", "causal", *UNSAFE]
    kinds = ["causal", "none"] if isinstance(body, Decoder) else ["none", "causal"]
    return [*kinds, *UNSAFE]


def describe_options(name: str, own: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the options of a mechanism, with the values that it begins with on a page."""
    signature = inspect.signature(MECHANISMS.find(name).__init__).parameters
    described = []
    for option, hint in list_options(name).items():
        if option in HIDDEN:
            continue
        default = signature[option].default
        value = (
            own.get(option, default) if own is not None else SMALL_BLOCKS.get(name, {}).get(option, default)
        )
        choices = [list(get_args(one)) for one in (hint, *get_args(hint)) if get_origin(one) is Literal]
        kind = "choice" if choices else "switch" if isinstance(default, bool) else "number"
        described.append(
            {"name": option, "kind": kind, "value": value, "choices": choices[0] if choices else []}
        )
    return described


def has_parameters(name: str) -> bool:
    """Whether a mechanism has weights of its own, which another mechanism's model has not learned."""
    return any(True for _ in make(name, n_heads=1, d_head=2, max_len=2).parameters())


def read_view(params: Mapping[str, Any], body: Body) -> AttentionView:
    """Return what a page asks for, or say what is wrong with it."""
    sites = find_sites(body)
    name = str(params.get("mechanism") or body.config.attention)
    if name not in list_mechanisms(body):
        raise unknown("mechanism for this model", name, list_mechanisms(body))
    masking: Any = params.get("masking") or "own"
    if masking not in get_args(Masking):
        raise unknown("masking", str(masking), get_args(Masking))
    if masking == list_maskings(body)[0]:
        masking = "own"
    if masking == "causal" and not MECHANISMS.find(name).causal:
        raise UserError(f"{name} attention has no causal form; choose another mechanism")
    try:
        temperature = float(params.get("temperature") or 1)
    except (TypeError, ValueError):
        temperature = float("nan")
    if not COLDEST <= temperature <= HOTTEST:
        raise UserError(f"the temperature is from {COLDEST:g} to {HOTTEST:g}")
    given = [
        f"{key}={value}"
        for key, value in dict(params.get("options") or {}).items()
        if value not in (None, "")
    ]
    values = parse_assignments(given, list_options(name), f"{name} attention", name)
    values = {key: value for key, value in values.items() if key not in HIDDEN}
    if name == body.config.attention:
        own = {one["name"]: one["value"] for one in describe_options(name, body.config.attention_options)}
        values = {key: value for key, value in values.items() if own.get(key) != value}
        name = name if values else ""
        values = {**body.config.attention_options, **values} if values else {}
    off = read_heads(str(params.get("off") or ""), sites)
    if masking in UNSAFE:
        name, values = "", {}
    return AttentionView(name, tuple(sorted(values.items())), temperature, masking, off)


def read_heads(text: str, sites: list[Site]) -> frozenset[tuple[str, int, int]]:
    """Read heads written as `layer.head` or `part.layer.head`, counted from 1, with commas between them."""
    known = {(site.part, site.layer): site.attention.n_heads for site in sites}
    heads = set()
    for word in filter(None, text.split(",")):
        part, layer, head = ["", *word.split(".")][-3:] if "." in word else ("", "", "")
        where = part or sites[0].part
        number = known.get((where, int(layer) - 1), 0) if layer.isdecimal() and head.isdecimal() else 0
        if not (number and 1 <= int(head) <= number):
            raise UserError(
                f'"{shorten(word, 30)}" is not a head of this model; write layer.head, such as 1.2'
            )
        heads.add((where, int(layer) - 1, int(head) - 1))
    return frozenset(heads)


@dataclass
class Recording:
    """What the layers of a model computed while it read a text."""

    keep: bool = True
    """Whether the weights are kept."""
    maps: dict[tuple[str, int], Tensor | None] = field(default_factory=dict)
    """[b, h, t, s] by part and layer; None where a mechanism makes no weights."""
    prefix: int = 0
    """The number of keys that belong to no token (prefix tuning)."""
    without: tuple[str, int, list[int]] | None = None
    """Part and layer, and the head that each row of a batch does without."""
    step: Any = None
    """Called after each layer."""


class Watched(nn.Module):
    """A mechanism that is watched: its weights are recorded and some of its heads are silent."""

    def __init__(self, site: Site, view: AttentionView, mechanism: Mechanism, recording: Recording) -> None:
        super().__init__()
        self.site, self.view, self.watched, self.recording = site, view, mechanism, recording
        self.off = [head for part, layer, head in view.off if (part, layer) == (site.part, site.layer)]

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        recording, masking, at = self.recording, self.view.masking, (self.site.part, self.site.layer)
        if masking != "own" and self.site.part != "cross":
            mask = replace(mask, causal=masking != "none")
        if recording.keep and self.watched.explicit_weights:
            self.watched.check(q, k, mask, bias)
            weights = self.watched.weights(q, k, mask, bias)
            recording.maps[at] = weights
            out = weights @ v
        else:
            if recording.keep:
                recording.maps[at] = None
            out = self.watched(q, k, v, mask, bias)
        recording.prefix = max(recording.prefix, mask.prefix)
        if self.off:
            out[:, self.off] = 0.0
        if recording.without is not None and recording.without[:2] == at:
            heads = recording.without[2]
            out = out.clone()
            for row, head in enumerate(heads):
                out[row :: len(heads), head] = 0.0
        if recording.step is not None:
            recording.step()
        return out


@contextmanager
def watch(sites: list[Site], view: AttentionView, recording: Recording, max_len: int) -> Iterator[None]:
    """Give a model's layers another attention and watch it, inside of the `with`."""
    before = [site.attention.mechanism for site in sites]
    try:
        for site in sites:
            mechanism = make_mechanism(site.attention, view, max_len, cross=site.part == "cross")
            site.attention.mechanism = Watched(site, view, mechanism, recording)  # type: ignore[assignment]
        yield
    finally:
        for site, mechanism in zip(sites, before, strict=True):
            site.attention.mechanism = mechanism


def make_mechanism(attention: Attention, view: AttentionView, max_len: int, *, cross: bool) -> Mechanism:
    """Return the mechanism of a layer as a view changes it; new weights are drawn, always the same ones."""
    own = attention.mechanism
    scale = own.scale / view.temperature
    leaks = view.masking in UNSAFE and not cross
    name, values = (view.masking, {"unsafe": True}) if leaks else (view.mechanism, dict(view.options))
    if not name:
        if view.temperature == 1.0:
            return own
        mechanism = copy.copy(own)  # shares the weights
        mechanism.scale = scale
        return mechanism
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        sizes = {"n_heads": own.n_heads, "d_head": own.d_head, "max_len": max(max_len, own.max_len)}
        return make(name, **sizes, scale=scale, **values).eval()
