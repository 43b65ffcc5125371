"""Models that the worker has loaded: each once, the least recently used ones evicted when memory is short."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import psutil

from heedful.errors import UserError
from heedful.paths import expand_path
from heedful.runs.directory import BEST, CONFIG, follow_choice
from heedful.runs.json_files import read_json
from heedful.studio.folder import StudioFolder
from heedful.studio.offers import read_architecture
from heedful.text.model_folders import HUB_ID, minilm_folder

if TYPE_CHECKING:
    from heedful.inference.predictor import Predictor
    from heedful.inference.writer import Writer
    from heedful.models import Model
    from heedful.text import Tokenizer

T = TypeVar("T")
SHARE_OF_MEMORY = 0.25
"""How much of the machine's memory models may take together."""
NAMED = ("minilm",)
"""Models that a page may name without a folder of their own; those below $HEEDFUL_MODELS too."""


@dataclass(frozen=True)
class Network:
    """A network with its tokenizer, on the CPU, ready to evaluate."""

    model: Model
    tokenizer: Tokenizer
    labels: tuple[str, ...]
    """Names of the classes; none if the model classifies nothing."""
    max_len: int


class ModelStore:
    """Loads models by name: a run or a model in the studio's folder, `minilm`, or one of $HEEDFUL_MODELS.

    A model is shared by all pages: who changes one restores it before the function ends.
    """

    def __init__(self, folder: StudioFolder, memory: int | None = None) -> None:
        self.folder = folder
        self.memory = memory or int(SHARE_OF_MEMORY * psutil.virtual_memory().total)
        self.held: OrderedDict[tuple[str, str, Any], tuple[Any, int]] = OrderedDict()

    def find(self, name: str) -> Path:
        """Return the folder of a model; outside of the studio's folder are only models that have a name."""
        if name == "minilm" and not (self.folder.root / name).is_dir():
            return minilm_folder()
        models = os.environ.get("HEEDFUL_MODELS")
        if models and HUB_ID.fullmatch(name) and not (self.folder.root / name).is_dir():
            folder = expand_path(models) / name
            if ".." not in name and folder.is_dir():
                return folder
        return self.folder.resolve(self.folder.name(follow_choice(self.folder.resolve(name))))

    def predictor(self, name: str) -> Predictor:
        """Return what labels texts: the best model of a run, an export, or a classifier in a folder."""
        from heedful.inference.loading import load_run

        return self.get("predictor", name, lambda folder: load_run(folder, device="cpu"))

    def network(self, name: str) -> Network:
        """Return the network behind a name: a classifier, a language model, or the body of an encoder."""
        return self.get("network", name, load_network)

    def writer(self, name: str) -> Writer:
        """Return a language model that continues texts."""
        from heedful.inference.networks import load_writer

        return self.get("writer", name, lambda folder: load_writer(folder, device="cpu"))

    def get(self, kind: str, name: str, load: Callable[[Path], T]) -> T:
        """Return what `load` makes of the folder of a name, once per version of its files."""
        folder = self.find(name)
        key = (kind, str(folder), find_version(folder))
        if key not in self.held:
            for old in [one for one in self.held if one[:2] == key[:2]]:
                del self.held[old]
            before = psutil.Process().memory_info().rss
            loaded = load(folder)
            size = max(weights_size(folder), psutil.Process().memory_info().rss - before)
            self.held[key] = (loaded, size)
            self.evict(keep=key)
        self.held.move_to_end(key)
        return cast(T, self.held[key][0])

    def evict(self, keep: tuple[str, str, Any]) -> None:
        """Drop the least recently used models until the others fit into memory."""
        total = sum(size for _, size in self.held.values())
        for key in [one for one in self.held if one != keep]:
            if total <= self.memory:
                return
            total -= self.held.pop(key)[1]


def load_network(folder: Path) -> Network:
    from heedful import checkpoints
    from heedful.inference.loading import load_run
    from heedful.inference.network_predictors import NetworkPredictor
    from heedful.inference.networks import load_best_of
    from heedful.models import Classifier
    from heedful.runs.directory import Run
    from heedful.text import load as load_tokenizer

    if (folder / CONFIG).is_file():
        run = Run.open(folder)
        config = run.read_config()
        if config["command"] == "adapt":
            predictor = load_run(folder, device="cpu")
            if not isinstance(predictor, NetworkPredictor):
                raise UserError(f"{folder.name}: is not a network: it has no attention to look at")
            model, tokenizer = predictor.model, predictor.tokenizer
            limit = predictor.max_len or model.body.room
            labels = tuple(predictor.labels) if isinstance(model, Classifier) else ()
            return Network(model.eval(), tokenizer, labels, min(limit, model.body.room))
        model = load_best_of(run)
        return Network(model.eval(), load_tokenizer(folder / BEST), (), model.body.room)
    _, head, _ = read_architecture(read_json(folder / "config.json"))
    network = checkpoints.load(folder, head=head or None)
    labels = tuple(network.labels) if isinstance(network, Classifier) else ()
    return Network(network.eval(), load_tokenizer(folder), labels, network.config.max_len)


def find_version(folder: Path) -> tuple[Any, ...]:
    """Return what changes when the model in a folder is another one."""
    places = (folder, folder / BEST)
    names = ("model.safetensors", "model.onnx", "heedful.json", "linear.json", "ensemble.json", "config.json")
    files = [place / name for place in places for name in names if (place / name).is_file()]
    return tuple((file.stat().st_ino, file.stat().st_mtime_ns) for file in files)


def weights_size(folder: Path) -> int:
    """Return the number of bytes of the weights of a run or a model."""
    best = folder / BEST if (folder / BEST).is_dir() else folder
    return sum(file.stat().st_size for file in best.iterdir() if file.is_file())
