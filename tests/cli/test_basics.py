"""The command itself: quick, helpful, and clear about mistakes."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Callable

import pytest

from heedful.cli import COMMANDS


def cpu_of_children() -> float:
    """Processor time, which others on the machine hardly change."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_help_never_imports_torch_and_is_quick() -> None:
    code = "import sys; from heedful.cli import main; main(['--help']); sys.exit('torch' in sys.modules)"
    times = []
    for _ in range(5):
        start = cpu_of_children()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        times.append(cpu_of_children() - start)
        assert done.returncode == 0, done.stderr
        assert "Usage: heedful COMMAND" in done.stdout
    assert min(times) < 0.4


def test_every_command_has_help_without_torch() -> None:
    code = """
import sys
from heedful.cli import COMMANDS, main
for command in COMMANDS:
    main([command, "--help"])
    if "torch" in sys.modules:
        sys.exit(f"{command} --help imports torch")
    print("---")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.split("---\n")[:-1]
    assert len(shown) == len(COMMANDS)
    for command, text in zip(COMMANDS, shown, strict=True):
        assert f"Usage: heedful {command}" in text
        if "─ Commands ─" not in text:  # a command in itself, not a group of commands
            assert re.search(rf"^ *(Example: )?heedful {command}", text, re.MULTILINE), command


@pytest.mark.parametrize("command", ["adapt", "study search", "study compare", "lab average", "run"])
def test_help_says_only_defaults_that_say_something_and_no_line_of_the_source(
    heedful: Callable[..., object], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("COLUMNS", "400")  # nothing need be broken
    shown = heedful(*command.split(), "--help").out
    options = [line for line in shown.splitlines() if line.startswith("│")]
    assert len(options) > 3
    assert all(re.match("│ [ *] *[A-Z]|│ --", line) for line in options)
    assert "--empty" not in shown
    defaults = re.findall(r"\[default: (.*?)\]", shown)
    assert not {"False", "None", '""', "()"} & set(defaults)
    assert {"adapt": "linear", "lab average": "1 2"}.get(command, "") in ["", *defaults]


def test_importing_heedful_is_quick_and_without_torch() -> None:
    code = "import sys, heedful; assert 'torch' not in sys.modules; heedful.models.load; assert 'torch' in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("arguments", "line"), [
    (["lst"], 'heedful: unknown command "lst"; did you mean "list"?'),
    (["list", "attention"], "attentions"),
    (["inspect"], "heedful: MODEL is missing; see heedful inspect --help"),
    (["inspect", "minilm", "--head"], "heedful: the value of --head is missing; see heedful inspect --help"),
    (["inspect", "minilm", "tinybert"], "heedful: unexpected argument 'tinybert'; text with spaces needs quotes"),
    (["adapt", "minilm", "boolq", "--learning_rate", "1e-3"], "unknown option --learning_rate; did you mean --lr?"),
    (["inspect", "minilm", "--atention", "softmax"], "unknown option --atention; did you mean --attention?"),
    (["inspect", "minilm", "--attention", "sofmax"], 'did you mean "softmax"?'),
    (["inspect", "minilm", "--attention", "performer:feature=3"], "features"),
    (["inspect", "minilm", "--attention", "performer:features=x"], 'performer attention features "x": must be a whole number'),
    (["inspect", "no/such/model/x"], 'no model folder "no/such/model/x"'),
    (["inspect", "minilm", "--head", "classfy"], 'did you mean "classify"?'),
    (["inspect", "char-gpt", "--head", "masked"], 'head "masked" needs an encoder'),
    (["export", "modern-gpt", "/tmp/nowhere-heedful"], "cannot be exported for transformers"),
])  # fmt: skip
def test_a_mistake_gets_one_line_and_status_two(
    heedful: Callable[..., object], arguments: list[str], line: str
) -> None:
    done = heedful(*arguments)
    assert done.status == 2
    assert done.out == ""
    assert done.err.startswith("heedful: ")
    assert done.err.count("\n") == 1
    assert line in done.err


def test_an_unreachable_model_says_what_to_do(
    heedful: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = heedful("inspect", "some-org/some-model")
    assert done.status == 2
    assert "go online once, or put its folder at $HEEDFUL_MODELS/some-org/some-model" in done.err


def test_models_are_found_below_heedful_models(heedful: Callable[..., object], tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    assert heedful("export", "bert-tiny", tmp_path / "org" / "name").status == 0
    monkeypatch.setenv("HEEDFUL_MODELS", str(tmp_path))
    done = heedful("inspect", "org/name", "--json")
    assert json.loads(done.out)["family"] == "bert"


def test_list_attentions_names_every_mechanism_with_its_paper(heedful: Callable[..., object]) -> None:
    from heedful.attention import MECHANISMS

    facts = json.loads(heedful("list", "attentions", "--json").out)
    assert [f["name"] for f in facts] == list(MECHANISMS)
    table = heedful("list", "attentions").out
    for name, cls in MECHANISMS.items():
        assert name in table
        beginning = cls.paper.split(",")[0].split("(")[0].strip()
        assert beginning[:24] in table  # a long one goes on in the next line
    assert "straight_through" in table


def test_list_models_counts_what_load_builds(heedful: Callable[..., object]) -> None:
    from heedful import models

    facts = {f["name"]: f for f in json.loads(heedful("list", "models", "--json").out)}
    for name in ("minilm", "tinybert", "char-gpt", "t5-mini", "modern-gpt"):
        assert facts[name]["body_parameters"] == sum(p.numel() for p in models.load(name).parameters())
    assert heedful("list", "models").status == 0
    assert "BertForMaskedLM" in heedful("list", "families").out


def test_inspect_counts_add_up(heedful: Callable[..., object]) -> None:
    facts = json.loads(heedful("inspect", "minilm", "--json").out)
    assert facts["family"] == "bert"
    assert facts["parameters"]["total"] == sum(facts["parameters"]["parts"].values()) == 22_713_216
    assert facts["new"] == []
    assert facts["ignored"] == ["embeddings.position_ids"]
    swapped = json.loads(heedful("inspect", "minilm", "--attention", "performer", "--json").out)
    assert swapped["attention"] == "performer"
    assert not swapped["exports_to_transformers"]
    assert "22,713,216" in heedful("inspect", "minilm", "--details").out


def test_a_narrow_terminal_cuts_no_cell(
    heedful: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (["list", "models"], ["list", "attentions"], ["inspect", "bert-tiny"]):
        monkeypatch.setenv("COLUMNS", "60")
        assert "…" not in heedful(*arguments).out
    done = heedful("list", "models")
    for part in ("22,713,216", "body's parameters", "vocabulary", "modern-gpt", "rotary"):
        assert part in done.out


@pytest.mark.parametrize(("arguments", "words"), [
    (["inspect", "minilmm"], 'did you mean "minilm"?'),
    (["inspect", "minilm", "--head", "classify", "--n-classes", "0"], "--n-classes 0: must be at least 2"),
])  # fmt: skip
def test_a_near_name_or_a_wrong_number_is_told(
    heedful: Callable[..., object], arguments: list[str], words: str
) -> None:
    done = heedful(*arguments)
    assert done.status == 2
    assert words in done.err


def test_list_names_every_extension_point(heedful: Callable[..., object]) -> None:
    from heedful.cli.list_names import EXTENSION_POINTS

    everything = json.loads(heedful("list", "--json").out)
    assert set(everything) == set(EXTENSION_POINTS)
    table = heedful("list").out
    for point, names in everything.items():
        assert point in table
        assert names
        facts = json.loads(heedful("list", point, "--json").out)
        assert [fact["name"] for fact in facts] == names
        assert {fact["package"] for fact in facts} == {"heedful"}
        listed = heedful("list", point).out
        assert all(name in listed for name in names)
