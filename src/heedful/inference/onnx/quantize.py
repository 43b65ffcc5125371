"""Weights as 8-bit integers, per channel, with activations that are quantized while the graph runs."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

QUANTIZED = ("MatMul", "Gemm", "Gather")
PART = re.compile(r"(?:(encoder|decoder)/)?layers\.(\d+)/(attn|cross|ff)/")


def quantize_graph(
    source: Path, target: Path, *, float32_parts: Sequence[str] = (), reduce_range: bool = False
) -> None:
    """Write a graph with 8-bit weights.

    Parameters
    ----------
    source, target
        The graphs.
    float32_parts
        Parts, as `list_parts` names them, that keep their float32 weights.
    reduce_range
        Use 7 bits for weights: processors without VNNI add products in 16 bits, which may overflow.

    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    parts = list_parts(source)
    nodes = [node for part in float32_parts for node in parts[part]]
    # The library turns a Gemm into a MatMul of this name, and an Add, before it looks for names.
    excluded = [*nodes, *(f"{node}_MatMul" for node in nodes)]
    with without_remarks(), tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / target.name
        quantize_dynamic(
            source,
            path,
            op_types_to_quantize=list(QUANTIZED),
            per_channel=True,
            reduce_range=reduce_range,
            weight_type=QuantType.QInt8,
            nodes_to_exclude=excluded,
        )
        target.write_bytes(path.read_bytes())


def list_parts(graph: Path) -> dict[str, list[str]]:
    """Return the nodes that can be quantized, by the part of the model that they are in."""
    import onnx

    model = onnx.load(str(graph), load_external_data=False)
    constants = {one.name for one in model.graph.initializer}
    parts: dict[str, list[str]] = {}
    for node in model.graph.node:
        if node.op_type in QUANTIZED and constants & set(node.input):
            parts.setdefault(name_part(node.name), []).append(node.name)
    return parts


def name_part(node: str) -> str:
    """Return the part of a node: "layer 3 attention", "embeddings" or "head"."""
    if match := PART.search(node):
        stack, number, kind = match.groups()
        words = {"attn": "attention", "cross": "cross-attention", "ff": "feed-forward"}
        return f"{stack + ' ' if stack else ''}layer {int(number) + 1} {words[kind]}"
    return "embeddings" if "/embed/" in node else "head"


@contextmanager
def without_remarks() -> Iterator[None]:
    """Silence advice on static quantization, which is given to the root logger, and gives it a handler."""
    logger = logging.getLogger()
    level, handlers = logger.level, list(logger.handlers)
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.handlers[:] = handlers
