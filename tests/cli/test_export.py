"""What is exported is loaded by the tools people have, and gives the same logits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor

from heedful.inference.loading import load_run

TEXTS = ["lovely warm staff and fresh food", "the room was dirty", "again"]
quiet = pytest.mark.filterwarnings("ignore::UserWarning:peft", "ignore::DeprecationWarning")


def ours(run: Path) -> Tensor:
    """The run's own logits."""
    adapted = load_run(run)
    encoded = [adapted.tokenizer.encode(text, max_len=32) for text in TEXTS]
    longest = max(len(e.ids) for e in encoded)
    ids = torch.tensor([[*e.ids, *[0] * (longest - len(e.ids))] for e in encoded])
    with torch.no_grad():
        logits: Tensor = adapted.model(
            ids, (torch.arange(longest) < torch.tensor([[len(e.ids)] for e in encoded]))
        )
    return logits


def theirs(model: Any, folder: Path) -> Tensor:
    """Transformers' logits, with the tokenizer in the folder."""
    tokenizer = hf.AutoTokenizer.from_pretrained(folder)
    with torch.no_grad():
        logits: Tensor = model.eval()(**tokenizer(TEXTS, padding=True, return_tensors="pt")).logits
    return logits


@pytest.mark.parametrize(("method", "options"), [
    ("full", []), ("full", ["--merge"]), ("lora", ["--merge"]), ("bitfit", ["--merge"]), ("head", ["--merge"]),
])  # fmt: skip
def test_transformers_loads_what_was_exported_with_the_same_logits(
    heedful: Callable[..., Any],
    run_of: Callable[[str], Path],
    tmp_path: Path,
    method: str,
    options: list[str],
) -> None:
    done = heedful("export", run_of(method), tmp_path / "out", *options)
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1] == "loads with transformers"
    model = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert type(model).__name__ == "BertForSequenceClassification"
    assert model.config.id2label == {0: "bad", 1: "good"}
    torch.testing.assert_close(theirs(model, tmp_path / "out"), ours(run_of(method)), rtol=0, atol=1e-5)


@quiet
def test_peft_loads_an_exported_lora_by_its_folder_alone(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tiny_bert: Path, tmp_path: Path
) -> None:
    peft = pytest.importorskip("peft", reason="peft is part of the extra `bench`")
    done = heedful("export", run_of("lora"), tmp_path / "out", "--json")
    facts = json.loads(done.out)
    assert facts["loads_with"] == "peft"
    assert facts["why_not"] is None
    assert "tokenizer.json" in facts["files"]
    model = peft.AutoPeftModelForSequenceClassification.from_pretrained(tmp_path / "out")
    torch.testing.assert_close(theirs(model, tmp_path / "out"), ours(run_of("lora")), rtol=0, atol=1e-5)
    assert json.loads((tmp_path / "out/adapter_config.json").read_text())["base_model_name_or_path"] == str(
        tiny_bert
    )


@pytest.mark.parametrize(("method", "reason"), [
    ("head", "peft has no head"), ("bitfit", "peft has no bitfit"), ("prompt", "peft pools the first virtual token"),
])  # fmt: skip
def test_what_peft_cannot_hold_is_written_in_our_form_with_the_reason(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path, method: str, reason: str
) -> None:
    done = heedful("export", run_of(method), tmp_path / "out")
    assert done.status == 0, done.err
    assert done.out.splitlines()[-1].startswith(f"loads with heedful; {reason}")
    assert (tmp_path / "out/heedful.json").is_file()
    assert (tmp_path / "out/tokenizer.json").is_file()
    # And heedful does load it, from wherever it lies.
    told = [
        json.loads(heedful("predict", place, "a fine day", "--json").out)
        for place in (run_of(method), tmp_path / "out")
    ]
    assert told[0] == told[1]
    assert "heedful predict" in (tmp_path / "out/README.md").read_text()


@pytest.mark.parametrize("method", ["prompt", "prefix"])
def test_what_cannot_be_merged_says_so_and_writes_nothing(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tmp_path: Path, method: str
) -> None:
    done = heedful("export", run_of(method), tmp_path / "out", "--merge")
    assert done.status == 2
    assert "cannot be merged" in done.err
    assert not (tmp_path / "out").exists()


def test_a_model_is_exported_with_its_new_head_in_its_configuration(
    heedful: Callable[..., Any], tiny_bert: Path, tmp_path: Path
) -> None:
    done = heedful("export", tiny_bert, tmp_path / "out", "--head", "classify", "--n-classes", 3)
    assert done.status == 0, done.err
    model = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert model.config.num_labels == 3


def test_mistakes_get_one_line(
    heedful: Callable[..., Any], run_of: Callable[[str], Path], tiny_bert: Path, tmp_path: Path
) -> None:
    assert "is not a run" in heedful("export", tiny_bert, tmp_path / "out", "--merge").err
    assert "a run has its head" in heedful("export", run_of("full"), tmp_path / "out", "--head", "masked").err
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine").write_text("mine")
    assert "is not an empty folder" in heedful("export", run_of("full"), tmp_path / "full").err
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
