"""The token cache: computed once, never stale, never half, rebuilt when damaged."""

from __future__ import annotations

import multiprocessing
import os
import time
from array import array
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from heedful.data import cache, load_task, open_corpus, tokenize, tokens
from heedful.errors import UserError
from heedful.text.bulk_encoder import EncodedTexts

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Letters:
    """A tokenizer for tests: a letter is its code, and a pair is separated by 0."""

    def __init__(self, shift: int = 0, vocab_size: int = 1000) -> None:
        self.shift, self.vocab_size, self.calls = shift, vocab_size, 0
        self.fingerprint = f"letters {shift} {vocab_size}"
        self.special_ids = frozenset([0])

    def bulk(self, *, paired: bool, max_len: int | None, special: bool, long_texts: str = "cut") -> Letters:
        self.max_len, self.special = max_len, special
        return self

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None) -> EncodedTexts:
        self.calls += 1
        ids, types, lengths, cut = array("I" if self.vocab_size > 2**16 else "H"), b"", array("q"), 0
        for place, text in enumerate(texts):
            row = [0] * self.special + [(ord(c) + self.shift) % self.vocab_size for c in text]
            kinds = bytes(len(row))
            if pairs is not None:
                second = [ord(c) % self.vocab_size for c in pairs[place]]
                row, kinds = row + second, kinds + b"\1" * len(second)
            cut += self.max_len is not None and len(row) > self.max_len
            ids.extend(row[: self.max_len])
            types += kinds[: self.max_len]
            lengths.append(len(row[: self.max_len]))
        return EncodedTexts(ids.tobytes(), None if pairs is None else types, lengths, cut)


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_text("".join(line + "\n" for line in lines))
    return path


LINES = [f"line {n} of the corpus" for n in range(50)]


def test_ids_come_back_as_they_were_encoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "BATCH_CHARS", 100)
    found = tokenize(write(tmp_path / "a.txt", LINES), Letters())
    assert len(found) == 50
    for place, line in enumerate(LINES):
        assert found[place].tolist() == [0, *map(ord, line)]
    assert found[-1].tolist() == [0, *map(ord, LINES[-1])]
    assert found.lengths.tolist() == [len(line) + 1 for line in LINES]
    assert found.ids.dtype == np.uint16
    counts = np.bincount(np.concatenate([found[n] for n in range(50)]), minlength=1000)
    assert found.counts(1000).tolist() == counts.tolist()
    assert isinstance(found.ids, np.memmap)


def test_large_vocabularies_get_wider_numbers(tmp_path: Path) -> None:
    found = tokenize(write(tmp_path / "a.txt", ["x"]), Letters(shift=100_000, vocab_size=200_000))
    assert found[0].tolist() == [0, 100_000 + ord("x")]


def test_pairs_keep_their_types_and_cuts_are_counted(tmp_path: Path) -> None:
    rows = "".join(f'{{"question": "q{n}", "passage": "p{"p" * n}", "label": {n % 2}}}\n' for n in range(10))
    (tmp_path / "train.jsonl").write_text(rows)
    (tmp_path / "dev.jsonl").write_text(rows)
    split = load_task(str(tmp_path)).splits["train"]
    found = tokenize(split, Letters(), max_len=6)
    assert found[2].tolist() == [0, *map(ord, "q2ppp")]
    assert found.types(2).tolist() == [0, 0, 0, 1, 1, 1]
    assert found.truncated_rows == 7
    assert tokenize(split, Letters(), special=False)[0].tolist() == [*map(ord, "q0p")]


