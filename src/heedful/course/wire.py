"""Messages through a pipe: a frame of JSON and raw arrays, with bounds on every size; never pickle.

A frame is the magic bytes, two lengths, the JSON text and the bytes of the arrays. In the JSON an array is
`{"__array__": number}`, and the table of arrays has the type and the shape of each.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
MAGIC = b"HDF1"
HEADER = struct.Struct(">4sIQ")
DTYPES = frozenset({"float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"})
ARRAY = "__array__"
DEEPEST = 20
MOST_DIMENSIONS = 8


class WireError(Exception):
    """A frame that is damaged, too large, or has something that cannot be sent."""


@dataclass(frozen=True)
class Limits:
    """The largest frame that is accepted."""

    text: int = 4 << 20
    """Bytes of JSON."""
    arrays: int = 256 << 20
    """Bytes of all arrays."""
    number: int = 4096
    """Number of arrays."""


LIMITS = Limits()


def encode(message: Mapping[str, Any], limits: Limits = LIMITS) -> bytes:
    """Return the frame of a message: dictionaries, lists, numbers, text, None, numpy arrays and tensors."""
    arrays: list[Array] = []
    tree = flatten(message, arrays, 0)
    table = [[str(a.dtype), list(a.shape)] for a in arrays]
    text = json.dumps({"message": tree, "arrays": table}, separators=(",", ":")).encode()
    size = sum(a.nbytes for a in arrays)
    refuse_large(len(text), size, len(arrays), limits)
    return b"".join([HEADER.pack(MAGIC, len(text), size), text, *(a.tobytes() for a in arrays)])


def flatten(value: Any, arrays: list[Array], depth: int) -> Any:
    """Replace arrays and tensors by their numbers."""
    if depth > DEEPEST:
        raise WireError(f"the message is nested deeper than {DEEPEST}")
    if isinstance(value, bool | int | float | str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): flatten(item, arrays, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [flatten(item, arrays, depth + 1) for item in value]
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        value = value.numpy()
    if isinstance(value, np.generic):
        return flatten(value.item(), arrays, depth)
    if isinstance(value, np.ndarray):
        if str(value.dtype) not in DTYPES or value.ndim > MOST_DIMENSIONS:
            raise WireError(f"an array of type {value.dtype} with {value.ndim} dimensions cannot be sent")
        arrays.append(np.ascontiguousarray(value).reshape(value.shape))
        return {ARRAY: len(arrays) - 1}
    raise WireError(f"a value of type {type(value).__name__} cannot be sent")


def refuse_large(text: int, arrays: int, number: int, limits: Limits) -> None:
    for what, size, most in (
        ("text", text, limits.text),
        ("arrays", arrays, limits.arrays),
        ("the number of arrays", number, limits.number),
    ):
        if size > most:
            raise WireError(f"the message is too large: {what} {size:,}, at most {most:,}")


def receive(read: Callable[[int], bytes], limits: Limits = LIMITS) -> dict[str, Any]:
    """Read one message with `read(n)`, which returns exactly n bytes or raises.

    Nothing is allocated before its size was compared with the limits.
    """
    magic, text_size, array_size = HEADER.unpack(read(HEADER.size))
    if magic != MAGIC:
        raise WireError("this is not a message")
    refuse_large(text_size, array_size, 0, limits)
    text, data = read(text_size), read(array_size)
    try:
        frame = json.loads(text)
        message, table = frame["message"], frame["arrays"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise WireError(f"the message is damaged: {type(error).__name__}") from error
    if not isinstance(message, dict) or not isinstance(table, list):
        raise WireError("the message is damaged: it is no dictionary")
    refuse_large(0, 0, len(table), limits)
    return dict(restore(message, cut_arrays(table, data), 0))


def cut_arrays(table: list[Any], data: bytes) -> list[Array]:
    """Return the arrays of a table; their sizes must add up to the data."""
    arrays, start = [], 0
    for entry in table:
        dtype, shape = check_entry(entry)
        count = math.prod(shape)
        stop = start + count * dtype.itemsize
        if stop > len(data):
            raise WireError("the message is damaged: its arrays are longer than its data")
        arrays.append(np.frombuffer(data, dtype, count, start).reshape(shape).copy())
        start = stop
    if start != len(data):
        raise WireError("the message is damaged: its arrays are shorter than its data")
    return arrays


def check_entry(entry: Any) -> tuple[np.dtype[Any], list[int]]:
    """Return the type and shape that an entry of the table describes."""
    if isinstance(entry, list) and len(entry) == 2 and entry[0] in DTYPES and isinstance(entry[1], list):
        shape = entry[1]
        whole = all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 40 for n in shape)
        if whole and len(shape) <= MOST_DIMENSIONS:
            return np.dtype(entry[0]), shape
    raise WireError("the message is damaged: it describes an array that cannot be")


def restore(value: Any, arrays: list[Array], depth: int) -> Any:
    """Put the arrays back into the message."""
    if depth > DEEPEST + 1:
        raise WireError(f"the message is nested deeper than {DEEPEST}")
    if isinstance(value, list):
        return [restore(item, arrays, depth + 1) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {ARRAY}:
        number = value[ARRAY]
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(arrays):
            raise WireError("the message is damaged: it names an array that it does not have")
        return arrays[number]
    return {key: restore(item, arrays, depth + 1) for key, item in value.items()}
