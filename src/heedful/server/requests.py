"""The body of a request: one text, a pair, or a list of either."""

from __future__ import annotations

import re

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from heedful.server.batching import Item

MOST_TEXTS = 1000
"""Texts per request."""
VISIBLE = r"[^\s\x1c-\x1f\x85\ufeff]"
"""What a text must have: a character that no dialect of regular expressions takes for white space."""
MOST_CHARACTERS = 100_000
"""Characters per text."""


class PredictRequest(msgspec.Struct, forbid_unknown_fields=True):
    text: str | msgspec.UnsetType = msgspec.UNSET
    pair: str | msgspec.UnsetType = msgspec.UNSET
    texts: list[str | tuple[str, str]] | msgspec.UnsetType = msgspec.UNSET


async def read_body(request: Request, limit: int) -> bytes:
    """Read a body of at most `limit` bytes; a larger one is refused as soon as that is known."""
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > limit:
        raise HTTPException(413, f"the body has {int(stated):,} bytes; at most {limit:,} are read")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise HTTPException(413, f"the body has more than {limit:,} bytes")
        parts.append(part)
    return b"".join(parts)


def parse_items(body: bytes, content_type: str, pairs: bool | None) -> tuple[list[Item], bool]:
    """Return the texts of a request, and whether it has a single one; `pairs` is what the model reads."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "the body must be JSON, with Content-Type: application/json")
    try:
        asked = msgspec.json.decode(body, type=PredictRequest)
    except msgspec.ValidationError as error:
        raise HTTPException(422, f"the request has another form: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    single = asked.text is not msgspec.UNSET
    if single == (asked.texts is not msgspec.UNSET) or (asked.pair is not msgspec.UNSET and not single):
        raise HTTPException(422, 'send either "text", with "pair" for a pair, or "texts"')
    if isinstance(asked.text, str):
        items: list[Item] = [(asked.text, asked.pair if isinstance(asked.pair, str) else None)]
    else:
        assert isinstance(asked.texts, list)
        items = [(one, None) if isinstance(one, str) else one for one in asked.texts]
    check_items(items, pairs)
    return items, single


def check_items(items: list[Item], pairs: bool | None) -> None:
    if not items:
        raise HTTPException(422, '"texts" is empty: there is nothing to label')
    if len(items) > MOST_TEXTS:
        raise HTTPException(413, f"the request has {len(items):,} texts; send at most {MOST_TEXTS:,}")
    for number, item in enumerate(items, 1):
        where = "the text" if len(items) == 1 else f"text {number}"
        if pairs is not None and (item[1] is not None) != pairs:
            raise HTTPException(422, f"{where}: this model labels {'pairs' if pairs else 'single texts'}")
        for text in item:
            if text is not None and not re.search(VISIBLE, text):
                raise HTTPException(422, f"{where} is empty: there is nothing to label")
            if text is not None and len(text) > MOST_CHARACTERS:
                raise HTTPException(413, f"{where} has {len(text):,} characters; at most {MOST_CHARACTERS:,}")
