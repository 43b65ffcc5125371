"""Text to text: label words scored by teacher forcing, against transformers, with padding."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
import torch
import transformers as hf
from tokenizers import models as pieces
from tokenizers import pre_tokenizers, processors

from heedful import checkpoints
from heedful.data import Task, load_task
from heedful.errors import UserError
from heedful.inference.loading import load_run
from heedful.methods import METHODS, make
from heedful.objectives import Evaluation, LabelWords, Text2Text, parse_words
from heedful.options.training import AdaptOptions
from heedful.text import Tokenizer
from heedful.training.train import train_run

WORDS = ["good", "fine", "bad", "poor", "the", "film", "was", "very", "long", "no", "yes", "hardly", "plot"]


def tokenizer() -> Tokenizer:
    vocabulary = {w: i for i, w in enumerate(["<pad>", "</s>", "<unk>", *WORDS])}
    backend = tokenizers.Tokenizer(pieces.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single=["$A", "</s>"], pair=["$A", "$B", "</s>"], special_tokens=[("</s>", 1)]
    )
    return Tokenizer(backend, {"pad": "<pad>", "eos": "</s>", "unk": "<unk>"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random T5 with its tokenizer."""
    made = tmp_path_factory.mktemp("t5")
    torch.manual_seed(0)
    config = hf.T5Config(
        vocab_size=20, d_model=24, d_kv=8, d_ff=40, num_layers=2, num_heads=3, decoder_start_token_id=0
    )
    model = hf.T5ForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.3).add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(made)
    tokenizer().save(made)
    return made


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    """Two moods; the texts have from 1 to 7 words."""
    made = tmp_path_factory.mktemp("moods")
    random = np.random.default_rng(0)
    for split, rows in {"train": 96, "dev": 48, "test": 24}.items():
        lines = ["text,label"]
        for i in range(rows):
            mood = ["good", "fine"] if i % 2 else ["bad", "poor"]
            words = [*random.choice(WORDS[4:9], random.integers(0, 7)), random.choice(mood)]
            lines.append(f"{' '.join(random.permutation(words))},{['down', 'up'][i % 2]}")
        (made / f"{split}.csv").write_text("\n".join(lines) + "\n")
    return load_task(str(made))


def objective(task: Task, **options) -> Text2Text:
    words = {"down": "no the plot", "up": "yes"}
    return Text2Text(task, tokenizer(), max_len=32, with_types=False, words=words, **options)


def test_sums_of_log_probabilities_are_those_of_transformers(folder: Path, task: Task) -> None:
    ours = checkpoints.load(folder, head="text2text")
    theirs = hf.T5ForConditionalGeneration.from_pretrained(folder).eval()
    words = LabelWords(["a", "b", "c"], tokenizer(), {"a": "yes", "b": "no the plot", "c": "hardly good"})
    found = objective(task)
    inputs = found.inputs("dev", np.arange(12)).tensors
    assert inputs["mask"].sum(1).min() < inputs["mask"].shape[1]
    with torch.no_grad():
        scores = words.scores(ours, inputs["ids"], inputs["mask"])
        for i, target in enumerate([[13, 1], [12, 7, 15, 1], [14, 3, 1]]):
            labels = torch.tensor([target] * 12)
            logs = theirs(
                input_ids=inputs["ids"], attention_mask=inputs["mask"], labels=labels
            ).logits.log_softmax(-1)
            expected = logs.gather(2, labels[..., None]).sum((1, 2))
            assert (scores[:, i] - expected).abs().max() <= 1e-5
    assert scores.std(0).min() > 1e-3


def test_the_loss_is_that_of_transformers(folder: Path, task: Task) -> None:
    ours = checkpoints.load(folder, head="text2text")
    theirs = hf.T5ForConditionalGeneration.from_pretrained(folder).eval()
    inputs = objective(task).inputs("train", np.arange(9))
    t = inputs.tensors
    with torch.no_grad():
        found = objective(task).losses(ours, inputs)
        expected = theirs(input_ids=t["ids"], attention_mask=t["mask"], labels=t["targets"].contiguous()).loss
    assert inputs.counts["text2text"] == 5 * 4 + 4 * 2
    assert abs(float(found.sums["text2text"] / inputs.counts["text2text"] - expected)) <= 1e-5


