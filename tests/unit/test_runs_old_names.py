"""Names of older versions: read from stored files, refused where a user writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful import attention, checkpoints, methods
from heedful.errors import UserError
from heedful.models import TransformerConfig, build
from heedful.runs import Check, Checks, Run
from heedful.runs.config import load_run_config
from heedful.runs.studies import Configuration, StudyFolder, StudyRecord

SPEC = "zero_after:unsafe=true,renormalise=true"


def test_a_configuration_with_old_names_is_read_with_those_of_today(tmp_path: Path) -> None:
    table = {
        "model": "bert-tiny",
        "task": "renormalise=true.csv",
        "attention": SPEC,
        "method": "prefix",
        "method_options": ["length=3", "reparametrise=true"],
    }
    run = Run.create(tmp_path / "run")
    run.write_config({"command": "adapt", "adapt": table})
    config = run.read_config()["adapt"]
    assert config["attention"] == "zero_after:unsafe=true,renormalize=true"
    assert config["method_options"] == ["length=3", "reparametrize=true"]
    assert config["task"] == "renormalise=true.csv"
    options = load_run_config(run.path)
    assert options.attention == config["attention"]
    assert list(options.method_options) == config["method_options"]


def test_checks_of_an_older_version_are_read(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run")
    stored = {"checks": [{"name": "reload", "status": "passed", "found": "The same logits."}]}
    (run.path / "checks.json").write_text(json.dumps(stored))
    assert run.read_checks() == Checks((Check("reload", "passed", message="The same logits."),))


def test_a_study_with_old_names_is_read_with_those_of_today(tmp_path: Path) -> None:
    folder = StudyFolder(tmp_path)
    settings = {"method": "lora", "method_options": ["rank_stabilised=true"]}
    command = ("study", "compare", "--method-options", "lora:rank_stabilised=true")
    record = StudyRecord(
        "compare", "?", 0, {"run": {"attention": SPEC}}, (Configuration("a", settings),), command
    )
    folder.write(record)
    read = folder.read()
    assert read.options["run"]["attention"] == SPEC.replace("renormalise", "renormalize")
    assert read.configurations[0].settings["method_options"] == ["rank_stabilized=true"]
    assert read.command[-1] == "lora:rank_stabilized=true"


def test_a_model_with_an_old_name_is_loaded(tmp_path: Path) -> None:
    sizes = {"vocab_size": 40, "d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 24, "max_len": 16}
    options = {"unsafe": True, "renormalize": True}
    config = TransformerConfig(kind="decoder", attention="zero_after", attention_options=options, **sizes)
    checkpoints.save(build(config, "causal"), tmp_path / "model")
    file = tmp_path / "model/config.json"
    stored = json.loads(file.read_text())
    stored["heedful"]["attention_options"] = {"unsafe": True, "renormalise": True}
    file.write_text(json.dumps(stored))
    assert checkpoints.load(tmp_path / "model").config.attention_options == options


@pytest.mark.parametrize(
    ("method", "old", "new"),
    [("lora", "rank_stabilised", "rank_stabilized"), ("prefix", "reparametrise", "reparametrize")],
)
def test_a_method_refuses_the_old_name_and_names_the_new_one(method: str, old: str, new: str) -> None:
    with pytest.raises(UserError, match=rf'^method {method} has no option "{old}"; it has .*\b{new}\b'):
        methods.make(method, **{old: True})


def test_a_mechanism_refuses_the_old_name_and_names_the_new_one() -> None:
    with pytest.raises(UserError, match=r'has no option "renormalise"; it has .*\brenormalize\b'):
        attention.make("zero_after", n_heads=2, d_head=4, max_len=8, unsafe=True, renormalise=True)
    with pytest.raises(UserError, match='"renormalise"; did you mean "renormalize"'):
        attention.parse(SPEC)
