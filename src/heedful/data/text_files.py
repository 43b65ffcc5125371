"""Lines of text files: compressed or not, in UTF-8, UTF-16 or Windows' Western European encoding."""

from __future__ import annotations

import codecs
import io
import lzma
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from heedful.data.bad_rows import BadRows
from heedful.data.cache import describe_os_error, file_identity
from heedful.data.notices import notify
from heedful.errors import UserError
from heedful.runs.json_files import check_regular

MAX_ROW_BYTES = 4 * 2**20
BUFFER_BYTES = 2**20
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz"}
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
WESTERN = "cp1252"
WESTERN_TITLE = f"Windows' Western European encoding ({WESTERN})"
VALID_LINES_PER_BROKEN = 4
"""A file with at least this many lines in UTF-8 per line that is not is UTF-8 with broken lines."""


def split_name(path: Path) -> tuple[str, str]:
    """Return a file's name without its suffixes, and its suffix without that of a compression."""
    inner = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return inner.stem, inner.suffix.lower()


def open_bytes(path: Path) -> BinaryIO:
    """Open a file to read its bytes, decompressed as its suffix says."""
    check_regular(path)
    compression = COMPRESSIONS.get(path.suffix.lower())
    if compression is None:
        return path.open("rb", buffering=BUFFER_BYTES)
    if compression == "xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    import pyarrow as pa

    stream: Any = pa.input_stream(str(path), compression=compression)
    return io.BufferedReader(stream, BUFFER_BYTES)


def describe_read_error(path: Path, error: Exception) -> UserError:
    """Return the error for a file that cannot be read or decompressed."""
    if isinstance(error, OSError) and (error.errno or path.suffix.lower() not in COMPRESSIONS):
        return UserError(f"{path}: {describe_os_error(error)}")
    return UserError(f"{path}: cannot be decompressed ({error}); is it complete?")


READ_ERRORS = (OSError, EOFError, lzma.LZMAError)


def detect_encoding(path: Path) -> str:
    """Return the codec of a text file: utf-8, utf-8-sig, utf-16 or cp1252, which is announced."""
    try:
        return find_encoding(path, tuple(file_identity(path)))
    except READ_ERRORS as error:
        raise describe_read_error(path, error) from None


@lru_cache(maxsize=256)
def find_encoding(path: Path, _identity: tuple[int | str, ...]) -> str:
    with open_bytes(path) as file:
        start = file.read(4)
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding
    if is_utf8(path) or split_name(path)[1] in (".jsonl", ".json", ".ndjson") or not is_western(path):
        return "utf-8"
    notify(
        f"{path}: is not UTF-8 and is read as {WESTERN_TITLE}; if that is wrong, convert it, "
        f"for example: iconv -f cp1251 -t utf-8"
    )
    return WESTERN


def is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as file:
        try:
            while chunk := file.read(BUFFER_BYTES):
                decoder.decode(chunk)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def is_western(path: Path) -> bool:
    """Return whether a file is Windows' encoding rather than UTF-8 with a few broken lines or binary data."""
    valid = broken = 0
    with open_bytes(path) as file:
        while line := file.readline(MAX_ROW_BYTES):
            if line.isascii():
                continue
            try:
                line.decode()
                valid += 1
            except UnicodeDecodeError:
                broken += 1
                try:
                    line.decode(WESTERN)
                except UnicodeDecodeError:
                    return False
    return valid < VALID_LINES_PER_BROKEN * broken


def decode_text(raw: bytes) -> tuple[str, str]:
    """Return a whole text and its encoding; bytes that mean nothing there become replacement characters."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            return raw.decode(encoding, "replace"), encoding
    try:
        return raw.decode(), "utf-8"
    except UnicodeDecodeError:
        return raw.decode(WESTERN, "replace"), WESTERN


class Recoder(io.RawIOBase):
    """A file in another encoding, read as UTF-8."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self.file, self.decoder = file, codecs.getincrementaldecoder(encoding)()
        self.waiting, self.ended = b"", False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.waiting and not self.ended:
            raw = self.file.read(2**16)
            self.ended = not raw
            self.waiting = self.decoder.decode(raw, final=self.ended).encode()
        count = min(len(buffer), len(self.waiting))
        buffer[:count] = self.waiting[:count]
        self.waiting = self.waiting[count:]
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


def open_utf8(path: Path) -> BinaryIO:
    """Open a text file to read its bytes as UTF-8, without a byte order mark unless it is UTF-8's own."""
    encoding = detect_encoding(path)
    file = open_bytes(path)
    if encoding.startswith("utf-8"):
        return file
    return cast(BinaryIO, io.BufferedReader(Recoder(file, encoding), BUFFER_BYTES))


def read_lines(path: Path, bad: BadRows | None = None) -> Iterator[tuple[int, str]]:
    """Yield (number, line with its end) of a text file without its byte order mark.

    A line that is not text is an error, or is marked in `bad` for the reader that knows which row it is in.
    """
    bad = bad or BadRows(strict=True)
    number = 0
    try:
        with open_utf8(path) as file:
            while raw := file.readline(MAX_ROW_BYTES + 1):
                number += 1
                if len(raw) > MAX_ROW_BYTES:
                    raise too_long_error(path, number)
                if number == 1:
                    raw = check_first_line(path, raw)
                raw = check_marks(path, raw)
                if b"\0" in raw:
                    bad.mark_line(path, number, "a NUL byte; save the file as UTF-8 text (not UTF-16)")
                try:
                    yield number, raw.decode()
                except UnicodeDecodeError as error:
                    byte = f"byte {error.start + 1} is not UTF-8 (0x{raw[error.start]:02x})"
                    advice = "convert the file, for example: iconv -f latin1 -t utf-8"
                    bad.mark_line(path, number, f"{byte}; {advice}")
                    yield number, raw.decode(errors="replace")
    except UnicodeDecodeError:
        raise UserError(f"{path} line {number + 1}: is not UTF-16; save the file as UTF-8") from None
    except READ_ERRORS as error:
        raise describe_read_error(path, error) from None


def check_first_line(path: Path, raw: bytes) -> bytes:
    """Drop a byte order mark; refuse line ends that would make the whole file one row."""
    if not raw.endswith(b"\n") and b"\r" in raw.rstrip(b"\r"):
        raise UserError(f"{path} line 1: lines end with a carriage return alone; end them with \\n")
    return raw.removeprefix(codecs.BOM_UTF8)


def check_marks(path: Path, raw: bytes) -> bytes:
    """Name byte order marks inside a file, which joining files leaves, and drop doubled carriage returns."""
    if codecs.BOM_UTF8 in raw:
        notify(
            f"{path} has byte order marks inside, which stay in the texts; if files were joined, remove them"
        )
    if raw.endswith(b"\r\r\n"):
        notify(f"{path}: lines end with two carriage returns, which count as one line end")
        raw = raw.rstrip(b"\r\n") + b"\r\n"
    return raw


def too_long_error(path: Path, number: int, unit: str = "line") -> UserError:
    return UserError(
        f"{path} {unit} {number}: longer than {MAX_ROW_BYTES // 2**20} MB; one row is one text: split it "
        f"(for example: fold -s -w 10000), or close an open quote"
    )


def strip_line_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def detect_line_end(path: Path) -> str:
    """Return how the lines of a file end, by its first one."""
    return next(("\r\n" if line.endswith("\r\n") else "\n" for _, line in read_lines(path)), "\n")