def test_padding_and_other_classes_change_no_score(folder: Path, task: Task) -> None:
    model = checkpoints.load(folder, head="text2text").double()
    inputs = objective(task).inputs("dev", np.arange(6)).tensors
    words = {"down": "no the plot", "up": "yes", "more": "good good good the film"}
    two = LabelWords(["down", "up"], tokenizer(), words)
    three = LabelWords(["more", "down", "up"], tokenizer(), words)
    pad = torch.zeros(6, 5, dtype=torch.long)
    wide = [torch.cat([inputs[name], pad], 1) for name in ("ids", "mask")]
    with torch.no_grad():
        plain = two.scores(model, inputs["ids"], inputs["mask"])
        assert (two.scores(model, *wide) - plain).abs().max() <= 1e-6  # logs are summed in float32
        assert (three.scores(model, inputs["ids"], inputs["mask"])[:, 1:] - plain).abs().max() <= 1e-6
        alone = two.scores(model, inputs["ids"][:1, : inputs["mask"][0].sum()], None)
        assert (alone - plain[:1]).abs().max() <= 1e-6


def test_probabilities_are_the_softmax_over_classes(folder: Path, task: Task) -> None:
    model = checkpoints.load(folder, head="text2text")
    found = objective(task)
    evaluation: Evaluation = found.evaluate(model, "dev")
    inputs = found.inputs("dev", np.arange(48)).tensors
    with torch.no_grad():
        scores = found.words.scores(model, inputs["ids"], inputs["mask"])
    assert evaluation.probabilities is not None
    assert np.allclose(evaluation.probabilities, scores.softmax(1).numpy(), atol=1e-5)
    assert np.array_equal(evaluation.predicted, scores.argmax(1).numpy())


def test_class_weights_weigh_the_pieces_of_their_class(folder: Path, task: Task) -> None:
    model = checkpoints.load(folder, head="text2text")
    rows = np.arange(8)
    plain, weighed = objective(task), objective(task)
    weighed.class_weights = torch.tensor([0.5, 2.0])
    with torch.no_grad():
        by_class = [
            float(plain.losses(model, plain.inputs("train", rows[rows % 2 == c])).sums["text2text"])
            for c in (0, 1)
        ]
        total = float(weighed.losses(model, weighed.inputs("train", rows)).sums["text2text"])
    assert total == pytest.approx(0.5 * by_class[0] + 2.0 * by_class[1], rel=1e-5)


def test_class_weights_make_a_weighted_mean_over_pieces(folder: Path, task: Task) -> None:
    model = checkpoints.load(folder, head="text2text")
    rows = np.arange(9)  # not as many of one class as of the other
    plain, weighed = objective(task), objective(task)
    assert plain.inputs("train", rows).divisors is None

    def mean() -> float:
        inputs = weighed.inputs("train", rows)
        with torch.no_grad():
            total = float(weighed.losses(model, inputs).sums["text2text"])
        return total / (inputs.divisors or inputs.counts)["text2text"]

    unweighed = mean()
    weighed.class_weights = torch.tensor([3.0, 3.0])
    assert mean() == pytest.approx(unweighed, rel=1e-5)  # equal weights of any size change nothing
    weighed.class_weights = torch.tensor([0.5, 2.0])
    n_pieces = [len(weighed.words.targets[c][weighed.words.targets[c] >= 0]) for c in (0, 1)]
    assert n_pieces[0] > n_pieces[1]
    labels = weighed.inputs("train", rows).tensors["labels"].tolist()
    wanted = sum(n_pieces[c] * (0.5, 2.0)[c] for c in labels)
    assert weighed.inputs("train", rows).divisors == {"text2text": pytest.approx(wanted)}


