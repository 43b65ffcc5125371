"""What the page Attention computes: maps of all heads, one head in full, and the answer without each."""

from __future__ import annotations

import json
import struct
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from heedful.attention import MECHANISMS
from heedful.errors import UserError, shorten
from heedful.models import Classifier, Decoder, EncoderDecoder, LanguageModel
from heedful.studio.work.attention_reading import (
    Maps,
    Reading,
    average_heads,
    describe_answers,
    find_answers,
    roll_out,
)
from heedful.studio.work.attention_view import (
    describe_options,
    find_body,
    find_sites,
    has_parameters,
    list_maskings,
    list_mechanisms,
    read_view,
)
from heedful.studio.work.subjects import read_item, read_name

if TYPE_CHECKING:
    from heedful.studio.model_store import ModelStore
    from heedful.studio.worker import Report

THUMBNAIL = 48
"""The largest number of rows and columns of a small map."""
PARTS = {
    "self": "all layers", "encoder": "encoder", "decoder": "decoder", "cross": "decoder to encoder",
    "first": "first text", "second": "second text",
}  # fmt: skip
MEAN, ROLL_OUT = "mean", "rollout"


def describe(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return what can be looked at in a model, and what can be changed."""
    network = models.network(read_name(params))
    model = network.model
    body = find_body(model)
    sites = find_sites(body)
    own, config = body.config.attention, body.config
    parts = dict.fromkeys(site.part for site in sites)
    masked = isinstance(model, LanguageModel) and model.kind == "masked"
    mask_id = network.tokenizer.mask_id
    return {
        "attention": own,
        "explicit": MECHANISMS.find(own).explicit_weights,
        "scale": sites[0].attention.mechanism.scale,
        "parts": [{"name": name, "title": PARTS[name]} for name in parts],
        "layers": max(site.layer for site in sites) + 1,
        "heads": config.n_heads,
        "labels": list(network.labels),
        "kind": config.kind,
        "answers": model.kind if isinstance(model, Classifier | LanguageModel) else "",
        "pairs": config.pool == "apart",
        "mask": network.tokenizer.pieces([mask_id])[0] if masked and mask_id is not None else None,
        "max_len": network.max_len,
        "mechanisms": [
            {
                "name": name,
                "paper": MECHANISMS.find(name).paper,
                "cost": MECHANISMS.find(name).cost,
                "untrained": name != own and has_parameters(name),
                "options": describe_options(name, config.attention_options if name == own else None),
            }
            for name in list_mechanisms(body)
        ],
        "maskings": list_maskings(body),
        "causal": isinstance(body, Decoder),
    }


def open_reading(params: dict[str, Any], models: ModelStore) -> Reading:
    """Return the text of a page before its model; the last text of a model is kept."""
    name = read_name(params)
    text, pair = read_item(params)
    if not text.strip():
        raise UserError("the text is empty")
    pair = pair if pair is not None and pair.strip() else None
    network = models.network(name)
    kept: dict[tuple[str, str | None], Reading] = models.get("attention", name, lambda folder: {})
    reading = kept.get((text, pair))
    if reading is None or reading.network is not network:
        reading = Reading(network, text, pair)
        kept.clear()
        kept[text, pair] = reading
    return reading


def look(params: dict[str, Any], models: ModelStore, report: Report) -> bytes:
    """Return the answer, small maps of all heads, and one head in full.

    That is the length of a header as 4 bytes, the header as JSON, the small maps as bytes
    [layers, heads + 2, rows, columns] of 255 sqrt(weight), and the head as float32 [rows, columns]. Behind
    the heads of a layer are their mean and the roll-out up to the layer. With `only` "head", there are no
    small maps.
    """
    began = time.process_time()
    reading = open_reading(params, models)
    view = read_view(params, reading.body)
    whole, seen = reading.whole(report), reading.look(view, report)
    part = choose_part(seen.parts, params)
    off = [reading.off_heads(view, part.part, layer) for layer in range(len(part.layers))]
    layer, head = choose_head(params, part)
    alone = params.get("only") == "head"
    rolled = None if alone and head != ROLL_OUT else roll_out_part(part, off)
    chosen = pick_map(part, off, rolled, layer, head)
    small = None if alone else shrink_maps(part, off, rolled)
    answers = find_answers(reading, seen.raw, whole)
    header = {
        "parts": list(seen.parts),
        "part": part.part,
        "rows": part.rows,
        "columns": part.columns,
        "layer": layer + 1,
        "head": head,
        "layers": len(part.layers),
        "heads": next((len(one) for one in part.layers if one is not None), 0),
        "small": None if small is None else list(small.shape),
        "missing": chosen is None,
        "truncated": reading.encoded.truncated,
        "answer": describe_answers(answers, seen.raw, whole),
        "seconds": time.process_time() - began,
    }
    full = b"" if chosen is None else np.ascontiguousarray(chosen.numpy(), "<f4").tobytes()
    return pack(header, b"" if small is None else small.tobytes(), full)


def pack(header: dict[str, Any], *parts: bytes) -> bytes:
    """Return a header and parts, each of which begins at a multiple of 4 bytes."""
    text = json.dumps(header).encode()
    pieces = [struct.pack("<I", len(text)), text, *parts]
    return b"".join(piece + b" " * (-len(piece) % 4) for piece in pieces)


def choose_part(parts: dict[str, Maps], params: dict[str, Any]) -> Maps:
    name = str(params.get("part") or next(iter(parts)))
    return parts.get(name) or next(iter(parts.values()))


def choose_head(params: dict[str, Any], part: Maps) -> tuple[int, str]:
    """Return the layer, counted from 0, and the head, counted from 1, that a page shows in full."""
    heads = next((len(one) for one in part.layers if one is not None), 0)
    layer, head = str(params.get("layer") or "1"), str(params.get("head") or "1")
    if not layer.isdecimal() or not 1 <= int(layer) <= len(part.layers):
        raise UserError(f'layers are from 1 to {len(part.layers)}, not "{shorten(layer, 20)}"')
    known = head in (MEAN, ROLL_OUT) or (head.isdecimal() and 1 <= int(head) <= max(1, heads))
    if not known:
        raise UserError(f'heads are from 1 to {heads}, "{MEAN}" or "{ROLL_OUT}", not "{shorten(head, 20)}"')
    return int(layer) - 1, head


def roll_out_part(part: Maps, off: list[list[int]]) -> list[Tensor] | None:
    """Return the roll-out up to each layer; None where queries and keys are different tokens."""
    layers = [one for one in part.layers if one is not None]
    if part.part == "cross" or len(layers) < len(part.layers):
        return None
    return roll_out(layers, off)


def pick_map(
    part: Maps, off: list[list[int]], rolled: list[Tensor] | None, layer: int, head: str
) -> Tensor | None:
    """Return a map [rows, columns] as large as its names; the roll-out has nothing on a prefix."""
    weights = part.layers[layer]
    if weights is None:
        return None
    if head == MEAN:
        return average_heads(weights, off[layer])
    if head == ROLL_OUT:
        return None if rolled is None else widen(rolled[layer], weights.shape[-1])
    return weights[int(head) - 1]


def widen(square: Tensor, columns: int) -> Tensor:
    return torch.nn.functional.pad(square, (columns - square.shape[-1], 0))


def shrink_maps(part: Maps, off: list[list[int]], rolled: list[Tensor] | None) -> np.ndarray[Any, Any]:
    """Return small maps [layers, heads + 2, rows, columns], each cell the largest weight of a block."""
    heads = next((len(one) for one in part.layers if one is not None), 0)
    layers = []
    for i, weights in enumerate(part.layers):
        if weights is None:
            layers.append(torch.zeros(heads + 2, 1, 1))
            continue
        rollout = torch.zeros_like(weights[0]) if rolled is None else widen(rolled[i], weights.shape[-1])
        both = torch.stack([average_heads(weights, off[i]), rollout])
        layers.append(torch.cat([shrink(weights), shrink(both)]))
    size = max(one.shape for one in layers)
    whole = torch.stack([one if one.shape == size else one.expand(size) for one in layers])
    small: np.ndarray[Any, Any] = (255 * whole.clamp(0, 1).sqrt()).round().to(torch.uint8).numpy()
    return small


def shrink(maps: Tensor) -> Tensor:
    """Return maps [k, t, s] with at most `THUMBNAIL` rows and columns, the largest weight of each block."""
    for axis in (1, 2):
        block = -(-maps.shape[axis] // THUMBNAIL)
        if block > 1:
            short = -maps.shape[axis] % block
            fill = (0, 0, 0, short) if axis == 1 else (0, short)
            maps = torch.nn.functional.pad(maps, fill) if short else maps
            maps = maps.reshape(*maps.shape[:axis], -1, block, *maps.shape[axis + 1 :]).amax(axis + 1)
    return maps


def find_effects(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return the answer without each head that is on: values [heads, m] by part and layer."""
    began = time.process_time()
    reading = open_reading(params, models)
    view = read_view(params, reading.body)
    whole = reading.whole(report)
    now = reading.look(view, report).raw
    answers = find_answers(reading, now, whole)
    shown = answers.pick(now[None])[0]
    layers = [
        {
            "part": part,
            "layer": layer + 1,
            "values": answers.pick(outputs).tolist(),
            "off": [head + 1 for name, at, head in sorted(view.off) if (name, at) == (part, layer)],
        }
        for (part, layer), outputs in reading.without_heads(view, report).items()
    ]
    return {
        "kind": answers.kind,
        "names": answers.names,
        "values": shown.tolist(),
        "layers": layers,
        "both": isinstance(reading.body, EncoderDecoder),
        "seconds": time.process_time() - began,
    }
