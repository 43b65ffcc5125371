"""`heedful serve`: what it answers, whom it refuses, and that nothing is lost or mixed up under load."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

import heedful
from heedful.errors import UserError
from heedful.options.serve import ServeOptions
from heedful.server.application import make_application
from heedful.server.served_model import ServedModel
from heedful.server.serving import serve_model
from tiny import make_kind, make_task, sentence

TOKEN = "token-of-the-tests"


@dataclass
class Served:
    url: str
    process: subprocess.Popen[str]

    def client(self, **options: Any) -> httpx.Client:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return httpx.Client(base_url=self.url, timeout=60, **{"headers": headers, **options})


@contextmanager
def serving(model: Path, *options: str, port: str = "0") -> Iterator[Served]:
    """Serve a model in a process of its own; it is stopped by SIGTERM."""
    process = subprocess.Popen(
        [sys.executable, "-m", "heedful", "serve", str(model), "--port", port, "--json", *options],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "HEEDFUL_TOKEN": TOKEN},
    )  # fmt: skip
    assert process.stdout is not None
    printed = ""
    while not printed.endswith("}\n"):
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.communicate()[1])
        printed += line
    try:
        yield Served(json.loads(printed)["url"], process)
    finally:
        if process.poll() is None:
            process.terminate()
        _, err = process.communicate(timeout=30)
    assert "Traceback" not in err


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    return heedful.adapt("tfidf", make_task(folder / "task", rows=90), out=folder / "run").folder


@pytest.fixture(scope="module")
def served(run: Path) -> Iterator[Served]:
    with serving(run) as server:
        yield server


def error_of(response: httpx.Response) -> tuple[int, str]:
    content = response.json()
    assert set(content) == {"error"}
    assert set(content["error"]) == {"code", "message"}
    return response.status_code, content["error"]["code"]


def test_it_answers_as_predict_does(run: Path, served: Served) -> None:
    texts = ["a lovely film", "the plot was dull"]
    wanted = heedful.predict(run, texts)
    with served.client() as client:
        one = client.post("/predict", json={"text": texts[0]}).json()
        several = client.post("/predict", json={"texts": texts}).json()["predictions"]
    assert one == several[0]
    assert [answer["label"] for answer in several] == [answer.label for answer in wanted]
    assert [answer["probabilities"] for answer in several] == [answer.probabilities for answer in wanted]


def test_what_it_tells_about_itself(run: Path, served: Served) -> None:
    with served.client() as client:
        model = client.get("/model").json()
        client.post("/predict", json={"text": "fine"})
        metrics = client.get("/metrics").text
        page = client.get("/", headers={"Authorization": ""})
        assert client.get("/openapi.json").json()["openapi"] == "3.1.0"
    assert model["labels"] == ["no", "yes"]
    assert model["scores"]["dev"]["value"] == heedful.evaluate(run, split="dev").value
    assert any(check["name"] == "reload" for check in model["checks"])
    assert 'heedful_requests_total{path="/predict",status="200"}' in metrics
    assert "heedful_batch_texts_count" in metrics
    assert "https://" not in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_who_is_refused(served: Served) -> None:
    body: dict[str, Any] = {"json": {"text": "fine"}}
    with served.client(headers={}) as client:
        assert client.get("/health").json() == {"status": "ok"}
        for path in ("/model", "/metrics", "/openapi.json"):
            assert error_of(client.get(path)) == (401, "unauthorized")
        assert error_of(client.post("/predict", **body)) == (401, "unauthorized")
        wrong = {"Authorization": "Bearer wrong"}
        assert error_of(client.post("/predict", headers=wrong, **body)) == (401, "unauthorized")
    with served.client() as client:
        for headers in (
            {"Origin": "http://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Host": "evil.example"},
        ):
            assert error_of(client.post("/predict", headers=headers, **body)) == (403, "forbidden")
        own = {"Origin": served.url.rstrip("/")}
        assert client.post("/predict", headers=own, **body).status_code == 200


@pytest.mark.parametrize(("content", "status"), [
    (b"{", 400), (b"\xff\xfe", 400), (b"[]", 422), (b"{}", 422), (b'{"text": 1}', 422), (b'{"text": ""}', 422),
    (b'{"text": "a", "texts": ["b"]}', 422), (b'{"texts": []}', 422), (b'{"pair": "b"}', 422),
    (b'{"text": "a", "other": 1}', 422), (b'{"text": null}', 422), (b'{"texts": ["a", " "]}', 422),
    (b'{"text": "a", "pair": "b"}', 422), (b'{"text": "\\ud800"}', 400),
    (json.dumps({"texts": ["a"] * 1001}).encode(), 413), (b'{"text": "' + b"a" * 100_001 + b'"}', 413),
    (b" " * (1 << 20) + b"{}", 413),
])  # fmt: skip
def test_malformed_requests_get_one_form_of_error(served: Served, content: bytes, status: int) -> None:
    with served.client() as client:
        response = client.post("/predict", content=content, headers={"Content-Type": "application/json"})
        assert error_of(response)[0] == status
        chunked = client.post(
            "/predict", content=iter([content]), headers={"Content-Type": "application/json"}
        )
        assert error_of(chunked)[0] == status


def test_other_methods_paths_and_types(served: Served) -> None:
    with served.client() as client:
        assert error_of(client.get("/predict")) == (405, "method_not_allowed")
        assert error_of(client.get("/../etc/passwd")) == (404, "not_found")
        assert error_of(client.post("/predict", content=b"text=fine"))[0] == 415


def test_a_full_queue_answers_503_and_loses_nothing(run: Path) -> None:
    async def ask(client: httpx.AsyncClient, number: int) -> int:
        response = await client.post("/predict", json={"texts": [f"fine film {number}"] * 60})
        if response.status_code == 503:
            assert response.headers["retry-after"] == "1"
        return response.status_code

    async def ask_all(url: str) -> list[int]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as client:
            return await asyncio.gather(*(ask(client, number) for number in range(60)))

    with serving(run, "--queue", "100") as server:
        statuses = asyncio.run(ask_all(server.url))
    assert set(statuses) == {200, 503}


async def bombard(url: str, texts: list[str], connections: int = 200) -> list[dict[str, Any]]:
    """Send every text in a request of its own; this many wait for an answer at any time."""
    answers: list[dict[str, Any]] = [{} for _ in texts]
    places = iter(range(len(texts)))

    async def ask(client: httpx.AsyncClient) -> None:
        for place in places:
            response = await client.post("/predict", json={"text": texts[place]})
            assert response.status_code == 200, response.text
            answers[place] = response.json()

    headers = {"Authorization": f"Bearer {TOKEN}"}
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    async with httpx.AsyncClient(base_url=url, headers=headers, limits=limits, timeout=None) as client:
        await asyncio.gather(*(ask(client) for _ in range(connections)))
    return answers


def check_load(run: Path, requests: int) -> None:
    draw = random.Random(0)
    texts = [f"{sentence(draw, bool(i % 2))} {i}" for i in range(requests)]
    wanted = heedful.load(run).predict_proba(texts)
    with serving(run, "--queue", "100000") as server:
        answers = asyncio.run(bombard(server.url, texts))
    found = np.array([list(answer["probabilities"].values()) for answer in answers])
    assert np.abs(found - wanted).max() < 1e-9  # sums of a batch are added up in another order
    assert len(np.unique(wanted.round(9), axis=0)) > requests / 4


def test_answers_belong_to_their_requests(run: Path) -> None:
    check_load(run, 200)


@pytest.mark.long
def test_answers_belong_to_their_requests_under_load(run: Path) -> None:
    check_load(run, 2_000)


@pytest.mark.nightly
@pytest.mark.timeout(3000)
def test_answers_belong_to_their_requests_under_heavy_load(run: Path) -> None:
    check_load(run, 20_000)


def test_a_new_best_model_answers_without_losing_a_request(run: Path, tmp_path: Path) -> None:
    """A copy of the run gets a model with exchanged labels while requests come in."""
    shutil.copytree(run, tmp_path / "run")
    best = tmp_path / "run/best"
    with serving(tmp_path / "run") as server, server.client() as client:
        before = client.post("/predict", json={"text": "lovely fine warm"}).json()["label"]
        assert before == "yes"
        new = tmp_path / "new"
        shutil.copytree(best, new)
        facts = json.loads((new / "linear.json").read_text())
        (new / "linear.json").write_text(json.dumps({**facts, "labels": facts["labels"][::-1]}))
        best.rename(tmp_path / "old")
        new.rename(best)
        end, label = time.monotonic() + 30, before
        while label == before and time.monotonic() < end:
            response = client.post("/predict", json={"text": "lovely fine warm"})
            assert response.status_code == 200
            label = response.json()["label"]
        assert label == "no"
        (best / "linear.json").write_text("{")
        time.sleep(1.5)
        assert client.post("/predict", json={"text": "lovely fine warm"}).json()["label"] == "no"
        assert "heedful_failed_reloads_total 1" in client.get("/metrics").text


def test_sigterm_answers_what_has_begun_and_ends_with_status_zero(run: Path) -> None:
    async def ask_and_stop(server: Served) -> list[int]:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=60) as client:
            body = {"texts": ["a lovely film"] * 1000}
            asked = [asyncio.create_task(client.post("/predict", json=body)) for _ in range(8)]
            await asyncio.sleep(0.3)
            server.process.send_signal(signal.SIGTERM)
            return [(await one).status_code for one in asked]

    with serving(run, "--queue", "10000") as server:
        assert asyncio.run(ask_and_stop(server)) == [200] * 8
        assert server.process.wait(30) == 0


def test_a_killed_server_starts_again_on_its_port(run: Path) -> None:
    with serving(run) as server:
        server.process.kill()
        server.process.wait()
    port = server.url.rstrip("/").rpartition(":")[2]
    with serving(run, port=port) as again, again.client() as client:
        assert again.url == server.url
        assert client.post("/predict", json={"text": "fine"}).status_code == 200


def test_other_machines_need_the_token(run: Path, served: Served) -> None:
    def refused(**options: Any) -> str:
        with pytest.raises(UserError) as caught:
            serve_model(run, ServeOptions(**options), lambda address: None)
        return str(caught.value)

    assert "--no-token" in refused(host="0.0.0.0", token=False)
    assert "cannot be listened to" in refused(port=int(served.url.rstrip("/").rpartition(":")[2]))
    with serving(run, "--host", "0.0.0.0") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        assert httpx.post(f"{url}predict", json={"text": "fine"}).status_code == 401
    with serving(run, "--no-token") as server:
        assert httpx.post(f"{server.url}predict", json={"text": "fine"}).status_code == 200
        evil = {"Host": "evil.example"}
        assert httpx.post(f"{server.url}predict", json={"text": "fine"}, headers=evil).status_code == 403


@pytest.mark.long
def test_the_description_is_exact(served: Served, tmp_path: Path) -> None:
    """Schemathesis sends what the OpenAPI description allows and what it forbids, and checks the answers."""
    config = tmp_path / "schemathesis.toml"
    config.write_text(
        "[checks.negative_data_rejection]\nexpected-statuses = [400, 401, 405, 413, 415, 422]\n"
    )
    tool = Path(sys.executable).with_name("schemathesis")
    command = [tool, "--config-file", config, "run", f"{served.url}openapi.json", "--max-examples", "40"]
    command += ["--seed", "1", "--header", f"Authorization: Bearer {TOKEN}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.parametrize("kind", ["labels", "number"])
def test_several_labels_and_numbers_have_answers_of_their_own(kind: str, tmp_path: Path) -> None:
    run = heedful.adapt("tfidf", make_kind(tmp_path / "task", kind), kind=kind, out=tmp_path / "run").folder
    app = make_application(ServedModel(run, device="cpu"), ServeOptions(token=False), None)
    texts = ["a lovely film was fine", "dull"]
    with TestClient(app, base_url="http://127.0.0.1:8765") as client:
        answers = client.post("/predict", json={"texts": texts}).json()["predictions"]
        described = client.get("/openapi.json").json()["paths"]["/predict"]["post"]["responses"]["200"]
    form = described["content"]["application/json"]["schema"]["anyOf"][0]
    for one, wanted in zip(answers, heedful.predict(run, texts), strict=True):
        assert set(one) == set(form["required"])
        if kind == "number":
            assert one["value"] == wanted.value
        else:
            assert one["labels"] == list(wanted.labels)
            assert one["probabilities"] == wanted.probabilities
