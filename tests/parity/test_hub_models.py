"""Architectures outside the native families: transformers' own logits, and the contracts of every method."""

from __future__ import annotations

import copy
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers as hf
from tokenizers import models as pieces
from tokenizers import pre_tokenizers, processors
from torch import Tensor

from heedful import checkpoints
from heedful.checkpoints import hub_reader, load
from heedful.errors import UserError
from heedful.inference.loading import load_run
from heedful.methods import METHODS, Method, head_names, make, measure_room, read_adapter, write_adapter
from heedful.models import Classifier
from heedful.options.training import AdaptOptions
from heedful.text import Tokenizer
from heedful.training.train import train_run as train_run

D, VOCAB, CLASSES = 24, 60, 3
SIZES = {
    "vocab_size": VOCAB, "hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": 3,
    "intermediate_size": 40, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
MAKERS: dict[str, tuple[str, dict[str, Any]]] = {
    "electra": ("ElectraForPreTraining", {**SIZES, "embedding_size": D, "max_position_embeddings": 140}),
    "mpnet": ("MPNetForMaskedLM", {**SIZES, "max_position_embeddings": 142}),
    "deberta-v2": (
        "DebertaV2ForMaskedLM",
        {**SIZES, "max_position_embeddings": 140, "relative_attention": True, "position_biased_input": False,
         "pos_att_type": ["p2c", "c2p"], "pooler_hidden_size": D},
    ),
    "albert": ("AlbertModel", {**SIZES, "embedding_size": 16, "max_position_embeddings": 140}),
    "opt": (
        "OPTForCausalLM",
        {"vocab_size": VOCAB, "hidden_size": D, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 40,
         "max_position_embeddings": 140, "word_embed_proj_dim": D, "dropout": 0.0, "attention_dropout": 0.0,
         "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
    ),
}  # fmt: skip
OURS = ("electra", "mpnet")
APPLY = [name for name in METHODS if name not in ("prefix", "top-layers")]
SMALL: dict[str, dict[str, Any]] = {"prompt": {"length": 5}, "lora": {"rank": 2, "targets": "q,k,v,o,ff"}}
every_method = pytest.mark.parametrize(("family", "name"), [(f, m) for f in OURS for m in APPLY])
every_family = pytest.mark.parametrize("family", MAKERS)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pretrained models with random weights, biases and norms included, as transformers saves them."""
    made = {}
    for family, (name, values) in MAKERS.items():
        torch.manual_seed(len(family))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # DeBERTa's module compiles functions in an old way
            cls = getattr(hf, name)
        model = cls(cls.config_class(**values))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        made[family] = tmp_path_factory.mktemp("hub") / family
        model.save_pretrained(made[family])
        words().save(made[family])
    return made


def words() -> Tokenizer:
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    vocabulary = {w: i for i, w in enumerate([*special, "good", "fine", "bad", "poor", "the", "film", "was"])}
    backend = tokenizers.Tokenizer(pieces.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    backend.post_processor = processors.TemplateProcessing(
        single=["<s>", "$A", "</s>"], special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return Tokenizer(backend, {"cls": "<s>", "pad": "<pad>", "sep": "</s>", "unk": "<unk>"})


def fresh(folder: Path, form: str = "family", **more: Any) -> Any:
    torch.manual_seed(1)
    model = load(folder, head="classify", n_classes=CLASSES, head_form=form, **more)  # type: ignore[arg-type]
    assert isinstance(model, Classifier)
    return model


def started(folder: Path, name: str) -> tuple[Any, Method]:
    model, method = fresh(folder, METHODS[name].default_head_form), make(name, **SMALL.get(name, {}))
    method.attach(model)
    return model, method


def batch(model: Any, lengths: tuple[int, ...] = (9, 4, 1, 7), wider: int = 0) -> dict[str, Tensor]:
    ids = torch.randint(3, VOCAB, (len(lengths), max(lengths)), generator=torch.Generator().manual_seed(3))
    mask = torch.zeros_like(ids)
    for row, length in enumerate(lengths):
        ids[row, length:], mask[row, :length] = model.config.pad_id or 0, 1
    pad = torch.full((len(ids), wider), model.config.pad_id or 0)
    return {
        "input_ids": torch.cat([ids, pad], 1),
        "attention_mask": torch.cat([mask, torch.zeros_like(pad)], 1),
    }


def logits(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    model.eval()
    with torch.no_grad():
        result: Tensor = model(**inputs)
    return result


def train(model: Any, method: Method) -> None:
    optimizer = torch.optim.AdamW(method.trainable(model).values(), lr=0.02)
    inputs = batch(model)
    model.train()
    for _ in range(3):
        loss = torch.nn.functional.cross_entropy(model(**inputs), torch.tensor([0, 1, 1, 0]))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


@every_family
def test_logits_are_those_of_transformers(folders, family, tmp_path) -> None:
    model = fresh(folders[family])
    with torch.no_grad():
        for parameter in model.head.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.labels = ["no", "maybe", "yes"]
    checkpoints.export(model, tmp_path / "whole")
    theirs = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "whole").eval()
    assert theirs.config.id2label == {0: "no", 1: "maybe", 2: "yes"}
    inputs = batch(model)
    if model.config.n_types > 1:
        inputs["token_type_ids"] = inputs["attention_mask"] * torch.tensor([0, 0, 1] * 3)
    with torch.no_grad():
        expected = theirs(**inputs).logits
    assert (logits(model, inputs) - expected).abs().max() <= 1e-5
    again = load(tmp_path / "whole", head="classify")
    assert again.labels == model.labels
    assert not again.report.new
    assert (logits(again, inputs) - expected).abs().max() <= 1e-5


@every_family
def test_states_without_a_head_are_those_of_transformers(folders, family) -> None:
    body, theirs = load(folders[family]), hf.AutoModel.from_pretrained(folders[family]).eval()
    inputs = batch(body)
    with torch.no_grad():
        expected = theirs(**inputs).last_hidden_state
    real = inputs["attention_mask"].bool()
    assert (logits(body, inputs) - expected)[real].abs().max() <= 1e-5


@pytest.mark.parametrize("form", ["family", "linear"])
@every_family
def test_a_saved_model_is_the_same_to_the_bit(folders, family, form, tmp_path) -> None:
    model = fresh(folders[family], form)
    checkpoints.save(model, tmp_path / "saved")
    again = load(tmp_path / "saved", head="classify")
    assert again.form == form
    assert torch.equal(logits(again, batch(model)), logits(model, batch(model)))
    own = json.loads((tmp_path / "saved" / "config.json").read_text())["model_type"]
    assert own == (family if form == "family" else "heedful")
    assert (checkpoints.find_export_obstacle(model) is None) == (form == "family")
    body = load(tmp_path / "saved")
    real = batch(model)["attention_mask"].bool()
    assert torch.equal(logits(body, batch(model))[real], logits(model.body, batch(model))[real])
    other = load(tmp_path / "saved", head="classify", n_classes=5, head_form=form)  # type: ignore[arg-type]
    assert logits(other, batch(model)).shape == (4, 5)


@every_family
def test_reading_reports_what_was_loaded_new_and_ignored(folders, family) -> None:
    report = fresh(folders[family]).report
    assert report.loaded
    assert report.new
    assert all(name.startswith("head.") for name in report.new)
    lost = {"electra": "discriminator_predictions.dense.weight", "mpnet": "lm_head.dense.weight"}
    assert family not in lost or lost[family] in report.ignored
    linear = fresh(folders[family], "linear").report
    assert linear.new == ["head.out.weight", "head.out.bias"]


@every_family
def test_padding_and_neighbours_change_nothing(folders, family) -> None:
    for name in ("full", "prompt"):
        model, _ = started(folders[family], name)
        model.double()
        tight = logits(model, batch(model))
        assert (logits(model, batch(model, wider=6)) - tight).abs().max() <= 1e-10
        alone = {key: value[1:2, :4] for key, value in batch(model).items()}
        assert (logits(model, alone) - tight[1:2]).abs().max() <= 1e-10


@every_family
def test_roles_name_every_linear_layer_of_the_layers(folders, family) -> None:
    roles = load(folders[family]).roles()
    layers = 1 if family == "albert" else 2  # its layers are one, run twice
    assert {role: len(names) for role, names in roles.items()} == {
        "q": layers, "k": layers, "v": layers, "o": layers, "ff": 2 * layers,
    }  # fmt: skip


@every_method
def test_attaching_changes_no_output_where_that_is_promised(folders, family, name) -> None:
    model = fresh(folders[family], METHODS[name].default_head_form)
    before = logits(model, batch(model))
    method = make(name, **SMALL.get(name, {}))
    method.attach(model)
    assert torch.equal(logits(model, batch(model)), before) == method.keeps_output


@every_method
def test_only_declared_parameters_move_and_all_of_them_do(folders, family, name) -> None:
    model, method = started(folders[family], name)
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    declared = method.trainable(model)
    assert set(head_names(model)) <= declared.keys()
    train(model, method)
    moved = {n for n, p in model.named_parameters() if not torch.equal(p, before[n])}
    assert moved <= declared.keys()
    # Softmax ignores what is added to all keys alike.
    assert all(n.endswith(("key.bias", "attn.k.bias")) for n in declared.keys() - moved)


@every_method
def test_save_and_load_give_the_same_bits(folders, family, name, tmp_path) -> None:
    model, method = started(folders[family], name)
    train(model, method)
    trained = logits(model, batch(model))
    reason = write_adapter(model, method, tmp_path / "adapter", str(folders[family]))
    assert reason
    again = fresh(folders[family], METHODS[name].default_head_form)
    assert not torch.equal(logits(again, batch(model)), trained)
    read_adapter(tmp_path / "adapter", again)
    assert torch.equal(logits(again, batch(model)), trained)
    copied = copy.deepcopy(model)
    train(model, method)
    assert torch.equal(logits(copied, batch(model)), trained)


@every_method
def test_merging_and_switching_off(folders, family, name, tmp_path) -> None:
    model, method = started(folders[family], name)
    base = logits(fresh(folders[family], METHODS[name].default_head_form), batch(model))
    train(model, method)
    trained = logits(model, batch(model))
    if method.switchable:
        with method.disabled(model):
            assert torch.equal(logits(model, batch(model)), base)
            assert measure_room(model) == model.config.max_len
    assert torch.equal(logits(model, batch(model)), trained)
    if method.mergeable:
        method.merge(model)
        assert (logits(model, batch(model)) - trained).abs().max() <= 1e-5
        checkpoints.save(model, tmp_path / "merged")
        again = load(tmp_path / "merged", head="classify")
        assert torch.equal(logits(again, batch(model)), logits(model, batch(model)))


@pytest.mark.parametrize("family", ["electra", "mpnet", "deberta-v2", "opt"])
def test_counts_are_those_of_every_family(folders, family) -> None:
    for name, expected in {"head": "2 d + 2", "prompt": "130 d + 2"}.items():
        torch.manual_seed(1)
        model = load(folders[family], head="classify", n_classes=2, head_form="linear")
        method = make(name)
        method.attach(model)
        assert method.formula(model) == f"{expected} = {method.count(model):,}"
        assert measure_room(model) == (140 if name == "head" or family == "deberta-v2" else 12)


def test_a_prompt_lives_in_the_width_of_the_embeddings(folders) -> None:
    model, method = started(folders["albert"], "prompt")
    assert method.count(model) == 5 * 16 + CLASSES * D + CLASSES
    train(model, method)


def test_the_prompt_stands_before_the_text(folders) -> None:
    """With the embeddings of real tokens as vectors, a prompt is those tokens."""
    model, method = started(folders["mpnet"], "prompt")
    inputs = batch(model)
    tokens = torch.tensor([7, 8, 9, 10, 11])
    with torch.no_grad():
        model.body.prompt.vectors.copy_(model.body.embed.tokens.weight[tokens])
    prompted = logits(model, inputs)
    with method.disabled(model), torch.no_grad():
        longer = {
            "input_ids": torch.cat([tokens.expand(4, -1), inputs["input_ids"]], 1),
            "attention_mask": torch.cat([torch.ones(4, 5).long(), inputs["attention_mask"]], 1),
        }
        states = model.body(**longer)
        expected = model.head(states[:, 5])
    with torch.no_grad():
        trained_head = model.head(states[:, 5])
    assert torch.equal(expected, trained_head)
    assert (prompted - expected).abs().max() <= 1e-5


def test_what_cannot_be_done_is_refused_in_one_line(folders, tmp_path) -> None:
    electra = folders["electra"]
    for call, message in {
        lambda: make("prefix").attach(fresh(electra)): "prefix puts keys and values into every layer",
        lambda: make("top-layers").attach(
            fresh(electra)
        ): "top-layers cannot run the lower layers of electra",
        lambda: fresh(electra, attention="performer"): "electra is transformers' and cannot be swapped",
        lambda: load(electra, head="masked"): 'its head is "classify" alone',
        lambda: fresh(electra, d_model=7): "d_model is fixed by the weights",
        lambda: fresh(electra)(
            torch.ones(1, 141).long()
        ): "a text of 141 tokens; this model has 140 positions",
        lambda: make("lora").attach(unnamed(electra)): "so lora does not work there",
    }.items():
        with pytest.raises(UserError, match=message):
            call()
    model = fresh(electra)
    with pytest.raises(UserError):
        make("prefix").attach(model)
    assert model.method is None


def unnamed(folder: Path) -> Any:
    """A model whose layers have names that nobody knows."""
    model = fresh(folder)
    for layer in model.body.module.encoder.layer:
        layer.strange = torch.nn.Module()
        for name, part in [(n, p) for n, p in layer.named_modules() if isinstance(p, torch.nn.Linear)]:
            layer.set_submodule(name, torch.nn.Identity())
            layer.strange.add_module(name.replace(".", "_"), part)
    return model


def spoiled(folder: Path, new: Path, **changes: Any) -> Path:
    new.mkdir()
    config = json.loads((folder / "config.json").read_text())
    (new / "config.json").write_text(json.dumps({**config, **changes}))
    (new / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
    return new


def test_folders_that_do_not_fit_are_refused_in_one_line(folders, tmp_path, monkeypatch) -> None:
    electra = folders["electra"]
    for i, (changes, message) in enumerate([
        ({"num_hidden_layers": 3}, 'the weights lack "electra.encoder.layer.2'),
        ({"num_hidden_layers": 1}, '"electra.encoder.layer.1.+ is unknown in this electra'),
        ({"intermediate_size": 44}, "config.json calls for"),
        ({"model_type": "bart"}, "encoder-decoder"),
        ({"model_type": "nothing"}, 'family "nothing" is not known; known families: bert'),
        ({"hidden_size": "wide"}, "is no electra"),
    ]):  # fmt: skip
        with pytest.raises(UserError, match=message):
            load(spoiled(electra, tmp_path / str(i), **changes), head="classify")
    monkeypatch.setattr(hub_reader, "is_transformers_installed", lambda: False)
    with pytest.raises(UserError, match=r"pip install 'heedful\[hub\]'"):
        load(electra, head="classify")


def test_code_beside_the_weights_is_never_run(folders, tmp_path) -> None:
    auto_map = {"AutoConfig": "evil.Config", "AutoModelForSequenceClassification": "evil.Model"}
    folder = spoiled(folders["electra"], tmp_path / "evil", auto_map=auto_map)
    (folder / "evil.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: pass\nclass Model: pass\n"
    )
    model = fresh(folder)
    assert not (tmp_path / "ran").exists()
    assert not [name for name in sys.modules if name.endswith("evil")]
    checkpoints.export(model, tmp_path / "out")
    assert "auto_map" not in (tmp_path / "out" / "config.json").read_text()


def test_a_head_that_reads_more_than_one_state_is_refused(tmp_path) -> None:
    config = hf.ModernBertConfig(
        **{k: v for k, v in SIZES.items() if "dropout" not in k}, classifier_pooling="mean", pad_token_id=0,
        cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2, max_position_embeddings=64,
    )  # fmt: skip
    hf.ModernBertModel(config).save_pretrained(tmp_path / "modern")
    with pytest.raises(UserError, match="reads more than one pooled state; --head linear works"):
        fresh(tmp_path / "modern")
    assert logits(fresh(tmp_path / "modern", "linear"), {"input_ids": torch.ones(1, 4).long()}).shape == (
        1,
        3,
    )


def test_dropout_can_be_chosen(folders) -> None:
    model = fresh(folders["electra"], dropout=0.5, attention_dropout=0.25)
    theirs = model.body.module.config
    assert (theirs.hidden_dropout_prob, theirs.attention_probs_dropout_prob) == (0.5, 0.25)
    assert model.table.raw["hidden_dropout_prob"] == 0.5


@pytest.mark.parametrize(("family", "name"), [("electra", "full"), ("mpnet", "prompt"), ("electra", "head")])
def test_adapt_makes_a_whole_run(folders, family, name, tmp_path) -> None:
    data = tmp_path / "moods"
    data.mkdir()
    for split in ("train", "dev", "test"):
        rows = [f"the film was {w},{int(w in ('good', 'fine'))}" for w in ("good", "fine", "bad", "poor")] * 6
        (data / f"{split}.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    options = AdaptOptions(
        model=str(folders[family]), task=str(data), method=name, lr=3e-3, epochs=8, batch_size=4,
        out=tmp_path / "run", precision="float32", threads=1, max_len=12,
        method_options=("length=5",) if name == "prompt" else (),
    )  # fmt: skip
    finished = train_run(options)
    assert {c.name: c.status for c in finished.checks.checks}["reload"] == "passed"
    assert name != "full" or finished.results.splits["test"].value == 1.0
    stored = [
        json.loads(line) for line in (tmp_path / "run" / "predictions_test.jsonl").read_text().splitlines()
    ]
    answers = load_run(tmp_path / "run").predict([row["text"] for row in stored])
    assert [a.label for a in answers] == [row["predicted"] for row in stored]
    if name == "full":
        after = hf.AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "best")
        before = hf.AutoModel.from_pretrained(folders[family])
        rows = [m.get_input_embeddings().weight.detach() for m in (before, after)]
        moved = (rows[0] != rows[1]).any(1)
        assert 0 < moved.sum() < len(moved)  # the tokens of the texts, and no others