def test_label_words_that_cannot_be_told_apart_are_refused() -> None:
    with pytest.raises(UserError, match='"yes" and "yes" have the same pieces'):
        LabelWords(["a", "b"], tokenizer(), {"a": "yes", "b": "yes"})
    with pytest.raises(UserError, match='"one" and "two" have the same pieces'):
        LabelWords(["one", "two"], tokenizer())  # both are unknown to the tokenizer
    with pytest.raises(UserError, match="is empty"):
        LabelWords(["a", "b"], tokenizer(), {"a": "", "b": "yes"})
    without = Tokenizer(tokenizer().backend, {"pad": "<pad>"})
    with pytest.raises(UserError, match="no end-of-text token"):
        LabelWords(["good", "bad"], without)


def test_label_words_are_read_by_label() -> None:
    names = ["0", "1", "a=b"]
    assert parse_words(["0=negative", "1=x=y", "a=b=c"], names) == {"0": "negative", "1": "x=y", "a=b": "c"}
    with pytest.raises(UserError, match="is not label=word"):
        parse_words(["negative"], names)
    with pytest.raises(UserError, match='unknown label in --label-words "2"'):
        parse_words(["2=neutral"], names)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("head", "bitfit", "top-layers")])
def test_methods_act_on_a_text_to_text_model(folder: Path, task: Task, name: str) -> None:
    model = checkpoints.load(folder, head="text2text")
    method = make(name, **({"length": 3} if name in ("prompt", "prefix") else {}))
    method.attach(model)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    found = objective(task)
    optimizer = torch.optim.AdamW(method.trainable(model).values(), lr=0.01)
    for _ in range(2):
        found.losses(model, found.inputs("train", np.arange(16))).sums["text2text"].backward()
        optimizer.step()
    moved = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert moved
    assert moved <= method.trainable(model).keys()
    assert np.isfinite(found.evaluate(model, "dev").loss)


def test_head_has_nothing_to_train(folder: Path) -> None:
    with pytest.raises(UserError, match="nothing to train in a text2text model"):
        make("head").attach(checkpoints.load(folder, head="text2text"))


@pytest.mark.parametrize("method", ["full", "lora"])
def test_a_run_predicts_what_it_scored_and_a_full_one_learns(
    folder: Path, task: Task, tmp_path: Path, method: str
) -> None:
    options = AdaptOptions(
        model=str(folder), task=str(task.folder), objective="text2text", method=method, lr=1e-2, epochs=10, batch_size=8,
        label_words=("down=no the plot", "up=yes"), out=tmp_path / "run", precision="float32", threads=1,
        method_options=("targets=q,k,v,o,ff",) if method == "lora" else (),
    )  # fmt: skip
    finished = train_run(options)
    checks = {check.name: check.status for check in finished.checks.checks}
    assert checks["reload"] == "passed"
    again = load_run(tmp_path / "run")
    stored = [
        json.loads(line) for line in (tmp_path / "run" / "predictions_test.jsonl").read_text().splitlines()
    ]
    answers = again.predict([row["text"] for row in stored])
    assert [a.label for a in answers] == [row["predicted"] for row in stored]
    assert all(
        a.probabilities == pytest.approx(r["probabilities"], abs=1e-5)
        for a, r in zip(answers, stored, strict=True)
    )
    assert json.loads((tmp_path / "run" / "results.json").read_text())["objective"] == "text2text"
    if method == "full":  # random weights leave an adapter little to work with
        assert (finished.results.splits["test"].value or 0.0) >= 0.95
        assert [a.label for a in again.predict(["the film was good", "very poor plot"])] == ["up", "down"]
        hf.T5ForConditionalGeneration.from_pretrained(tmp_path / "run" / "best")


def test_the_command_takes_as_many_label_words_as_follow(
    heedful, folder: Path, task: Task, tmp_path: Path
) -> None:
    options = ["--objective", "text2text", "--precision", "float32", "--out", str(tmp_path / "run")]
    done = heedful("adapt", str(folder), str(task.folder), *options, "--label-words", "down=yes", "up=yes")
    assert done.status == 2
    assert 'the label words "yes" and "yes" have the same pieces' in done.err
    done = heedful("adapt", str(folder), str(task.folder), *options, "--head", "linear")
    assert "--objective text2text writes text and has no --head linear" in done.err
    assert not (tmp_path / "run").exists()
