"""Writes a classifier as an ONNX graph, and refuses one that does not compute the same."""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.onnx import utils

from heedful.errors import UserError, shorten
from heedful.inference.network_predictors import ClassifierPredictor
from heedful.inference.onnx.predictor import IDS, MASK, TYPES, Batch, open_session
from heedful.inference.predictor import Predictor
from heedful.models import Classifier
from heedful.runs.files import write_bytes

OPSET = 17
LARGEST_DIFFERENCE = 1e-4
"""Of the logits of torch and of ONNX Runtime, relative to the largest logit if that is above 1: both compute
in float32, and add up in another order."""
SHAPES = ((2, 8), (1, 3), (3, 13), (2, 300))
"""Texts and tokens of the batches that are compared. The graph is recorded from the first of them."""
RECORDING_ERRORS = (RuntimeError, torch.onnx.errors.OnnxExporterError)


class ClassifierGraph(nn.Module):
    """A classifier as a function of arrays, for the recording."""

    def __init__(self, model: Classifier, *, typed: bool) -> None:
        super().__init__()
        self.model, self.typed, self.family = model, typed, model.config.family

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        logits: Tensor = self.model(ids, mask, types if self.typed else None)
        return logits


def require_onnx() -> None:
    for package in ("onnx", "onnxruntime"):
        if importlib.util.find_spec(package) is None:
            raise UserError(f'--onnx needs {package}, which is not installed: pip install "heedful[onnx]"')


def require_classifier(predictor: Predictor, name: str) -> ClassifierPredictor:
    """Return a predictor with a classification head; others have no ONNX form, and are told their own."""
    if isinstance(predictor, ClassifierPredictor):
        return predictor
    raise UserError(
        f"{name}: --onnx is for networks with a classification head; a linear model, an average of models "
        "and a model that writes its answers are exported without it"
    )


def write_graph(model: Classifier, pad_id: int, path: Path) -> float:
    """Write a network with its head as an ONNX graph; return the largest difference of logits.

    Adapters are merged into the weights where the method allows it. A graph whose logits differ from torch's
    is refused: it was recorded from one batch, and must hold for others.
    """
    if (attention := model.config.attention) != "softmax":  # others decide in Python, which is not recorded
        raise UserError(f"--onnx: {attention} attention has no ONNX form; heedful export without it keeps it")
    model = model.cpu().eval()
    if model.method is not None and model.method.mergeable:
        model.method.merge(model)
    typed = bool(model.config.n_types > 1)
    names = [IDS, MASK, TYPES] if typed else [IDS, MASK]
    batches = list(made_batches(model, pad_id))
    graph = ClassifierGraph(model, typed=typed).eval()
    content = io.BytesIO()
    example = tuple(torch.from_numpy(batches[0].inputs()[name]) for name in names)
    axes = {**{name: {0: "texts", 1: "tokens"} for name in names}, "logits": {0: "texts"}}
    options: dict[str, Any] = {"input_names": names, "output_names": ["logits"], "dynamic_axes": axes}
    # torch.export, which dynamo=True would use, refuses decisions that depend on data, such as checks.
    options |= {"opset_version": OPSET, "dynamo": False}
    with torch.no_grad(), quiet_recording(), with_more_operations():
        try:
            torch.onnx.export(graph, example, content, **options)  # type: ignore[arg-type]
        except RECORDING_ERRORS as error:
            raise graph_error(graph, f"has a part without an ONNX form: {shorten(str(error), 200)}") from None
    write_bytes(path, content.getvalue())
    return compare_logits(graph, path, batches, names)


