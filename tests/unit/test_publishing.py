"""Cards, the Hub, trackers and Optuna get what a run has found, and never its data."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import optuna
import pytest
import yaml
from huggingface_hub import ModelCard

import heedful
from heedful.errors import UserError
from heedful.inference.model_card import write_model_card
from heedful.runs.directory import Run
from heedful.studies.optuna_export import export_to_optuna
from heedful.training.trackers import upload_run
from hub_server import TOKEN, HubServer
from tiny import make_task

OLD_RUNS = Path(__file__).parents[1] / "old_runs"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    return heedful.adapt("tfidf", make_task(folder / "task", rows=90), out=folder / "run").folder


def test_a_card_has_scores_checks_and_metadata_but_no_text_of_the_data(run: Path) -> None:
    text = write_model_card(Run.open(run), "heedful", "use it")
    dev = Run.open(run).read_results().splits["dev"]
    card = ModelCard(text)
    found = {(one.dataset_split, one.metric_type): one.metric_value for one in card.data.eval_results}
    assert found["dev", "accuracy"] == round(dev.value or 0, 4)
    assert f"| dev | {dev.n} | accuracy | {dev.value:.3f} |" in text
    assert "## Checks" in text
    assert "heedful adapt tfidf task" in text
    assert str(run.parent) not in text
    for row in Run.open(run).read_predictions("dev"):
        assert str(row.text) not in text
    assert yaml.safe_load(text.split("---")[1])["model-index"][0]["results"]


def push(
    hub: HubServer, cache: Path, *arguments: str, token: str | None = TOKEN
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "heedful", "push", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=hub.environment(cache, token), timeout=120
    )


def test_push_says_what_it_sends_and_sends_the_model_without_data(run: Path, tmp_path: Path) -> None:
    with HubServer(tmp_path / "hub") as hub:
        tried = push(hub, tmp_path / "cache", str(run), "ada/reviews", "--dry-run")
        assert tried.returncode == 0, tried.stderr
        assert "nothing was sent" in tried.stdout
        assert not hub.requests
        done = push(hub, tmp_path / "cache", str(run), "ada/reviews")
        assert done.returncode == 0, done.stderr
        refused = push(hub, tmp_path / "cache", str(run), "ada/reviews", token=None)
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    sent = {path.name for path in (tmp_path / "hub/models/ada/reviews").rglob("*") if path.is_file()}
    assert sent == {"README.md", "linear.json", "model.safetensors"}
    assert all(name in done.stdout for name in sent)
    texts = ["a lovely film", "rude and cold"]
    there = heedful.load(tmp_path / "hub/models/ada/reviews").predict(texts)
    assert there == heedful.load(run).predict(texts)


def test_a_study_becomes_trials_of_optuna(tmp_path: Path) -> None:
    study = OLD_RUNS / "search"
    export_to_optuna(study, tmp_path / "study.db")
    read = optuna.load_study(study_name="search", storage=f"sqlite:///{tmp_path / 'study.db'}")
    values = {one.user_attrs["run"]: one.value for one in read.get_trials()}
    wanted = {
        one.path.name: Run.open(one.path).read_results().splits["dev"].value
        for one in map(Run, (study / "runs").iterdir())
    }
    assert values == wanted
    assert read.best_value == max(value for value in wanted.values() if value is not None)
    assert set(read.best_params) >= {"lr", "epochs"}
    with pytest.raises(UserError, match="is there already"):
        export_to_optuna(study, tmp_path / "study.db")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_has_the_curves(run: Path, tmp_path: Path) -> None:
    event = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    upload_run(Run.open(run), "tensorboard")
    read = event.EventAccumulator(str(run / "tensorboard"))
    read.Reload()
    (dev,) = read.Scalars("dev/value")
    assert dev.value == pytest.approx(Run.open(run).read_results().splits["dev"].value)


READ = {
    "mlflow": """
from mlflow.tracking import MlflowClient
client = MlflowClient("sqlite:///mlflow.db")
(run,) = client.search_runs([client.get_experiment_by_name("heedful").experiment_id])
assert run.info.status == "FINISHED" and run.data.params["model"] == "tfidf", run
print(run.data.metrics["dev/value"])
""",
    "trackio": """
import json, sqlite3, pathlib
(database,) = pathlib.Path("trackio").rglob("heedful.db")
rows = sqlite3.connect(database).execute("select metrics from metrics").fetchall()
print(next(json.loads(row)["dev/value"] for (row,) in rows if "dev/value" in json.loads(row)))
""",
    "wandb": """
import pathlib, re
(file,) = pathlib.Path("run").rglob("run-*.wandb")
print(re.search(rb"dev/value[^0-9]{1,6}([01][0-9.]*)", file.read_bytes())[1].decode())
""",
}


@pytest.fixture(scope="module")
def tracking_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment with the trackers, which would change what the others' has; it sees this one's packages."""
    if "HEEDFUL_TRACKING_PYTHON" in os.environ:
        return os.environ["HEEDFUL_TRACKING_PYTHON"]
    folder = tmp_path_factory.mktemp("trackers") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin/python"
    packages = ["mlflow-skinny", "sqlalchemy", "alembic", "trackio", "wandb"]
    subprocess.run([python, "-m", "pip", "install", "-q", *packages], check=True)
    return str(python)


@pytest.mark.nightly
@pytest.mark.timeout(3000)  # packages are installed first
@pytest.mark.parametrize("name", READ)
def test_trackers_get_the_curve_offline(name: str, run: Path, tracking_python: str, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "run")
    source = str(Path(heedful.__file__).parents[1])
    places = f"import sys; sys.path[:0] = [{source!r}]; sys.path.append({sysconfig.get_path('purelib')!r})"
    environment = {
        **os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "TRACKIO_DIR": str(tmp_path / "trackio"),
        "HF_HUB_OFFLINE": "1", "MLFLOW_TRACKING_URI": "sqlite:///mlflow.db",
    }  # fmt: skip
    track = f"{places}\nfrom heedful.cli import main\nsys.exit(main(['track', 'run', '--to', '{name}']))"
    for code in (track, f"{places}\n{READ[name]}"):
        done = subprocess.run(
            [tracking_python, "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env=environment,
        )
        assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) == pytest.approx(Run.open(run).read_results().splits["dev"].value)
