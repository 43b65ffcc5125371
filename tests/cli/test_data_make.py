"""`heedful data make world`."""

from __future__ import annotations

import json


def test_a_world_is_made_and_its_best_results_are_told(heedful, tmp_path):
    made = heedful("data", "make", "world", tmp_path / "w", "--people", 100)
    assert made.status == 0
    assert "best possible exact_match" in made.out
    assert "train 9,427" in made.out
    for file in (
        "birthplaces/wiki.txt",
        "boolq/train.jsonl",
        "reviews/train.csv",
        "sentiment/dev.tsv",
        "world.json",
    ):
        assert (tmp_path / "w" / file).stat().st_size


def test_json_holds_what_world_json_does(heedful, tmp_path):
    made = heedful("data", "make", "world", tmp_path / "w", "--people", 100, "--name-signal", 1, "--json")
    facts = json.loads(made.out)
    assert facts.pop("folder") == str(tmp_path / "w")
    assert facts == json.loads((tmp_path / "w" / "world.json").read_text("utf-8"))
    births = facts["tasks"]["birthplaces"]
    assert births["best_possible_on_unseen"] > 3 * births["largest_town_share"]


def test_mistakes_are_one_line_with_status_2(heedful, tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "mine.txt").write_text("x")
    for arguments in (
        ["data", "make", "world", tmp_path / "w"],
        ["data", "make", "world", tmp_path / "v", "--people", "many"],
        ["data", "make", "world", tmp_path / "v", "--people", 0],
        ["data", "make", "world", tmp_path / "v", "--name-signal", 2],
        ["data", "make", "world"],
        ["data", "make", "word", tmp_path / "v"],
    ):
        failed = heedful(*arguments)
        assert failed.status == 2
        assert failed.out == ""
        assert failed.err.count("\n") == 1
        assert failed.err.startswith("heedful: ")
    assert [p.name for p in tmp_path.iterdir()] == ["w"]


def test_help_names_every_option(heedful):
    shown = heedful("data", "make", "world", "--help")
    assert shown.status == 0
    for option in ("DIR", "--people", "--seed", "--name-signal", "--overwrite", "--json"):
        assert option in shown.out
