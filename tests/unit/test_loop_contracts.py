"""What the loop promises about each step, each evaluation and each end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful import checkpoints, methods
from heedful.data import load_task
from heedful.data.features import Features
from heedful.errors import UserError
from heedful.evaluation.metrics import METRICS, Metric
from heedful.objectives import Classify, ClassifyFeatures, Evaluation, Inputs, Losses, Objective
from heedful.options.training import AdaptOptions
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics
from heedful.text import load as load_tokenizer
from heedful.training import checkpoint, optimizers
from heedful.training import loop as module
from heedful.training.devices import clip, seed_generators
from heedful.training.loop import Loop
from heedful.training.sparse_embeddings import OccurringRows
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    root = tmp_path_factory.mktemp("tiny")
    return make_model(root / "model", dropout=0.0, words=30), make_task(root / "task")


def objective(places: tuple[Path, Path], **more: Any) -> Classify:
    tokenizer = load_tokenizer(places[0])
    return Classify(load_task(str(places[1])), tokenizer, max_len=32, with_types=True, **more)


NO_DROPOUT = {"head_dropout": 0.0}


def make_loop(places: tuple[Path, Path], out: Path, method: str = "full", double: bool = True,
              part: Classify | None = None, changes: Mapping[str, float] = NO_DROPOUT, **more: Any) -> Loop:  # fmt: skip
    torch.manual_seed(0)
    model = checkpoints.load(places[0], head="classify", n_classes=2, **{**NO_DROPOUT, **changes})
    way = methods.make(method, **({"length": 3} if method in ("prompt", "prefix") else {}))
    way.attach(model)
    if double:
        model.double()
    model.train()
    options = AdaptOptions(**{"batch_size": 12, "epochs": 2, "precision": "float32", **more})
    made = part if part is not None else objective(places)
    return Loop(model, way.trainable(model), made, options, 1e-2, Run.create(out))


def gradients(loop: Loop, step: int = 0) -> dict[str, Tensor]:
    """The gradients of a step, before they are used."""
    found: dict[str, Tensor] = {}

    def keep() -> None:
        found.update({n: p.grad.clone() for n, p in loop.parameters.items() if p.grad is not None})

    loop.optimizer.step = keep  # type: ignore[method-assign, assignment]
    loop.step(step)
    return found


def test_accumulation_equals_the_whole_batch(places: tuple[Path, Path], tmp_path: Path) -> None:
    for more in ({}, {"class_weights": "balanced", "label_smoothing": 0.2, "train_rows": 41}):
        part = objective(places, **more)
        whole = gradients(make_loop(places, tmp_path / f"a{len(more)}", part=part, clip=0.0))
        parts = gradients(make_loop(places, tmp_path / f"b{len(more)}", part=part, clip=0.0, accumulate=5))
        assert whole.keys() == parts.keys()
        for name, gradient in whole.items():
            assert (gradient - parts[name]).abs().max() < 1e-10, name


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_the_loss_is_torch_s_own_mean(places: tuple[Path, Path], tmp_path: Path, smoothing: float) -> None:
    part = objective(places, class_weights="balanced", label_smoothing=smoothing)
    part.labels["train"][:40] = 0  # far from balanced
    part.class_weights = part.compute_class_weights("balanced")
    assert part.class_weights is not None
    loop = make_loop(places, tmp_path, part=part, clip=0.0)
    found = gradients(loop)
    loop.optimizer.zero_grad()
    examples = loop.choose_examples(0)
    inputs = part.inputs("train", examples)
    own = F.cross_entropy(part.logits(loop.model, inputs), inputs.tensors["labels"], part.class_weights.double(),
                          label_smoothing=smoothing)  # fmt: skip
    own.backward()
    for name, parameter in loop.parameters.items():
        if parameter.grad is not None:
            assert torch.allclose(parameter.grad, found[name], rtol=0, atol=1e-10), name
    p = loop.state
    assert p.running_loss["classify"] / p.running_weight["classify"] == pytest.approx(own.item(), rel=1e-6)


@pytest.mark.parametrize("kind", ["embed", "attention", "attention_output", "ff", "head"])
def test_dropout_is_drawn_anew_at_each_step_and_again_the_same_when_a_step_is_repeated(
    places: tuple[Path, Path], tmp_path: Path, kind: str
) -> None:
    def trace(seed: int) -> dict[int, list[Tensor]]:
        loop = make_loop(places, tmp_path / str(seed), changes={f"{kind}_dropout": 0.5}, clip=0.0, seed=seed)
        always = loop.choose_examples(0)
        loop.choose_examples = lambda step: always  # type: ignore[method-assign]
        kept: dict[int, list[Tensor]] = {}
        for step in (0, 1, 2, 1, 0):
            torch.rand(step + 3)  # whoever else draws numbers in between changes nothing
            kept.setdefault(step, []).append(gradients(loop, step)["head.out.weight"])
            loop.optimizer.zero_grad()
        return kept

    found, other = trace(0), trace(1)
    for step in (0, 1):
        assert torch.equal(*found[step])
    assert len({gradient.numpy().tobytes() for gradient, *_ in (*found.values(), *other.values())}) == 6


def test_clipping_is_torch_s_own() -> None:
    torch.manual_seed(0)
    for size, limit in ((1.0, 0.5), (1e-3, 1.0)):
        ours = [torch.randn(7, 3) * size, torch.randn(20) * size]
        theirs = [nn.Parameter(torch.zeros_like(g)) for g in ours]
        for parameter, gradient in zip(theirs, ours, strict=True):
            parameter.grad = gradient.clone()
        nn.utils.clip_grad_norm_(theirs, limit)
        clip(ours, limit)
        for parameter, gradient in zip(theirs, ours, strict=True):
            assert parameter.grad is not None
            assert torch.allclose(parameter.grad, gradient, rtol=1e-6, atol=0)


@pytest.mark.parametrize("method", ["prompt", "prefix"])
def test_prompts_and_prefixes_do_not_decay(places: tuple[Path, Path], tmp_path: Path, method: str) -> None:
    loop = make_loop(places, tmp_path, method)
    decayed = {id(p) for g in loop.optimizer.param_groups if g["weight_decay"] for p in g["params"]}
    names = {name for name, p in loop.parameters.items() if id(p) in decayed}
    assert names == {"head.out.weight"}


def test_muon_leaves_heads_and_embeddings_to_adamw(places: tuple[Path, Path]) -> None:
    model = checkpoints.load(places[0], head="classify", n_classes=2, head_dropout=0.0)
    other = checkpoints.load(places[0], head="masked")
    model.masked_head = other.head
    found = optimizers.group_parameters(model, dict(model.named_parameters()), 0.1)
    matrices = {id(p) for g in found if g["kind"] == "matrix" for p in g["params"]}
    names = {name for name, p in model.named_parameters() if id(p) in matrices}
    assert names
    assert all(name.startswith(("body.stack.layers.", "body.pooler.")) for name in names)


def test_the_first_step_already_has_a_share_of_the_rate(places: tuple[Path, Path], tmp_path: Path) -> None:
    loop = make_loop(places, tmp_path, warmup=4.0)
    rates = []
    for step in range(6):
        loop.step(step)
        rates.append(loop.optimizer.param_groups[0]["lr"])
    assert rates[:4] == pytest.approx([1e-2 * n / 5 for n in (1, 2, 3, 4)])
    assert rates[4] == 1e-2
    assert rates[5] < 1e-2


@pytest.mark.parametrize("optimizer", ["adamw", "sgd", "rmsprop", "muon"])
def test_training_the_occurring_rows_is_training_all(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimizer: str
) -> None:
    compact = make_loop(places, tmp_path / "a", optimizer=optimizer)
    assert isinstance(compact.model.body.embed.tokens, OccurringRows)
    size = compact.parameters["body.embed.tokens.weight"].shape[0]
    assert size < 0.5 * compact.model.config.vocab_size
    compact.train()
    monkeypatch.setattr(module, "use_occurring_rows", lambda *args: None)
    dense = make_loop(places, tmp_path / "b", optimizer=optimizer)
    dense.train()
    ours, theirs = compact.model.state_dict(), dense.model.state_dict()
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        assert (ours[name] - tensor).abs().max() < 1e-10, name
    rows = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    others = [json.loads(line) for line in (tmp_path / "b" / "metrics.jsonl").read_text().splitlines()]
    assert [row["loss"] for row in rows] == pytest.approx([row["loss"] for row in others], abs=1e-9)


def test_an_id_that_was_not_announced_is_an_error_and_a_tied_table_is_left_alone(
    places: tuple[Path, Path], tmp_path: Path
) -> None:
    loop = make_loop(places, tmp_path)
    unseen = torch.tensor([[loop.model.config.vocab_size - 1]])
    table = loop.model.body.embed.tokens
    with pytest.raises(IndexError):
        table(unseen)
    table.eval()
    assert torch.equal(table(unseen)[0, 0], table.whole[0].weight[unseen[0, 0]])
    model = checkpoints.load(places[0], head="masked")
    assert module.use_occurring_rows(model, dict(model.named_parameters()), np.arange(5)) is None


def test_features_are_the_same_mathematics(places: tuple[Path, Path], tmp_path: Path) -> None:
    plain = make_loop(places, tmp_path / "a", "head", epochs=3)
    kept = make_loop(places, tmp_path / "b", "head", epochs=3)
    features = ClassifyFeatures(plain.objective, kept.model)  # type: ignore[arg-type]
    features.features = {
        split: Features(f.states.astype(np.float64), 0.0) for split, f in features.features.items()
    }
    for split, rows in (("train", features.rows), ("dev", np.arange(30)), ("test", np.arange(20))):
        with torch.no_grad():  # in float64, which the cache rounds to float32
            t = features.tokens[split]
            inputs = Classify.inputs(features, split, rows).tensors
            assert len(t) >= len(rows)
            features.features[split].states[rows] = kept.model.body.pooled(inputs["ids"], inputs["mask"])
    kept = Loop(kept.model, kept.parameters, features, kept.options, 1e-2, kept.run)
    for loop in (plain, kept):
        loop.model.eval()  # the body's dropout is off; the head's would be another stream
        for step in range(loop.plan.total):
            loop.step(step)
    for name, parameter in plain.parameters.items():
        assert (parameter - kept.parameters[name]).abs().max() < 1e-10, name
    a, b = (loop.objective.evaluate(loop.model, "dev") for loop in (plain, kept))
    assert a.loss == pytest.approx(b.loss, abs=1e-10)
    assert torch.get_num_threads() >= 1


class Scripted(Objective):
    """One number is trained; the scores on dev are given beforehand."""

    name, metric = "scripted", "accuracy"

    def __init__(self, scores: Sequence[tuple[float, float]] | None, nan_at: int | None = None) -> None:
        self.scores, self.nan_at = iter(scores or ()), nan_at
        self.weights = {"scripted": 1.0}
        self.scored: list[tuple[str, float, list[int] | None]] = []
        self.has_dev = scores is not None
        self.noisy = False

    def train_lengths(self) -> Any:
        return np.ones(5000, np.int64)

    def prepare(self, examples: Any, step: int, parts: int = 1) -> list[Inputs]:
        return [Inputs({"step": torch.tensor(float(step))}, {"scripted": len(examples)}, len(examples), 1)]

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        noise = torch.rand(())
        loss = (model.weight * (1.0 + noise)).sum()
        if self.nan_at is not None and inputs.tensors["step"] == self.nan_at:
            loss = loss * float("nan")
        return Losses({"scripted": loss}, torch.tensor(1))

    def evaluate(self, model: nn.Module, split: str, examples: Any = None) -> Evaluation:
        self.scored.append((split, model.weight.item(), None if examples is None else examples.tolist()))
        if self.noisy:
            torch.rand(17)
            np.random.default_rng(0).random()
        value, loss = next(self.scores) if split == "dev" else (0.5, 1.0)
        return Evaluation("accuracy", value, loss, 10)

    @property
    def splits(self) -> list[str]:
        return ["train", "dev", "test"] if self.has_dev else ["train", "test"]


def run_script(out: Path, part: Scripted, **more: Any) -> tuple[Loop, list[Metrics]]:
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, 3.0)
    options = AdaptOptions(**{"batch_size": 1000, "optimizer": "sgd", "weight_decay": 0.0, **more})
    loop = Loop(model, dict(model.named_parameters()), part, options, 1e-2, Run.create(out))
    loop.train()
    return loop, loop.run.read_metrics()


def test_the_best_on_dev_is_kept_and_ties_go_to_the_lower_loss(tmp_path: Path) -> None:
    part = Scripted([(0.6, 1.0), (0.8, 0.9), (0.8, 0.7), (0.8, 0.7), (0.7, 0.1)])
    loop, _ = run_script(tmp_path, part, epochs=5)
    assert loop.state.best_step == 15
    weights = [weight for split, weight, _ in part.scored if split == "dev"]
    assert loop.model.weight.item() == weights[2]


def test_patience_counts_evaluations_without_a_better_score(tmp_path: Path) -> None:
    part = Scripted([(0.6, 1.0), (0.7, 1.0), (0.7, 1.0), (0.65, 1.0), (0.99, 1.0)])
    loop, _ = run_script(tmp_path, part, epochs=9, patience=2)
    assert loop.state.step == 20
    assert loop.state.best_step == 10
    with pytest.raises(UserError, match="--patience needs a dev split"):
        run_script(tmp_path / "none", Scripted(None), patience=2)


def test_without_dev_the_last_weights_are_kept(tmp_path: Path) -> None:
    part = Scripted(None)
    loop, rows = run_script(tmp_path, part, epochs=2)
    assert loop.state.best_step == 10
    assert {row.split for row in rows} == {"train", "train_eval"}


def test_the_training_rows_that_are_scored_stay_the_same_and_are_few(tmp_path: Path) -> None:
    part = Scripted([(0.5, 1.0)] * 3)
    run_script(tmp_path, part, epochs=3)
    rows = [examples for split, _, examples in part.scored if split == "train"]
    assert len(rows) == 3
    assert rows[0] == rows[1] == rows[2]
    assert rows[0] is not None
    assert len(set(rows[0])) == 2000


@pytest.mark.parametrize("more", [{"eval_every": 1}, {"train_eval_rows": 0}, {"eval_every": 3}])
def test_evaluating_never_changes_training(tmp_path: Path, more: Mapping[str, Any]) -> None:
    def last(part: Scripted, name: str, **more: Any) -> Tensor:
        part.noisy = True
        loop, _ = run_script(tmp_path / name, part, epochs=2, **more)
        return checkpoint.load_weights(loop.run, 10)["weight"]

    assert torch.equal(last(Scripted([(0.5, 1.0)] * 2), "a"), last(Scripted([(0.5, 1.0)] * 10), "b", **more))


def test_a_loss_that_is_no_number_ends_with_one_line_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    part = Scripted([(0.5, 1.0)] * 4, nan_at=7)
    with pytest.raises(UserError, match=r"loss is no longer a number at step 8; .*last checkpoint is intact"):
        run_script(tmp_path, part, epochs=3)
    found = checkpoint.load_latest(Run(tmp_path))
    assert found is not None
    assert found[0].step == 5
    assert found[1]["weight"].isfinite().all()
    with pytest.raises(UserError, match="the loss on dev is no longer a number at step 6"):
        run_script(tmp_path / "dev", Scripted([(0.5, float("nan"))]), epochs=3)


def test_test_is_scored_once_for_the_best(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, Tensor]] = []
    evaluate = Classify.evaluate

    def counted(self: Classify, model: nn.Module, split: str, examples: Any = None) -> Evaluation:
        calls.append((split, model.head.out.weight.detach().clone()))
        return evaluate(self, model, split, examples)

    monkeypatch.setattr(Classify, "evaluate", counted)
    options = AdaptOptions(model=str(places[0]), task=str(places[1]), epochs=3, batch_size=8, lr=1e-2,
                           precision="float32", threads=1)  # fmt: skip
    done = train_run(replace(options, out=tmp_path / "a"))
    assert [split for split, _ in calls].count("test") == 1
    best = checkpoint.load_weights(Run(tmp_path / "a"), done.results.best_step or 0)["head.out.weight"]
    assert torch.equal(next(w for split, w in calls if split == "test"), best)
    calls.clear()
    done = train_run(replace(options, epochs=1, score_test=False, out=tmp_path / "b"))
    assert "test" not in [split for split, _ in calls]
    assert list(done.results.splits) == ["dev"]


def test_a_task_without_dev_trains_and_says_so(
    places: tuple[Path, Path], tmp_path: Path, heedful: Any
) -> None:
    task = make_task(tmp_path / "task", dev=False)
    done = heedful("adapt", places[0], task, "--epochs", 1, "--threads", 1, "--out", tmp_path / "run",
                   "--precision", "float32", "--split", "first")  # fmt: skip
    assert done.status == 0, done.err


def test_seeding_only_the_generators_that_are_used_is_torch_s_own_seeding() -> None:
    seed_generators(7, torch.device("cpu"))
    ours = torch.rand(5)
    torch.manual_seed(7)
    assert torch.equal(ours, torch.rand(5))


def test_the_training_seed_never_moves_a_row_to_another_split(tmp_path: Path) -> None:
    from heedful.options.training import AdaptOptions
    from heedful.training.build import build_adapt

    rows = [f"text number {i} is {'good' if i % 2 else 'bad'},{i % 2}" for i in range(60)]
    (tmp_path / "one.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    common = {
        "model": "bert-tiny",
        "task": str(tmp_path / "one.csv"),
        "tokenizer": "minilm",
        "precision": "float32",
    }

    def dev(**more: int) -> list[str]:
        return list(build_adapt(AdaptOptions(**common, **more)).scorer.task.splits["dev"].texts)

    assert dev(seed=0) == dev(seed=1)
    assert dev(split_seed=0) != dev(split_seed=1)


def test_any_registered_metric_can_select(
    places: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rarest = Metric("fewest_predictions", lambda labels, predicted: float(len(set(predicted.tolist()))),
                    higher_is_better=False)  # fmt: skip
    monkeypatch.setitem(METRICS.paths, rarest.name, "no:where")
    monkeypatch.setitem(METRICS.objects, rarest.name, rarest)
    kept = make_loop(places, tmp_path / "run", metric=rarest.name)
    kept.train()
    rows = [row for row in kept.run.read_metrics() if row.split == "dev"]
    assert kept.metric is rarest
    assert kept.state.best_value == min(row.value for row in rows if row.value is not None)
    assert all(row.value is None for row in kept.run.read_metrics() if row.split == "train")
    assert kept.score_split("dev").metric == rarest.name
    with pytest.raises(UserError, match="--metric perplexity: is computed from losses"):
        make_loop(places, tmp_path / "other", metric="perplexity")
    with pytest.raises(UserError, match="unknown metric"):
        make_loop(places, tmp_path / "none", metric="fewest")
