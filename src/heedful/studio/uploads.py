"""Files that pages send: stored inside the studio's folder, under harmless names, up to a limit."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from heedful.data.cache import PRIVATE
from heedful.data.text_files import COMPRESSIONS, split_name
from heedful.errors import UserError
from heedful.runs.directory import slug
from heedful.studio.folder import StudioFolder

UPLOADS = "uploads"
FORMATS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet", ".arrow", ".feather", ".xlsx", ".txt")
MOST_UPLOADED = 256 << 20


def name_data_file(name: str) -> str:
    """Return a harmless name for an uploaded file of data, with the ending of its own."""
    file = Path(name.replace("\\", "/").rpartition("/")[2])
    stem, kind = split_name(file)
    if kind not in FORMATS:
        raise UserError(f"files of labeled texts end in {', '.join(FORMATS)}; this name does not")
    packed = file.suffix.lower() if file.suffix.lower() in COMPRESSIONS else ""
    return f"{slug(stem)}{kind}{packed}"


async def store_data_file(request: Request, folder: StudioFolder, name: str) -> Path:
    """Write the body of a request into a folder that is named by its content; the same file is kept once."""
    place = folder.root / UPLOADS
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > MOST_UPLOADED:
        raise too_large()
    temporary = place / f".{secrets.token_hex(8)}"
    digest, size = hashlib.sha256(), 0
    try:
        place.mkdir(mode=PRIVATE, exist_ok=True)
        if not place.resolve().is_relative_to(folder.root):
            raise UserError(f"{UPLOADS} is a link that leads out of the studio's folder; remove it")
        with temporary.open("xb") as file:
            async for part in request.stream():
                size += len(part)
                if size > MOST_UPLOADED:
                    raise too_large()
                digest.update(part)
                file.write(part)
        if not size:
            raise UserError(f"{name}: the file is empty")
        target = place / digest.hexdigest()[:10] / name
        target.parent.mkdir(mode=PRIVATE, exist_ok=True)
        temporary.replace(target)
    except OSError as error:
        raise UserError(f"the file could not be stored in {UPLOADS}: {error.strerror}") from None
    finally:
        temporary.unlink(missing_ok=True)
    return target


def too_large() -> HTTPException:
    most = f"{MOST_UPLOADED >> 20} MB"
    return HTTPException(
        413, f"the file has more than {most}; heedful solve reads larger ones where they are"
    )
