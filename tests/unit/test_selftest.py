"""`heedful selftest` names what is broken, and leaves out who and where."""

from __future__ import annotations

import getpass
import json
import platform
from pathlib import Path
from typing import Any

import pytest
import torch

import heedful
from heedful.attention import Mask
from heedful.attention.softmax import Softmax
from heedful.cli import main
from heedful.contracts import selftest
from heedful.contracts.selftest import PlannedCheck, SelfCheck, plan_checks, run_check, run_selftest
from heedful.launch.slurm import client
from heedful.methods import METHODS
from heedful.methods.base import Method
from heedful.methods.lora import Lora
from heedful.training.loop import Loop


def check(subject: str) -> SelfCheck:
    """Run the one check of the plan with this subject."""
    (planned,) = [planned for planned in plan_checks() if planned.subject == subject]
    return run_check(planned)


def plan_only(patch: pytest.MonkeyPatch, **runs: Any) -> None:
    plan = [PlannedCheck(subject, "cpu", run) for subject, run in runs.items()]
    patch.setattr(selftest, "plan_checks", lambda: plan)


def passing(folder: Path) -> SelfCheck:
    return SelfCheck("", "", "passed", "fine")


def test_the_plan_has_every_mechanism_every_method_and_the_machine() -> None:
    subjects = [planned.subject for planned in plan_checks()]
    assert len(subjects) == len(set(subjects))
    assert {f"method {name}" for name in METHODS} < set(subjects)
    assert {"attention softmax", "resume", "precision", "processes (gloo)", "slurm"} < set(subjects)


def test_what_works_passes_and_names_its_contracts() -> None:
    result = check("attention softmax")
    assert result.status == "passed"
    assert {"future", "padding", "cache", "gradients", "documents"} < set(result.contracts)
    result = check("method lora")
    assert (result.status, result.message) == ("passed", "bert, roberta, distilbert, gpt2, t5")


def test_a_mechanism_that_ignores_its_mask_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    attend = Softmax.attend

    def ignore_mask(self: Any, q: Any, k: Any, v: Any, mask: Mask, bias: Any = None) -> torch.Tensor:
        return attend(self, q, k, v, Mask(), bias)

    monkeypatch.setattr(Softmax, "attend", ignore_mask)
    result = check("attention softmax")
    assert result.status == "failed"
    assert "future: BrokenContractError: the future reaches the past" in result.message
    assert "padding: AssertionError: padding changes an output" in result.message
    assert any("mechanisms.py" in trace and "check_future" in trace for trace in result.traces)


def test_a_method_that_loads_nothing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Method, "load_state", lambda self, model, state: None)
    result = check("method head")
    assert result.status == "failed"
    assert "gpt2: BrokenContractError: what was saved gives other outputs" in result.message


def test_a_method_that_trains_more_than_it_declares_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    attach = Lora.attach

    def thaw(self: Any, model: Any) -> None:
        attach(self, model)
        next(model.body.parameters()).requires_grad_(True)

    monkeypatch.setattr(Lora, "attach", thaw)
    result = check("method lora")
    assert result.status == "failed"
    assert "against what is declared" in result.message


def test_a_resume_that_forgets_the_optimizer_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check("resume").message == "a stopped and resumed run has the bits of one that never stopped"
    restore = Loop.restore

    def forget(self: Any) -> None:
        restore(self)
        self.optimizer.state.clear()

    monkeypatch.setattr(Loop, "restore", forget)
    result = check("resume")
    assert result.status == "failed"
    assert "not the bits of a run that never stopped" in result.message
    assert "metrics.jsonl" in result.message


def test_a_processor_that_dies_of_bfloat16_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest, "probe", lambda device: {"failed": "died of signal 4"})
    result = check("precision")
    assert (result.status, result.message) == (
        "warning",
        "float32 is used, because bfloat16 died of signal 4",
    )


