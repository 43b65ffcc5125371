"""`heedful.adapt` and `heedful.pretrain`: the commands, from Python.

Nothing here imports torch before a run starts.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.launch.processes import launch_training
from heedful.options.configuration import options_from_keywords, set_signature
from heedful.options.training import AdaptOptions, PretrainOptions

if TYPE_CHECKING:
    from heedful.training.record import Finished


def adapt(model: str | Path, task: str | Path, **options: Any) -> Finished:
    """Adapt a model to a task, and leave a run directory with its scores, checks and best model.

    The options are those of `heedful adapt`, with the same defaults; `method_options` may be a dictionary.
    What is given back has the `folder` of the run, its `results` and its `checks`.

        done = heedful.adapt("minilm", "reviews.csv", method="lora", epochs=3, method_options={"rank": 4})
        print(done.results.splits["test"].value)
        heedful.load(done.folder).predict(["What a lovely place."])
    """
    return launch_training(options_from_keywords(AdaptOptions, model, task, options, "heedful.adapt"))


def pretrain(model: str | Path, corpus: str | Path, **options: Any) -> Finished:
    """Train a language model on text, and leave a run directory with its figures, checks and best model.

    The options are those of `heedful pretrain`, with the same defaults; `model_options` may be a dictionary.
    What is given back has the `folder` of the run, its `results` and its `checks`.

        done = heedful.pretrain("char-gpt", "notes.txt", tokenizer="char", model_options={"n_layers": 2})
        print(done.results.splits["dev"].bits_per_character)
    """
    return launch_training(options_from_keywords(PretrainOptions, model, corpus, options, "heedful.pretrain"))


set_signature(adapt, AdaptOptions)
set_signature(pretrain, PretrainOptions)
