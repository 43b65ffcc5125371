"""How files are spoiled: every rule is a function of a seeded generator, so that each attack can be repeated."""

from __future__ import annotations

import copy
import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 10**6, 10**12, 10**30, -(2**63), 2**64, 0.5, -0.5, 1e300, -1e300, 2.0,
    "", "x", "0", "nan", "1e5", "/dev/zero", "../../etc", "~nouser/x", "\x00", "\x1b[31m", "\ud800", "x" * 5000,
    "<script>alert(1)</script>", "=1+1", "{{x}}", "${x}", "é" * 300, [], {}, [[]], [None], [1, "a"], {"a": {}},
    {"": 0}, [0] * 1000, {"x": 10**30}, [[1, 2], [3]], "٣", "1_000", "0x10",
)  # fmt: skip
LITERALS = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "-" + "9" * 400, "[" * 3000 + "]" * 3000)
WHOLE = (
    b"", b"\0" * 64, b"\xff\xfe", b"\xef\xbb\xbf{}", b"[]", b"{}", b"5", b'"x"', b"null", b"true", b"NaN", b"[" * 100_000,
    b'{"a":' * 100_000, b"9" * 100_000, b"{" * 50 + b"}" * 50, b'{"a": 1, "a": 2}', b"{'a': 1}", b'{"a": 1,}', b"\x1f\x8b\x08",
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to everything in a JSON value, at most the first 30 of a list or an object."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items)[:30]:
        found += places(item, (*path, key))
    return found


def spoil_json(rng: random.Random, content: bytes) -> bytes:
    """Change one to three places of a JSON text, or all of it."""
    kind = rng.random()
    if kind < 0.15:
        return rng.choice(WHOLE)
    if kind < 0.25:
        return spoil_bytes(rng, content)
    value = copy.deepcopy(json.loads(content))
    literal = None
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        options = places(value)
        if not options:
            break
        *above, key = rng.choice(options)
        holder = value
        for step in above:
            holder = holder[step]
        action = rng.random()
        if action < 0.15:
            del holder[key]
        elif action < 0.25:
            holder[key] = "@LITERAL@"
            literal = rng.choice(LITERALS)
        elif action < 0.35 and isinstance(holder, dict):
            holder[rng.choice(("x", "", "../x", "\ud800", "a" * 3000, "1"))] = copy.deepcopy(
                rng.choice(ODD_VALUES)
            )
        else:
            holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))
    text = json.dumps(value)
    if literal is not None:
        text = text.replace('"@LITERAL@"', literal)
    return text.encode()


def spoil_rows(rng: random.Random, content: bytes) -> bytes:
    """Change a row of a file with one JSON object per line, or its lines."""
    lines = content.splitlines() or [b"{}"]
    at = rng.randrange(len(lines))
    action = rng.random()
    if action < 0.6:
        lines[at] = spoil_json(rng, lines[at]).replace(b"\n", b" ")
    elif action < 0.7:
        del lines[at:]
    elif action < 0.8:
        lines = [lines[at]] * 300
    else:
        lines.insert(at, rng.choice(WHOLE).replace(b"\n", b" "))
    return b"\n".join(lines) + (b"\n" if rng.random() < 0.8 else b"")


def spoil_toml(rng: random.Random, content: bytes) -> bytes:
    """Change the value of a key, a table or a line."""
    lines = content.decode().splitlines()
    at = rng.randrange(len(lines))
    values = ("5", '"x"', "nan", "inf", "-1", "[]", "{}", "1e300", str(10**30), "true", '""', "[1, 'a']", "9" * 5000,
              '"\\u0000"', "1979-05-27", "[" * 500 + "]" * 500, '"' + "x" * 5000 + '"')  # fmt: skip
    if "=" in lines[at] and rng.random() < 0.8:
        lines[at] = f"{lines[at].split('=')[0]}= {rng.choice(values)}"
    else:
        lines[at] = rng.choice(
            ("", "[x]", "[adapt]", "a.b.c = 1", ".".join("a" * 3000) + " = 1", "\0", "= 1", "[[adapt]]")
        )
    return "\n".join(lines).encode()


def spoil_bytes(rng: random.Random, content: bytes) -> bytes:
    """Flip, cut, repeat or insert bytes."""
    data = bytearray(content)
    action = rng.choice(("flip", "cut", "insert", "header", "double", "zero"))
    if action == "cut":
        return bytes(data[: rng.randrange(len(data) + 1)])
    if action == "double":
        return bytes(data + data)
    if action == "zero":
        start = rng.randrange(len(data) + 1)
        data[start : start + 200] = b"\0" * len(data[start : start + 200])
        return bytes(data)
    for _ in range(rng.choice((1, 3, 20))):
        at = rng.randrange(min(len(data), 300) if action == "header" and data else len(data) or 1)
        if action == "insert":
            data[at:at] = rng.randbytes(rng.choice((1, 8, 100)))
        elif data:
            data[at] = rng.randrange(256)
    return bytes(data)


def spoil_table(rng: random.Random, content: bytes) -> bytes:
    """Change a file of texts and labels: its bytes, its line ends, its quotes, its columns."""
    action = rng.randrange(12)
    lines = content.split(b"\n")
    at = rng.randrange(len(lines))
    if action == 0:
        return content.replace(
            b"\n", rng.choice((b"\r\r\n", b"\r", b"\n\r", b"\x0b", b"\xe2\x80\xa8", b"\0"))
        )
    if action == 1:
        lines[at] = b"\xef\xbb\xbf" + lines[at]
    elif action == 2:
        lines[at] = b'"' + lines[at]
    elif action == 3:
        lines[at] = lines[at] + b"," * rng.choice((1, 2, 5000))
    elif action == 4:
        lines[at] = rng.choice((b"=cmd|' /C calc'!A0", b"+1+1", b"@SUM(A1)", b"-2")) + b",yes"
    elif action == 5:
        lines[0] = rng.choice(
            (
                b"",
                b"text,text",
                b"label",
                b"text,label,label",
                b'"text","lab\nel"',
                b"\xff,label",
                b"a" * 9000,
            )
        )
    elif action == 6:
        lines[at] = b"x" * rng.choice((10_000, 5 * 2**20)) + b",yes"
    elif action == 7:
        lines = [lines[0]] + [b"one text,%d" % i for i in range(500)]
    elif action == 8:
        return content.decode().encode(rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp037")))
    elif action == 9:
        return rng.choice(WHOLE)
    else:
        return spoil_bytes(rng, content)
    return b"\n".join(lines)


Spoil = Callable[[random.Random, bytes], bytes]


def replace_kind(rng: random.Random, path: Path) -> str:
    """Put something that is no regular file in the place of a file, or one without an end."""
    kind = rng.choice(
        (
            "pipe",
            "folder",
            "loop",
            "zero",
            "random",
            "nothing",
            "dangling",
            "socket",
            "sparse",
            "full",
            "self",
        )
    )
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "loop":
        path.symlink_to(path.name)
    elif kind in ("zero", "random", "full"):
        path.symlink_to({"zero": "/dev/zero", "random": "/dev/urandom", "full": "/dev/full"}[kind])
    elif kind == "self":
        path.symlink_to("/proc/self/mem")
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "socket":
        place = Path.cwd()
        os.chdir(path.parent)  # the path of a socket may have no more than 107 bytes
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
        os.chdir(place)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(2**42)
    return kind
