"""`heedful selftest` and `heedful.selftest()`: whether everything works here, and a file about it to send."""

from __future__ import annotations

import getpass
import io
import os
import platform
import re
import shutil
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import torch

from heedful import __version__
from heedful.contracts import mechanisms, methods, runs
from heedful.contracts.claims import Place
from heedful.display import render_lines
from heedful.errors import one_line
from heedful.launch.slurm import client
from heedful.launch.slurm.script import Batch, batch_script
from heedful.logs import progress_line
from heedful.methods import METHODS
from heedful.options.launch import LaunchOptions
from heedful.process_state import keeps_process_state
from heedful.runs.answers import Table
from heedful.runs.environment import environment
from heedful.runs.files import to_json_value, write_json
from heedful.runs.json_files import decode_record
from heedful.training.precision import GAIN, probe

Status = Literal["passed", "warning", "failed", "skipped"]
DEFAULT_OUT = Path("heedful-selftest.json")
FEW = 5
"""The number of contracts that are listed in a message."""
SHORTEST_NAME = 3
"""Names of people and machines that are shorter are no use to anybody, and occur within other words."""


@dataclass(frozen=True)
class SelfCheck:
    """One line of the table: a subject and what happened."""

    subject: str
    device: str
    status: Status
    message: str
    seconds: float = 0.0
    traces: tuple[str, ...] = ()
    """Where each failure came from, without the names of folders outside the package."""
    contracts: tuple[str, ...] = ()
    """The contracts that hold."""


@dataclass(frozen=True)
class SelftestResult:
    """What `heedful.selftest` found on this machine; a notebook shows it as a table."""

    facts: dict[str, Any]
    """Everything, as the file has it: versions, hardware and results, without names."""
    file: Path | None = None
    """The file that was written, which can be sent."""

    @property
    def status(self) -> Status:
        """Failed if any check failed, otherwise passed."""
        return "failed" if self.failed else "passed"

    @property
    def passed(self) -> bool:
        """Whether everything works."""
        return not self.failed

    @cached_property
    def checks(self) -> tuple[SelfCheck, ...]:
        """The checks in their order: subject, device, status, message, seconds, traces, contracts."""
        return tuple(decode_record(SelfCheck, check, "selftest") for check in self.facts["checks"])

    @property
    def failed(self) -> list[str]:
        """The subjects of the checks that failed."""
        return [check["subject"] for check in self.facts["checks"] if check["status"] == "failed"]

    @property
    def machine(self) -> dict[str, Any]:
        """Versions and hardware."""
        return dict(self.facts["machine"])

    @property
    def seconds(self) -> float:
        """What the checks took together."""
        return float(self.facts["seconds"])

    @property
    def verdict(self) -> str:
        """The result in one line."""
        warned = [check["subject"] for check in self.facts["checks"] if check["status"] == "warning"]
        words = "everything works on this machine"
        if self.failed:
            words = f"failed: {', '.join(self.failed)}"
        elif warned:
            words = f"this machine works, with {len(warned)} to look at: {', '.join(dict.fromkeys(warned))}"
        return words if self.file is None else f"{words}; {self.file} is a file to send"

    def table(self) -> Table:
        """Return all checks, one per row. `to_pandas()` converts it."""
        rows = [
            (c.subject, c.device, c.status, round(c.seconds, 1), one_line(c.message)) for c in self.checks
        ]
        return Table(("subject", "device", "status", "seconds", "result"), tuple(rows))

    def __repr__(self) -> str:
        return f"SelftestResult({self.verdict})"

    def _repr_html_(self) -> str:
        return render_lines([self.verdict], "bad" if self.failed else "good") + self.table()._repr_html_()


@dataclass(frozen=True)
class PlannedCheck:
    subject: str
    device: str
    run: Callable[[Path], SelfCheck]
    """Called with an empty folder."""


def find_devices() -> list[torch.device]:
    """Return the CPU and every GPU."""
    gpus = [torch.device("cuda", i) for i in range(torch.cuda.device_count())]
    metal = [torch.device("mps")] if torch.backends.mps.is_available() else []
    return [torch.device("cpu"), *gpus, *metal]


