"""A small Hugging Face Hub on loopback: what the real clients ask for, answered from a folder.

`HubServer(folder)` serves `folder/models/<id>/` and `folder/datasets/<id>/` while it is open. A process that is
started with `server.environment(cache)` reaches it as it would reach the Hub; nothing but the address differs.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

SHA = hashlib.sha1(b"the only revision").hexdigest()
LARGE = (".safetensors", ".bin", ".parquet", ".zst", ".gz")
API = re.compile(r"/api/(models|datasets)/(.+?)(?:/(revision|tree|paths-info|refs)(?:/([^/]+))?(?:/(.*))?)?")
FILE = re.compile(r"/(datasets/)?(.+?)/resolve/([^/]+)/(.+)")
UPLOAD = re.compile(r"/api/repos/create|/api/validate-yaml|/api/models/(.+?)/(preupload|commit)/main")
TOKEN = "hf_" + "t" * 34


class HubServer:
    """Serve repositories, with the troubles that the attributes describe."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.gated: set[str] = set()
        """Repositories that need a token."""
        self.moved: dict[str, str] = {}
        """Old names of repositories, which redirect to the new ones."""
        self.cut: dict[str, int] = {}
        """Files whose download breaks off after this many bytes, once."""
        self.corrupt: set[str] = set()
        """Files that arrive with other bytes than their hash says."""
        self.down = False
        """Whether every request fails."""
        self.requests: Counter[str] = Counter()
        """How often each method and path was asked for."""
        self.ranges: list[str] = []
        """The Range headers of downloads."""
        hub = self

        class Handler(RequestHandler):
            server_hub = hub

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.http.server_address[1]}"

    def __enter__(self) -> HubServer:
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.http.server_close()

    def environment(self, cache: Path, token: str | None = None) -> dict[str, str]:
        """Return the environment of a process that uses this Hub, with a cache of its own."""
        ours = {
            "HF_ENDPOINT": self.address,
            "HF_HOME": str(cache),
            "HEEDFUL_CACHE": str(cache / "heedful"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
            "NO_PROXY": "127.0.0.1",
        }
        removed = ("HF_HUB_OFFLINE", "HEEDFUL_DATA", "HEEDFUL_MODELS", "HF_TOKEN")
        kept = {name: value for name, value in os.environ.items() if name not in removed}
        return {**kept, **ours, **({"HF_TOKEN": token} if token else {})}


def describe(repository: Path, path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    name = path.relative_to(repository).as_posix()
    oid = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    facts: dict[str, Any] = {"type": "file", "path": name, "size": len(content), "oid": oid}
    if path.suffix in LARGE:
        facts["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return facts


class RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: HubServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer()

    def do_HEAD(self) -> None:
        self.answer()

    def do_POST(self) -> None:
        self.answer()

    def answer(self) -> None:
        hub = self.server_hub
        url = urlsplit(self.path)
        path = unquote(url.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub.requests[f"{self.command} {path}"] += 1
        if hub.down:
            self.reply(503, b"down")
            return
        if self.command == "POST" and self.answer_upload(path, body):
            return
        if match := API.fullmatch(path):
            kind, name, what, _, rest = match.groups()
            if (repository := self.find_repository(kind, name)) is not None:
                self.answer_api(repository, name, what, rest, body, "recursive" in parse_qs(url.query))
        elif match := FILE.fullmatch(path):
            dataset, name, _, file = match.groups()
            if (repository := self.find_repository("datasets" if dataset else "models", name)) is not None:
                self.answer_file(repository, repository / file)
        else:
            self.reply(404, b"{}")

    def answer_upload(self, path: str, body: bytes) -> bool:
        """Answer the requests of an upload, which need a token; small and large files come in the commit."""
        match = UPLOAD.fullmatch(path)
        if match is None:
            return False
        hub = self.server_hub
        if self.headers.get("Authorization", "") != f"Bearer {TOKEN}":
            self.reply(401, b"{}", {"X-Error-Message": "Invalid username or password."})
        elif path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            (hub.folder / "models" / name).mkdir(parents=True, exist_ok=True)
            self.reply_json({"url": f"{hub.address}/{name}"})
        elif path == "/api/validate-yaml":
            self.reply_json({"errors": [], "warnings": []})
        elif match[2] == "preupload":
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            self.reply_json({"files": files})
        else:
            for line in body.decode().splitlines():
                row = json.loads(line)
                if row["key"] == "file":
                    file = hub.folder / "models" / match[1] / row["value"]["path"]
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(base64.b64decode(row["value"]["content"]))
            self.reply_json({"commitUrl": f"{hub.address}/{match[1]}/commit/{SHA}", "commitOid": SHA})
        return True

    def find_repository(self, kind: str, name: str) -> Path | None:
        """Return the folder of a repository, after answering with a redirect or an error if there is none."""
        hub = self.server_hub
        if name in hub.moved:
            self.reply(307, b"", {"Location": hub.address + self.path.replace(name, hub.moved[name], 1)})
            return None
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        repository = hub.folder / kind / name
        if not repository.is_dir():
            self.reply(
                401, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}
            )
        elif name in hub.gated and token != TOKEN and "/resolve/" in self.path:
            words = "Access to this repository is restricted."
            headers = {"X-Error-Code": "GatedRepo", "X-Error-Message": words}
            self.reply(403 if token else 401, words.encode(), headers)
        else:
            return repository
        return None

    def answer_api(
        self, repository: Path, name: str, what: str | None, rest: str | None, body: bytes, recursive: bool
    ) -> None:
        files = [path for path in sorted(repository.rglob("*")) if path.is_file()]
        if what in (None, "revision"):
            siblings = [{"rfilename": path.relative_to(repository).as_posix()} for path in files]
            gated = "manual" if name in self.server_hub.gated else False
            facts = {"id": name, "sha": SHA, "siblings": siblings, "private": False, "gated": gated}
            self.reply_json({**facts, "tags": [], "downloads": 0, "likes": 0, "disabled": False})
        elif what == "refs":
            self.reply_json({"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": SHA}]})
        elif what == "tree":
            folder = repository / (rest or "")
            if not folder.is_dir():
                self.reply(404, b"{}", {"X-Error-Code": "EntryNotFound"})
                return
            below = sorted(folder.rglob("*") if recursive else folder.iterdir())
            self.reply_json([self.entry(repository, path) for path in below])
        else:
            form = parse_qs(body.decode())
            if self.headers.get("Content-Type", "").startswith("application/json"):
                form = json.loads(body)
            asked = [repository / path for path in form.get("paths", [])]
            self.reply_json([self.entry(repository, path) for path in asked if path.exists()])

    def entry(self, repository: Path, path: Path) -> dict[str, Any]:
        if path.is_file():
            return describe(repository, path)
        return {"type": "directory", "path": path.relative_to(repository).as_posix(), "oid": SHA, "size": 0}

    def answer_file(self, repository: Path, path: Path) -> None:
        hub = self.server_hub
        if not path.is_file():
            self.reply(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": SHA})
            return
        facts, content = describe(repository, path), path.read_bytes()
        headers = {"X-Repo-Commit": SHA, "ETag": f'"{facts["oid"]}"', "Accept-Ranges": "bytes"}
        if "lfs" in facts:
            headers |= {"X-Linked-ETag": f'"{facts["lfs"]["oid"]}"', "X-Linked-Size": str(len(content))}
        if facts["path"] in hub.corrupt:
            content = content[:-1] + bytes([content[-1] ^ 1])
        start, status = 0, 200
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if wanted is not None and self.command == "GET":
            hub.ranges.append(self.headers["Range"])
            start, end, status = int(wanted[1]), int(wanted[2] or len(content) - 1), 206
            end = min(end, len(content) - 1)
            headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
            content = content[start : end + 1]
        cut = hub.cut.pop(facts["path"], None) if self.command == "GET" else None
        self.reply(status, content, headers, cut)

    def reply_json(self, value: Any) -> None:
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def reply(
        self, status: int, content: bytes, headers: dict[str, str] | None = None, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content if cut is None else content[:cut])
        if cut is not None:
            self.close_connection = True


CHILD = """
import hashlib, json, sys
from heedful.data import load_task
from heedful.errors import UserError
from heedful.text.model_folders import find_folder

def task(name):
    task = load_task(name)
    parts = {name: [len(split), split.texts[0]] for name, split in task.splits.items()}
    return {"name": task.name, "labels": task.label_names, "splits": parts, "columns": task.columns}

def model(name):
    folder = find_folder(name, ["config.json", "*.safetensors", "*.safetensors.index.json"])
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}

for line in sys.stdin:
    what, name = json.loads(line)
    try:
        answer = {"task": task, "model": model}[what](name)
    except UserError as error:
        answer = str(error)
    print(json.dumps(answer), flush=True)
"""


class HubClient:
    """A process that loads tasks and finds models by name, through the real clients of the Hub."""

    def __init__(self, hub: HubServer, cache: Path, token: str | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=hub.environment(cache, token),
        )

    def __enter__(self) -> HubClient:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def ask(self, what: str, name: str) -> Any:
        """Return what the process found under a name, or its error."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps([what, name]) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())