def compare_logits(graph: ClassifierGraph, path: Path, batches: list[Batch], names: list[str]) -> float:
    session, largest = open_session(path, 1), 0.0
    kept = {one.name for one in session.get_inputs()}
    for batch in batches:
        arrays = batch.inputs()
        with torch.no_grad():
            ours = graph(*(torch.from_numpy(arrays[name]) for name in names)).numpy()
        try:
            theirs = session.run(None, {name: arrays[name] for name in names if name in kept})[0]
        except Exception as error:  # onnxruntime has a class per cause, with no public base
            raise graph_error(graph, f"fails on {batch.ids.shape[0]} texts: {str(error)[:200]}") from None
        difference = float(np.abs(ours - theirs).max()) / max(1.0, float(np.abs(ours).max()))
        largest = max(largest, difference)
        if not difference <= LARGEST_DIFFERENCE:
            raise graph_error(graph, f"gives logits that differ by {difference:.2g}")
    return largest


def graph_error(graph: ClassifierGraph, what: str) -> UserError:
    return UserError(
        f"--onnx: the graph of this {graph.family} {what}; heedful export without --onnx keeps the model"
    )


def made_batches(model: Classifier, pad_id: int) -> Iterator[Batch]:
    """Yield random ids with padding on the right; each text ends in the model's end-of-text token."""
    config, random = model.config, np.random.default_rng(0)
    forbidden = {config.eos_id, pad_id}
    usable = np.array([i for i in range(min(config.vocab_size, 5000)) if i not in forbidden])
    for b, t in SHAPES:
        t = min(t, model.body.room)
        ids = random.choice(usable, (b, t))
        lengths = np.maximum(1, t - 2 * np.arange(b))
        mask = (np.arange(t) < lengths[:, None]).astype(np.int64)
        if config.eos_id is not None:
            ids[np.arange(b), lengths - 1] = config.eos_id
        types = random.integers(0, max(1, config.n_types), (b, t)) * mask
        if config.pool == "apart":  # pairs: the second half of each is its second text
            types = (np.arange(t) >= np.maximum(1, lengths[:, None] // 2)) * mask
        yield Batch(np.arange(b), np.where(mask, ids, pad_id), mask, types)


@contextmanager
def quiet_recording() -> Iterator[None]:
    """Silence torch's remarks on values that depend on the data: whether they matter is measured."""
    logger: Any = logging.getLogger("torch.onnx")
    level, write_log = logger.level, torch._C._jit_onnx_log
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            torch._C._jit_onnx_log = lambda *_: None  # it prints the whole graph where there is an error
            yield
    finally:
        torch._C._jit_onnx_log = write_log
        logger.setLevel(level)


@contextmanager
def with_more_operations() -> Iterator[None]:
    """Teach the recorder RMSNorm, which ONNX has only in later versions, and what ordinal heads compute."""

    def expm1(g: Any, x: Any) -> Any:
        half = g.op("Tanh", g.op("Mul", x, g.op("Constant", value_t=torch.tensor(0.5))))
        one = g.op("Constant", value_t=torch.tensor(1.0))
        return g.op("Div", g.op("Add", half, half), g.op("Sub", one, half))  # without cancellation

    def rms_norm(g: Any, x: Any, shape: Any, weight: Any, eps: Any) -> Any:
        constant = torch.tensor(
            torch.finfo(torch.float32).eps if is_none(eps) else float(eps.node().t("value"))
        )
        mean = g.op("ReduceMean", g.op("Mul", x, x), axes_i=[-1], keepdims_i=1)
        scale = g.op("Sqrt", g.op("Add", mean, g.op("Constant", value_t=constant)))
        normed = g.op("Div", x, scale)
        return normed if is_none(weight) else g.op("Mul", normed, weight)

    def is_none(value: Any) -> bool:
        return value.node().mustBeNone() or str(value.type()) == "NoneType"

    def log_sigmoid(g: Any, x: Any) -> Any:
        return g.op("Neg", g.op("Softplus", g.op("Neg", x)))  # the logarithm of a sigmoid of -100 is infinite

    operations: dict[str, Callable[..., Any]] = {
        "aten::rms_norm": rms_norm,
        "aten::expm1": expm1,
        "aten::log_sigmoid": log_sigmoid,
    }
    for name, operation in operations.items():
        utils.register_custom_op_symbolic(name, operation, OPSET)
    try:
        yield
    finally:
        for name in operations:
            utils.unregister_custom_op_symbolic(name, OPSET)