def plan_checks() -> list[PlannedCheck]:
    """List everything that can be checked on this machine."""
    plan: list[PlannedCheck] = []

    def add(subject: str, device: str, run: Callable[[Path], SelfCheck]) -> None:
        plan.append(PlannedCheck(subject, device, run))

    for device in find_devices():
        place, name = Place(device), str(device)
        for case in mechanisms.list_cases():
            add(f"attention {case}", name, partial(check_contracts, mechanisms.list_contracts, case, place))
        for method in METHODS:
            add(f"method {method}", name, partial(check_contracts, methods.list_contracts, method, place))
        add("resume", name, partial(check_run, partial(runs.check_resume, device=name)))
        add("precision", name, partial(check_precision, device))
    gpus = torch.cuda.device_count()
    for subject, number, device_name in (("processes (gloo)", 2, "cpu"), ("processes (nccl)", gpus, "cuda")):
        if number > 1:
            train_together = partial(runs.check_processes, number=number, device=device_name)
            add(subject, device_name, partial(check_processes, train_together))
    add("slurm", "", check_slurm)
    return plan


@keeps_process_state
def selftest(out: str | os.PathLike[str] | None = DEFAULT_OUT) -> SelftestResult:
    """Check that everything works on this machine, and write a file about it to send.

    On the CPU and on every GPU it checks the contracts of all attention mechanisms, training steps of every
    method on every model family, a run that is stopped and resumed, and the speed of bfloat16; then training
    in several processes, and Slurm if there is one (nothing is submitted). It takes about a minute. The file
    has versions, hardware and results, and no names of people, machines or folders. A check that fails
    raises no error: it is in the result.

    Parameters
    ----------
    out
        File to write; None writes none.

    Examples
    --------
    >>> result = heedful.selftest()
    >>> result.passed, result.failed

    """
    result = SelftestResult(run_selftest(log_check), None if out is None else Path(out))
    if result.file is not None:
        write_json(result.file, result.facts)
    return result


def log_check(check: SelfCheck, number: int, total: int) -> None:
    where = f" on {check.device}" if check.device else ""
    progress_line(f"{number} of {total}: {check.subject}{where}: {check.status}")


def run_selftest(on_check: Callable[[SelfCheck, int, int], None] | None = None) -> dict[str, Any]:
    """Check everything, and return what happened and on which machine, without names of people or machines.

    `on_check` is called after each check with its result, its number and the number of all.
    """
    start = time.monotonic()
    plan = plan_checks()
    checks: list[SelfCheck] = []
    for planned in plan:
        checks.append(run_check(planned))
        if on_check is not None:
            on_check(checks[-1], len(checks), len(plan))
    status = "failed" if any(check.status == "failed" for check in checks) else "passed"
    facts = {
        "heedful": __version__,
        "status": status,
        "seconds": round(time.monotonic() - start, 1),
        "machine": describe_machine(),
        "checks": checks,
    }
    return dict(remove_names(to_json_value(facts)))


def run_check(planned: PlannedCheck) -> SelfCheck:
    """Run one check in a folder of its own, silently. Whatever it raises is a failure."""
    start = time.monotonic()
    silent = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="heedful-", ignore_cleanup_errors=True) as folder:
        try:
            with redirect_stdout(silent), redirect_stderr(silent), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check = planned.run(Path(folder))
        except Exception as error:
            check = SelfCheck("", "", "failed", describe_error(error), traces=(describe_trace(error),))
    seconds = round(time.monotonic() - start, 2)
    return replace(check, subject=planned.subject, device=planned.device, seconds=seconds)


