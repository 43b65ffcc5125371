"""A process that has imported everything and forks a child per attack, which has limits of time and memory.

It reads one request per line from stdin, `{"calls": [["inspect", "folder"]], "seconds": 10, "megabytes": 1500}`,
and answers with one line: `{"calls": [{"status": 2, "out": "", "err": "heedful: ..."}], "ended": "exit 0"}`.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

PRELOAD = (
    "heedful.cli.adapt", "heedful.cli.pretrain", "heedful.cli.inspect", "heedful.cli.predict", "heedful.cli.report",
    "heedful.cli.evaluate", "heedful.cli.export", "heedful.cli.check", "heedful.cli.run", "heedful.cli.tokenizer_show",
    "heedful.cli.data_show", "heedful.launch.processes", "heedful.inference.networks", "heedful.checkpoints",
    "heedful.report.page", "heedful.inference.onnx.predictor", "heedful.cli.study", "heedful.api.use",
    "transformers.models.auto.modeling_auto",
)  # fmt: skip


def call_command(arguments: list[str]) -> dict[str, Any]:
    """Call the command, or a function of `targets` (`["python", "name", ...]`), and catch what it prints."""
    from heedful.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        if arguments[0] == "python":
            targets = importlib.import_module("targets")
            status = targets.call(arguments[1], arguments[2:])
        else:
            status = main(arguments)
    return {"status": status, "out": out.getvalue()[-20_000:], "err": err.getvalue()[-20_000:]}


def run_child(request: dict[str, Any], channel: int) -> None:
    """Run the calls of a request in this child and write the answer to a pipe."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = size + int(request["megabytes"]) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if "cpu" in request:
        seconds = int(request["cpu"]) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    answers = []
    try:
        for arguments in request["calls"]:
            answers.append(call_command(arguments))
        answer: dict[str, Any] = {"calls": answers}
    except BaseException as error:
        import traceback

        answer = {
            "calls": answers,
            "raised": type(error).__name__,
            "traceback": traceback.format_exc()[-4000:],
        }
    data = json.dumps(answer).encode()
    while data:
        data = data[os.write(channel, data) :]


def serve_request(request: dict[str, Any]) -> dict[str, Any]:
    reader, writer = os.pipe()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setpgid(0, 0)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nowhere, number)
        for name, value in request.get("environment", {}).items():
            os.environ[name] = value
        if "folder" in request:
            os.chdir(request["folder"])
        try:
            run_child(request, writer)
        finally:
            os._exit(0)
    os.close(writer)
    chunks = []
    deadline = begun + float(request["seconds"])
    ended = None
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            ended = "timeout"
            break
        chunk = os.read(reader, 2**16)
        if not chunk:
            break
        chunks.append(chunk)
    os.close(reader)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL) if ended else None
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if ended is None:
        ended = (
            f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        )
    answer: dict[str, Any] = {"calls": []}
    with contextlib.suppress(ValueError):
        answer = json.loads(b"".join(chunks))
    return {**answer, "ended": ended, "took": round(time.monotonic() - begun, 3)}


def main() -> None:
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, str(Path(__file__).parent))
    import torch

    torch.set_num_threads(1)
    for name in PRELOAD:
        importlib.import_module(name)
    with contextlib.suppress(ImportError):
        importlib.import_module("targets")
    print("ready", file=channel, flush=True)
    for line in sys.stdin:
        print(json.dumps(serve_request(json.loads(line))), file=channel, flush=True)


if __name__ == "__main__":
    main()