def test_what_is_read_of_long_texts_is_part_of_the_key(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", LINES)
    whole, cut = tokenize(path, Letters()), tokenize(path, Letters(), max_len=9)
    assert tokenize(path, Letters(), max_len=9, long_texts="cut").folder == cut.folder
    assert tokenize(path, Letters(), max_len=9, long_texts="head-tail").folder != cut.folder
    assert tokenize(path, Letters(), long_texts="head-tail").folder == whole.folder


def test_the_same_content_is_encoded_once_wherever_it_lies(tmp_path: Path) -> None:
    tokenizer = Letters()
    tokenize(write(tmp_path / "a.txt", LINES), tokenizer)
    tokenize(write(tmp_path / "b.txt", LINES), tokenizer)
    assert tokenizer.calls == 1


def test_another_text_tokenizer_or_option_never_meets_a_stale_cache(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", LINES)
    before = path.stat()
    assert tokenize(path, Letters())[0].tolist() == [0, *map(ord, LINES[0])]
    assert tokenize(path, Letters(shift=1))[0][1] == ord("l") + 1
    assert len(tokenize(path, Letters(), max_len=3)[0]) == 3
    assert len(tokenize(path, Letters(), special=False)[0]) == len(LINES[0])
    # The same size, and the same time of change: only the bytes differ.
    write(path, [LINES[0].replace("line", "LINE"), *LINES[1:]])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    assert tokenize(path, Letters())[0].tolist() == [0, *map(ord, LINES[0].replace("line", "LINE"))]


def test_a_remembered_hash_is_dropped_when_a_large_file_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MEMO_FROM_BYTES", 0)
    path = write(tmp_path / "a.txt", LINES)
    first = cache.hash_content(path)
    assert not list((tmp_path / "cache").glob("hashes/*"))  # too fresh to be remembered
    monkeypatch.setattr(cache, "SETTLED_NS", 0)
    assert cache.hash_content(path) == first
    with monkeypatch.context() as patched:
        patched.setattr(cache, "hash_file", lambda _: pytest.fail("read again although nothing changed"))
        assert cache.hash_content(path) == first
    stat = path.stat()
    time.sleep(0.05)
    write(path, [line.upper() for line in LINES])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert path.stat().st_mtime_ns == stat.st_mtime_ns
    assert cache.hash_content(path) != first


@pytest.mark.parametrize("file", ["ids.bin", "offsets.bin", "facts.json", "seal.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_cache_is_built_again(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, file: str, damage: str
) -> None:
    path = write(tmp_path / "a.txt", LINES)
    right = tokenize(path, Letters()).ids.tolist()
    (victim,) = own_cache.glob(f"tokens/*/{file}")
    content = bytearray(victim.read_bytes())
    if damage == "remove":
        victim.unlink()
    elif damage == "cut":
        victim.write_bytes(content[: len(content) // 2])
    else:
        content[len(content) // 2] ^= 0xFF
        victim.write_bytes(content)
    monkeypatch.setattr(cache, "_intact", set())  # as in a new process
    tokenizer = Letters()
    assert tokenize(path, tokenizer).ids.tolist() == right
    assert tokenizer.calls == 1
    assert not list(own_cache.glob("tokens/.making-*"))


def test_a_failed_build_leaves_nothing(tmp_path: Path, own_cache: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good line\nbad \x81 line\n")
    with pytest.raises(UserError, match=r"a\.txt line 2"):
        tokenize(path, Letters())
    assert not list((own_cache / "tokens").iterdir())


def test_a_file_that_grows_while_it_is_read_is_not_cached(tmp_path: Path, own_cache: Path) -> None:
    path = write(tmp_path / "a.txt", LINES)

    class Growing(Letters):
        def encode(self, texts: Sequence[str], pairs: Sequence[str] | None) -> EncodedTexts:
            with path.open("a") as file:
                file.write("one more\n")
            return super().encode(texts, pairs)

    with pytest.raises(UserError, match="changed while it was being read"):
        tokenize(path, Growing())
    assert not list((own_cache / "tokens").iterdir())


def build_slowly(
    home: str, path: str, barrier: multiprocessing.synchronize.Barrier, out: multiprocessing.Queue
) -> None:
    os.environ["HEEDFUL_CACHE"] = home

    class Slow(Letters):
        def encode(self, texts: Sequence[str], pairs: Sequence[str] | None) -> EncodedTexts:
            time.sleep(0.2)
            return super().encode(texts, pairs)

    barrier.wait()
    out.put(tokenize(path, Slow()).ids.tolist())


def test_processes_that_build_the_same_entry_do_not_disturb_each_other(
    tmp_path: Path, own_cache: Path
) -> None:
    path = write(tmp_path / "a.txt", LINES)
    context = multiprocessing.get_context("fork")
    barrier, out = context.Barrier(3), context.Queue()
    workers = [
        context.Process(target=build_slowly, args=(str(own_cache), str(path), barrier, out)) for _ in range(3)
    ]
    for worker in workers:
        worker.start()
    results = [out.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert results[0] == results[1] == results[2] == tokenize(path, Letters()).ids.tolist()
    assert len(list((own_cache / "tokens").iterdir())) == 1


def test_what_dead_processes_left_is_removed_after_a_day(tmp_path: Path, own_cache: Path) -> None:
    old, young = own_cache / "tokens" / ".making-old", own_cache / "tokens" / ".making-young"
    for folder in (old, young):
        folder.mkdir(parents=True)
    os.utime(old, (0, 0))
    tokenize(write(tmp_path / "a.txt", LINES), Letters())
    assert not old.exists()
    assert young.exists()


def test_a_cache_that_cannot_be_written_names_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "file"))
    with pytest.raises(UserError, match="set HEEDFUL_CACHE to a folder"):
        tokenize(write(tmp_path / "a.txt", LINES), Letters())


def test_the_cache_home_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    assert cache.get_cache_folder() == Path("/x/heedful")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.get_cache_folder() == Path.home() / ".cache" / "heedful"


def test_a_real_tokenizer_gives_its_own_ids(tmp_path: Path) -> None:
    from heedful.text import train

    tokenizer = train(LINES, kind="bpe", vocab_size=400)
    found = tokenize(open_corpus(write(tmp_path / "a.txt", LINES)), tokenizer)
    assert found[7].tolist() == tokenizer.encode(LINES[7]).ids
