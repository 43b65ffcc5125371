"""Tasks: which rows are in which split, the named tasks' rules, and the real files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from heedful.data import Task, cache, corpus_texts, load_task
from heedful.data.named_tasks import TaskRules
from heedful.data.splits import content_key
from heedful.data.world import make_world
from heedful.errors import UserError


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))


def write_csv(path: Path, count: int, start: int = 0, classes: int = 2) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = [f"the meal number {n} was late,{n % classes}\n" for n in range(start, start + count)]
    path.write_text("text,label\n" + "".join(lines))
    return path


def sides(task: Task) -> dict[str, str]:
    return {text: name for name, split in task.splits.items() for text in split.texts}


def test_a_header_is_found_above_many_labels(tmp_path: Path) -> None:
    rows = "".join(f"Satz Nummer {n} hier,Klasse {n % 77}\n" for n in range(1000))
    (tmp_path / "many.csv").write_text("Satz,Absicht\n" + rows)
    task = load_task(str(tmp_path / "many.csv"))
    assert len(task.label_names) == 77
    assert sum(len(split) for split in task.splits.values()) == 1000


def test_a_cache_can_be_shared(tmp_path: Path) -> None:
    old = os.umask(0o002)
    try:
        folder = cache.build_once("kind", "key", lambda made: (made / "a").write_text("a") and None)
    finally:
        os.umask(old)
    assert folder.stat().st_mode & 0o777 == 0o775
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o664}


def test_one_file_is_split_80_10_10_by_content(tmp_path: Path) -> None:
    task = load_task(str(write_csv(tmp_path / "reviews.csv", 2000)))
    sizes = {name: len(split) for name, split in task.splits.items()}
    assert list(sizes) == ["train", "dev", "test"]
    assert sum(sizes.values()) == 2000 == len(sides(task))
    assert abs(sizes["train"] - 1600) < 80
    assert abs(sizes["dev"] - 200) < 60


def test_a_row_stays_on_its_side_when_rows_come_and_go_and_move(tmp_path: Path) -> None:
    before = sides(load_task(str(write_csv(tmp_path / "a.csv", 300))))
    lines = write_csv(tmp_path / "b.csv", 400, start=100).read_text().splitlines()
    (tmp_path / "b.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")
    after = sides(load_task(str(tmp_path / "b.csv")))
    both = before.keys() & after.keys()
    assert len(both) == 200
    assert all(before[text] == after[text] for text in both)


def test_another_seed_gives_other_sides(tmp_path: Path) -> None:
    path = str(write_csv(tmp_path / "a.csv", 300))
    assert sides(load_task(path)) == sides(load_task(path, seed=0))
    assert sides(load_task(path)) != sides(load_task(path, seed=1))


def test_the_side_of_a_row_is_fixed_for_ever() -> None:
    assert content_key(0, "a", None) == 0x15D8D767D2A6EBD3
    assert content_key(0, "a", "b") == 0x76F8D1D7A4EB967A
    assert content_key(1, "a", None) == 0x52494DE452D10712


def test_copies_of_a_text_are_on_one_side_whatever_their_label(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("text,label\n" + "".join(f"meal number {n % 100} was late,{n % 3}\n" for n in range(600)))
    task = load_task(str(path))
    found = [set(split.texts) for split in task.splits.values()]
    assert not found[0] & found[1] | found[0] & found[2] | found[1] & found[2]


def test_the_manifest_says_which_row_is_where(tmp_path: Path) -> None:
    task = load_task(str(write_csv(tmp_path / "a.csv", 200)), seed=3)
    task.save_manifest(tmp_path / "manifest.tsv")
    lines = (tmp_path / "manifest.tsv").read_text().splitlines()
    assert lines[0] == "split\thash"
    for name, split in task.splits.items():
        hashes = [int(line.split("\t")[1], 16) for line in lines if line.startswith(f"{name}\t")]
        assert hashes == [content_key(3, text, None) for text in split.texts]
    kept = list((tmp_path / "cache" / "manifests").iterdir())
    assert [path.read_text() for path in kept] == [(tmp_path / "manifest.tsv").read_text()]


def test_rows_keep_the_order_of_their_file(tmp_path: Path) -> None:
    task = load_task(str(write_csv(tmp_path / "a.csv", 300)))
    numbers = [int(text.split()[3]) for text in task.splits["train"].texts]
    assert numbers == sorted(numbers)
    assert [example.text for example in task.splits["train"]] == list(task.splits["train"].texts)
    assert task.splits["train"][-1].text == task.splits["train"].texts[-1]
    assert task.splits["train"].labels is not None
    assert [n % 2 for n in numbers] == task.splits["train"].labels.tolist()


def test_split_first_goes_by_order(tmp_path: Path) -> None:
    task = load_task(str(write_csv(tmp_path / "a.csv", 100)), split="first")
    assert [len(split) for split in task.splits.values()] == [80, 10, 10]
    assert task.splits["test"].texts[0] == "the meal number 90 was late"


@pytest.mark.parametrize("dev", ["dev", "valid", "validation", "val"])
def test_a_folder_has_train_dev_and_test_under_any_usual_name(tmp_path: Path, dev: str) -> None:
    for name, start in (("train", 0), (dev, 100), ("test", 200)):
        write_csv(tmp_path / f"{name}.csv", 50, start)
    task = load_task(str(tmp_path))
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 50, "dev": 50, "test": 50}
    assert task.splits["dev"].texts[0] == "the meal number 100 was late"
    assert task.splits["dev"].how == f"{dev}.csv"


def test_without_dev_a_tenth_of_train_is_dev(tmp_path: Path) -> None:
    write_csv(tmp_path / "train.csv", 500)
    write_csv(tmp_path / "test.csv", 50, 1000)
    task = load_task(str(tmp_path))
    assert len(task.splits["train"]) + len(task.splits["dev"]) == 500
    assert 25 < len(task.splits["dev"]) < 80
    assert len(task.splits["test"]) == 50


def test_without_test_there_is_none(tmp_path: Path) -> None:
    write_csv(tmp_path / "train.csv", 50)
    write_csv(tmp_path / "dev.csv", 50, 100)
    assert list(load_task(str(tmp_path)).splits) == ["train", "dev"]


def test_a_test_file_may_lack_labels(tmp_path: Path) -> None:
    write_csv(tmp_path / "train.csv", 50)
    write_csv(tmp_path / "dev.csv", 50)
    (tmp_path / "test.csv").write_text("text\nwhat a meal\n")
    task = load_task(str(tmp_path))
    assert task.splits["test"].labels is None
    assert task.splits["test"][0].label is None


def test_splits_may_come_in_different_formats(tmp_path: Path) -> None:
    write_csv(tmp_path / "train.csv", 50)
    (tmp_path / "dev.jsonl").write_text('{"label": 1, "text": "a late meal"}\n')
    task = load_task(str(tmp_path))
    assert task.splits["dev"][0].label == 1


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["10", "9", "1"], ["1", "9", "10"]),
        (["5", "1", "3.0"], ["1", "3", "5"]),
        (["pos", "neg", "Neutral"], ["Neutral", "neg", "pos"]),
        (["0.5", "-1", "2"], ["-1", "0.5", "2"]),
    ],
)
def test_labels_keep_their_names_in_order(tmp_path: Path, labels: list[str], names: list[str]) -> None:
    lines = [f"meal number {n} was late,{labels[n % 3]}\n" for n in range(90)]
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(lines))
    task = load_task(str(tmp_path / "a.csv"))
    assert task.label_names == names
    first = task.splits["train"][0]
    number = int(first.text.split()[2])
    assert first.label is not None
    assert names[first.label] == labels[number % 3].removesuffix(".0")


@pytest.mark.parametrize(
    "labels",
    [
        ["[A]", "[B]", "[C D]"],
        ["Austin, Texas", "Lyon, France", "Paris, France", "Paris, Texas"],
        ["no", "yes", "yes, but"],
        ["a|b", "b|a"],
        ["None", "nan", "null"],
    ],
)
def test_any_string_may_be_a_name(tmp_path: Path, labels: list[str]) -> None:
    rows = [{"text": f"meal number {n} was late", "label": labels[n % len(labels)]} for n in range(90)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert load_task(str(tmp_path / "a.jsonl")).label_names == labels


@pytest.mark.parametrize(("classes", "rows"), [(77, 130), (31, 10), (30, 4)])
def test_many_classes_may_be_numbers_when_they_recur(tmp_path: Path, classes: int, rows: int) -> None:
    task = load_task(str(write_csv(tmp_path / "a.csv", classes * rows, classes=classes)))
    assert task.label_names == [str(n) for n in range(classes)]


def test_a_fingerprint_changes_with_text_label_seed_and_nothing_else(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "a.csv", 100)
    first = load_task(str(path)).fingerprint
    assert load_task(str(path)).fingerprint == first
    assert load_task(str(path), seed=1).fingerprint != first
    original = path.read_text()
    for change in (("number 7 ", "number seven "), ("number 7 was late,1", "number 7 was late,0")):
        path.write_text(original.replace(*change))
        assert load_task(str(path)).fingerprint != first
    path.write_text(original)
    (tmp_path / "moved").mkdir()
    assert load_task(str(path.rename(tmp_path / "moved" / "b.csv"))).fingerprint == first


def write_boolq(folder: Path, count: int, dev: int = 20) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, start, end in (("train", 0, count), ("dev", count, count + dev)):
        rows = [
            {"question": f"is {n} odd", "passage": f"Numbers -- {n}.", "idx": n, "label": n % 2 == 1}
            for n in range(start, end)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_boolq_takes_exactly_8000_with_the_smallest_hashes(tmp_path: Path) -> None:
    task = load_task("boolq", data_dir=write_boolq(tmp_path / "boolq", 9427))
    assert {name: len(split) for name, split in task.splits.items()} == {
        "train": 8000,
        "dev": 20,
        "test": 1427,
    }
    assert task.label_names == ["false", "true"]
    keys = {name: split.hashes(0) for name, split in task.splits.items()}
    assert keys["train"].max() < keys["test"].min()
    example = task.splits["test"][5]
    assert example.pair == f"Numbers -- {example.text.split()[1]}."
    assert example.label == int(example.text.split()[1]) % 2
    other = load_task("boolq", data_dir=tmp_path / "boolq", seed=1)
    assert set(other.splits["test"].texts) != set(task.splits["test"].texts)


def test_boolq_split_first_takes_the_first_8000(tmp_path: Path) -> None:
    task = load_task("boolq", data_dir=write_boolq(tmp_path / "boolq", 9427), split="first")
    assert list(task.splits["train"].texts[7998:]) == ["is 7998 odd", "is 7999 odd"]
    assert task.splits["test"].texts[0] == "is 8000 odd"


def test_a_smaller_boolq_keeps_the_proportion(tmp_path: Path) -> None:
    task = load_task("boolq", data_dir=write_boolq(tmp_path / "boolq", 943))
    assert [len(task.splits[name]) for name in ("train", "test")] == [800, 143]


def test_yelp_has_stars_and_line_breaks(tmp_path: Path) -> None:
    folder = tmp_path / "yelp"
    folder.mkdir()
    rows = "".join(f'"{n % 5 + 1}","Meal {n} was ""fine"".\\nWe came, we ate."\n' for n in range(50))
    for name in ("train", "valid", "test"):
        (folder / f"{name}.csv").write_text(rows)
    (folder / "unlabeled.txt").write_text("One more.\\nGood.\n\n")
    task = load_task("yelp", data_dir=folder)
    assert task.label_names == ["1", "2", "3", "4", "5"]
    assert task.splits["dev"][4].text == 'Meal 4 was "fine".\nWe came, we ate.'
    assert task.splits["dev"][4].label == 4
    assert list(corpus_texts("yelp", data_dir=folder))[-1] == "One more.\nGood."
    assert len(list(corpus_texts("yelp", data_dir=folder))) == 51


def write_birthplaces(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    people = [f"Ada Nr{n}" for n in range(40)]
    lines = [
        f"Where was {name} born?\t{['London', 'Rome', 'London'][n % 3]}\n" for n, name in enumerate(people)
    ]
    (folder / "birth_places_train.tsv").write_text("".join(lines[:25]))
    (folder / "birth_dev.tsv").write_text("".join(lines[25:35]))
    (folder / "birth_test_inputs.tsv").write_text("".join(line.split("\t")[0] + "\n" for line in lines[35:]))
    (folder / "wiki.txt").write_text("".join(f"{name}. {name} was a baker .\n" for name in people) + "\n")
    return folder


def test_birthplaces_is_text_to_text_with_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path))
    write_birthplaces(tmp_path / "birthplaces")
    task = load_task("birthplaces")
    assert (task.kind, task.label_names) == ("text2text", [])
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 25, "dev": 10, "test": 5}
    assert task.splits["train"][1].answer == "Rome"
    assert task.splits["test"][0].answer is None
    assert len(list(corpus_texts("birthplaces"))) == 40


def test_people_without_a_biography_are_a_split_of_their_own(tmp_path: Path) -> None:
    folder = write_birthplaces(tmp_path / "birthplaces")
    (folder / "birth_unseen.tsv").write_text("Where was Bo born?\tOslo\n")
    task = load_task("birthplaces", data_dir=folder)
    assert list(task.splits) == ["train", "dev", "test", "unseen"]
    assert task.splits["unseen"][0].answer == "Oslo"


@pytest.mark.parametrize(
    ("name", "kind", "classes"),
    [
        ("birthplaces", "text2text", 0),
        ("boolq", "classify", 2),
        ("reviews", "classify", 5),
        ("sentiment", "classify", 2),
    ],
)
def test_every_task_of_our_own_world_loads_by_name(name: str, kind: str, classes: int) -> None:
    task = load_task(f"world/{name}")
    assert (task.name, task.kind, len(task.label_names)) == (f"world/{name}", kind, classes)
    assert {"train", "dev", "test"} <= set(task.splits)
    assert next(iter(corpus_texts(f"world/{name}")))


def test_a_made_world_is_the_same_by_path_as_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_world(tmp_path / "w1")
    for name in ("birthplaces", "boolq", "reviews", "sentiment"):
        made, named = load_task(str(tmp_path / "w1" / name)), load_task(f"world/{name}")
        assert made.fingerprint == named.fingerprint
        assert list(made.splits) == list(named.splits)
        assert load_task(str(named.folder)).fingerprint == named.fingerprint
    assert list(corpus_texts(tmp_path / "w1" / "birthplaces")) == list(corpus_texts("world/birthplaces"))
    monkeypatch.chdir(tmp_path / "w1" / "boolq")
    assert load_task(".").fingerprint == load_task("world/boolq").fingerprint


@pytest.mark.parametrize("facts", ["", "[1]", '{"tasks": 5}', '{"tasks": {"other": {}, "boolq": {}}}'])
def test_another_world_json_gives_no_rules(tmp_path: Path, facts: str) -> None:
    write_csv(tmp_path / "other" / "train.csv", 100)
    (tmp_path / "world.json").write_text(facts)
    assert load_task(str(tmp_path / "other")).rules == TaskRules()
    assert load_task(str(tmp_path / "other" / "train.csv")).rules == TaskRules()


def test_a_task_without_files_says_how_to_give_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    with pytest.raises(
        UserError, match=r"--data-dir, or put it at \$HEEDFUL_DATA/birthplaces, or use world/"
    ):
        load_task("birthplaces")
    with pytest.raises(UserError, match="no such folder"):
        load_task("sst2", data_dir=Path("/no/where"))


def test_hub_sets_are_fetched_once_and_follow_the_same_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    calls: list[str] = []
    text = {"text": [f"meal {n} was\nlate" for n in range(100)], "label": [n % 5 for n in range(100)]}
    sentence = {"idx": [0, 1], "sentence": ["so bad", "so good"], "label": [0, 1]}
    unlabeled = {"idx": [0, 1], "sentence": ["one", "two"], "label": [-1, -1]}
    parts = {
        "Yelp/yelp_review_full": {"train": text, "test": text},
        "stanfordnlp/sst2": {"train": sentence, "validation": sentence, "test": unlabeled},
    }

    def load_dataset(name: str, config: str | None, revision: str) -> object:
        assert (config, revision) == (None, "abc")
        calls.append(name)
        return datasets.DatasetDict({k: datasets.Dataset.from_dict(v) for k, v in parts[name].items()})

    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr(
        "huggingface_hub.HfApi.dataset_info", lambda _, name, **__: SimpleNamespace(id=name, sha="abc")
    )
    for _ in range(2):
        task = load_task("yelp")
    assert task.label_names == ["1", "2", "3", "4", "5"]
    assert list(task.splits) == ["train", "dev", "test"]
    task = load_task("sst2")
    assert task.splits["test"].labels is None
    assert np.array_equal(task.splits["dev"].labels, [0, 1])
    assert calls == ["Yelp/yelp_review_full", "stanfordnlp/sst2"]


def test_an_unreachable_hub_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("datasets")

    def unreachable(*_: object, **__: object) -> None:
        raise ConnectionError("name or service not known\nmore")

    monkeypatch.delenv("HEEDFUL_DATA", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", unreachable)
    with pytest.raises(
        UserError, match=r"google/boolq cannot be downloaded from the Hub \(name or .* known\); give its"
    ):
        load_task("boolq")


def test_a_corpus_is_a_file_a_folder_or_one_split(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.txt").write_text("first line\n\n  \nwith\ttab\r\n")
    (tmp_path / "a" / "two.jsonl").write_text('{"question": "q", "passage": "p"}\n')
    assert list(corpus_texts(tmp_path / "a")) == ["first line", "with\ttab", "q", "p"]
    assert list(corpus_texts(tmp_path / "a" / "one.txt")) == ["first line", "with\ttab"]
    (tmp_path / "ptb").mkdir()
    for split in ("train", "valid"):
        (tmp_path / "ptb" / f"ptb.{split}.txt").write_text(f"the {split} text\n")
    assert list(corpus_texts(tmp_path / "ptb")) == ["the train text"]
    assert list(corpus_texts(tmp_path / "ptb", split="dev")) == ["the valid text"]
    with pytest.raises(UserError, match="no test split; there are train, dev"):
        corpus_texts(tmp_path / "ptb", split="test")


def test_a_task_as_corpus_never_shows_dev_or_test(tmp_path: Path) -> None:
    write_csv(tmp_path / "task" / "train.csv", 200)
    write_csv(tmp_path / "task" / "test.csv", 20, 500)
    task = load_task(str(tmp_path / "task"))
    assert list(corpus_texts(tmp_path / "task")) == list(task.splits["train"].texts)


@pytest.mark.parametrize(
    ("name", "rows", "labels"),
    [
        ("boolq", {"train": 8000, "dev": 3270, "test": 1427}, ["false", "true"]),
        ("sst2", {"train": 6920, "dev": 872, "test": 1821}, ["0", "1"]),
        ("yelp", {"train": 6000, "dev": 500, "test": 500}, ["1", "2", "3", "4", "5"]),
        ("birthplaces", {"train": 2000, "dev": 500, "test": 437}, []),
    ],
)
def test_real_files_load_as_they_are(
    real_data: Path, name: str, rows: dict[str, int], labels: list[str]
) -> None:
    task = load_task(name, data_dir=real_data / name)
    assert {split: len(part) for split, part in task.splits.items()} == rows
    assert task.label_names == labels
    if name == "boolq":
        true = sum(int(task.splits[split].labels.sum()) for split in ("train", "test"))
        assert (true, int(task.splits["dev"].labels.sum())) == (5874, 2033)


@pytest.mark.parametrize(
    ("source", "split", "lines"),
    [("ptb", "train", 42068), ("ptb", "dev", 3370), ("lm1b", "test", 12105), ("birthplaces", "train", 2937)],
)
def test_real_corpora_load_as_they_are(real_data: Path, source: str, split: str, lines: int) -> None:
    place = {"data_dir": real_data / source} if source == "birthplaces" else {}
    name = source if place else str(real_data / source)
    assert sum(1 for _ in corpus_texts(name, split=split, **place)) == lines