def test_slurm_is_asked_and_nothing_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selftest.shutil, "which", lambda name: None)
    assert check("slurm").status == "skipped"
    monkeypatch.setattr(selftest.shutil, "which", lambda name: name)
    asked: list[str] = []

    def answer(words: list[str], **_: Any) -> str:
        asked.append(words[0])
        return "NodeName=n1 State=IDLE CPUTot=4 RealMemory=1024 Gres=gpu:a100:2\n" if "nodes" in words else ""

    monkeypatch.setattr(client, "run_slurm_command", answer)
    assert check("slurm").message == "1 of 1 nodes are usable, 2 GPUs; a job would be accepted"
    assert asked == ["scontrol", "sbatch"]

    def refuse(words: list[str], **_: Any) -> str:
        raise client.SlurmError("sbatch: invalid account")

    monkeypatch.setattr(client, "run_slurm_command", refuse)
    assert check("slurm").status == "warning"


def test_the_file_names_no_person_and_no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(platform, "node", lambda: "alices-laptop")
    monkeypatch.setenv("HOME", "/home/alice")
    monkeypatch.setenv("USERPROFILE", "/home/alice")

    def broken(folder: Path) -> SelfCheck:
        raise OSError(f"/home/alice/models and {folder} on alices-laptop belong to alice, not to malice")

    plan_only(monkeypatch, broken=broken)
    facts = run_selftest()
    assert facts["status"] == "failed"
    (result,) = facts["checks"]
    assert result["message"].startswith("OSError: ~/models and TMP/")
    assert result["message"].endswith("on HOST belong to USER, not to malice")
    assert "alice" not in json.dumps(facts).replace("malice", "")
    assert facts["machine"]["packages"]["torch"]
    assert "host" not in facts["machine"]


def test_the_command_writes_its_file_and_fails_when_a_check_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(folder: Path) -> SelfCheck:
        raise RuntimeError("no kernel image is available")

    out = tmp_path / "report.json"
    plan_only(monkeypatch, first=passing)
    assert main(["selftest", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "everything works on this machine" in printed.out
    assert "1 of 1: first on cpu: passed" in printed.err
    plan_only(monkeypatch, first=passing, second=broken)
    assert main(["selftest", "--out", str(out)]) == 1
    assert "failed: second" in capsys.readouterr().out
    assert main(["selftest", "--out", str(out), "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts == json.loads(out.read_text()) | {"seconds": facts["seconds"]}
    assert [c["status"] for c in facts["checks"]] == ["passed", "failed"]
    assert "RuntimeError: no kernel image is available" in facts["checks"][1]["message"]


def test_from_python_it_returns_what_the_command_prints_and_shows_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(folder: Path) -> SelfCheck:
        raise RuntimeError("<b>no kernel</b> is available")

    caplog.set_level("INFO", "heedful")
    monkeypatch.chdir(tmp_path)
    plan_only(monkeypatch, first=passing)
    result = heedful.selftest()
    assert result.passed
    assert result.status == "passed"
    assert result.file == Path("heedful-selftest.json")
    assert json.loads((tmp_path / result.file).read_text()) == result.facts
    assert caplog.messages == ["1 of 1: first on cpu: passed"]
    assert result.machine["packages"]["torch"]
    plan_only(monkeypatch, first=passing, second=broken)
    result = heedful.selftest(out=None)
    assert (result.passed, result.failed, result.file) == (False, ["second"], None)
    assert [(c.subject, c.status) for c in result.checks] == [("first", "passed"), ("second", "failed")]
    assert result.checks[1].traces
    assert result.table().to_pandas()["status"].tolist() == ["passed", "failed"]
    assert repr(result) == "SelftestResult(failed: second)"
    html = result._repr_html_()
    assert "failed: second" in html
    assert "&lt;b&gt;no kernel" in html
    assert "<b>" not in html


@pytest.mark.long
def test_the_whole_of_it_passes_here(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--out", str(tmp_path / "report.json"), "--json"]) == 0
    statuses = {c["subject"]: c["status"] for c in json.loads(capsys.readouterr().out)["checks"]}
    assert statuses["processes (gloo)"] == "passed"
    assert set(statuses.values()) <= {"passed", "warning", "skipped"}