def check_contracts(
    list_contracts: Callable[..., Any], subject: Any, place: Place, folder: Path
) -> SelfCheck:
    """Check all contracts of a mechanism or a method; each broken one is named."""
    contracts = list_contracts(subject, place)
    failures: dict[str, Exception] = {}
    for name, contract in contracts.items():
        try:
            contract()
        except Exception as error:
            failures[name] = error
    if failures:
        message = "; ".join(f"{name}: {describe_error(error)}" for name, error in failures.items())
        return SelfCheck("", "", "failed", message, traces=tuple(map(describe_trace, failures.values())))
    message = ", ".join(contracts) if len(contracts) <= FEW else f"{len(contracts)} contracts hold"
    return SelfCheck("", "", "passed", message, contracts=tuple(contracts))


def check_run(contract: Callable[[Path], str], folder: Path) -> SelfCheck:
    return SelfCheck("", "", "passed", contract(folder))


def check_processes(contract: Callable[[Path], str], folder: Path) -> SelfCheck:
    if not torch.distributed.is_available():
        return SelfCheck("", "", "skipped", "this torch has no torch.distributed")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # advice about torch is not for this terminal
    return check_run(contract, folder)


def check_precision(device: torch.device, folder: Path) -> SelfCheck:
    """Measure bfloat16 in a child process, which may die of it."""
    measured = probe(device)
    if "failed" in measured:
        return SelfCheck("", "", "warning", f"float32 is used, because bfloat16 {measured['failed']}")
    ratio = float(measured["float32"]) / float(measured["bfloat16"])
    chosen = "bfloat16" if measured["finite"] and ratio >= GAIN else "float32"
    return SelfCheck("", "", "passed", f"{chosen} is used; bfloat16 runs at {ratio:.2g} times its speed")


def check_slurm(folder: Path) -> SelfCheck:
    """Ask Slurm for its nodes, and whether it would take a job; nothing is submitted."""
    if shutil.which("sbatch") is None:
        return SelfCheck("", "", "skipped", "there is no sbatch on this machine")
    script = batch_script(Batch(("true",), folder, folder, "heedful-selftest"), LaunchOptions())
    try:
        nodes = client.read_nodes()
        client.test_script(script)
    except client.SlurmError as error:  # a cluster may be away, or want an account
        return SelfCheck("", "", "warning", f"Slurm is installed, but refuses: {error}")
    usable = [node for node in nodes if node.usable]
    gpus = sum(node.gpus for node in nodes)
    facts = f"{len(usable)} of {len(nodes)} nodes are usable, {gpus} GPUs; a job would be accepted"
    return SelfCheck("", "", "passed", facts)


def describe_error(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:500]


def describe_trace(error: BaseException) -> str:
    """Return file, line and function of each frame, the innermost last; of files only the last parts."""
    frames = traceback.extract_tb(error.__traceback__)
    return " > ".join(f"{'/'.join(Path(f.filename).parts[-3:])}:{f.lineno} {f.name}" for f in frames[-12:])


def describe_machine() -> dict[str, Any]:
    """Return versions and hardware; the name of the machine is not among them."""
    facts: dict[str, Any] = to_json_value(environment(threads=torch.get_num_threads()))
    facts.pop("host", None)
    gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    return facts | {
        "cuda": torch.version.cuda,
        "hip": torch.version.hip,
        "gpus": [{"name": gpu.name, "memory_gb": round(gpu.total_memory / 1e9, 1)} for gpu in gpus],
        "distributed": torch.distributed.is_available(),
    }


def remove_names(value: Any) -> Any:
    """Replace names of the person, the machine and the home folder in all texts."""
    if isinstance(value, str):
        for name, placeholder in private_names():
            value = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", placeholder, value)
        return value
    if isinstance(value, dict):
        return {key: remove_names(item) for key, item in value.items()}
    return [remove_names(item) for item in value] if isinstance(value, list) else value


def private_names() -> Iterator[tuple[str, str]]:
    yield tempfile.gettempdir(), "TMP"
    with suppress(RuntimeError):
        yield str(Path.home()), "~"
    names = {"HOST": platform.node(), "USER": ""}
    with suppress(OSError, KeyError, ImportError):
        names["USER"] = getpass.getuser()
    for placeholder, name in names.items():
        if len(name) >= SHORTEST_NAME and name not in ("root", "localhost"):
            yield name, placeholder
