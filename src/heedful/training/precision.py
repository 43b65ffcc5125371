"""Which number format to compute in: measured in a child process, never assumed.

A processor can announce bfloat16 and then die of an illegal instruction on it, refuse it, or run it a hundred
times slower than float32. The child tries a forward and a backward product; what it says (or that it died) is
remembered for this machine and this torch. A first measurement goes on beside the loading of data and model.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import torch
from msgspec import Meta

from heedful.data.cache import digest, get_cache_folder
from heedful.errors import UserError
from heedful.options.training import Precision
from heedful.runs.environment import cpu_name
from heedful.runs.files import write_json
from heedful.runs.json_files import check_facts, read_json

GAIN = 1.2
"""How much faster bfloat16 must be to be chosen: below that, exact numbers are worth more."""
LIMIT_SECONDS = 60.0
Probe: TypeAlias = "subprocess.Popen[str]"
PROBES: dict[str, Probe] = {}
"""The measurement that is under way for each kind of device."""

PROBE = """
import json, sys, time, torch
device = torch.device(sys.argv[1])
torch.manual_seed(0)
def run(dtype):
    up, down = torch.nn.Linear(384, 1536), torch.nn.Linear(1536, 384)
    layer = torch.nn.Sequential(up, torch.nn.GELU(), down).to(device)
    x = torch.randn(1024, 384, device=device)
    times = []
    for _ in range(6):
        start = time.perf_counter()
        with torch.autocast(device.type, dtype=dtype, enabled=dtype is not None):
            y = layer(x)
        y.float().square().mean().backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[1], bool(torch.isfinite(y).all())
plain, _ = run(None)
half, finite = run(torch.bfloat16)
print(json.dumps({"float32": plain, "bfloat16": half, "finite": finite}))
"""


def choose_precision(precision: Precision, device: torch.device) -> tuple[str, str | None]:
    """Return the format to use, and a notice if the measurement decided against bfloat16."""
    if precision not in ("auto", "float32", "bfloat16"):
        raise UserError(f'--precision "{precision}": is one of auto, float32, bfloat16')
    if precision != "auto":
        return precision, None
    measurement = measure_precision(device)
    if "failed" in measurement:
        return "float32", f"precision: float32, because bfloat16 {measurement['failed']} on this machine"
    ratio = float(measurement["float32"]) / float(measurement["bfloat16"])
    if measurement["finite"] and ratio >= GAIN:
        return "bfloat16", None
    notice = f"precision: float32, because bfloat16 runs at {ratio:.2g} times its speed on this machine"
    return "float32", notice


@dataclass(frozen=True)
class Measurement:
    """What was measured, or why it failed."""

    failed: str | None = None
    finite: bool = True
    float32: Annotated[float, Meta(gt=0)] = 1.0
    bfloat16: Annotated[float, Meta(gt=0)] = 1.0


def measure_precision(device: torch.device) -> dict[str, Any]:
    """Return the measurement, from the cache if this machine has made it before."""
    path = find_measurement(device)
    if path.is_file():
        try:
            return check_facts(Measurement, read_json(path), str(path))
        except UserError:
            path.unlink(missing_ok=True)
    begun = PROBES.pop(device.type, None)
    measurement = probe(device) if begun is None else finish_probe(begun)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, measurement)
    return measurement


def find_measurement(device: torch.device) -> Path:
    """Return the file in which the measurement of this machine and this torch is remembered."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()
    return get_cache_folder() / "precision" / f"{digest(name, device.type, torch.__version__)}.json"


def begin_measurement(precision: Precision, device: torch.device) -> None:
    """Start to measure, if it has to be done, while the run is still reading its data."""
    if precision == "auto" and device.type not in PROBES and not find_measurement(device).is_file():
        PROBES[device.type] = start_probe(device)
        atexit.register(end_measurements)


def end_measurements() -> None:
    """End the children that nobody asked for their measurement, because reading the data failed."""
    while PROBES:
        _, process = PROBES.popitem()
        process.kill()
        process.communicate()


def probe(device: torch.device, code: str = PROBE) -> dict[str, Any]:
    """Measure in a child process, which may die."""
    return finish_probe(start_probe(device, code))


def start_probe(device: torch.device, code: str = PROBE) -> Probe:
    command = [sys.executable, "-c", code, str(device)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def finish_probe(process: Probe) -> dict[str, Any]:
    """Wait for the child and return what it measured, or how it failed."""
    with process:
        try:
            output, _ = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return {"failed": f"took longer than {LIMIT_SECONDS:.0f} s"}
    if process.returncode < 0:
        return {"failed": f"died of signal {-process.returncode}"}
    if process.returncode:
        return {"failed": "gave an error"}
    result: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return result
