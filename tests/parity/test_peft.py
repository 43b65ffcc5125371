"""Adapters that we write, loaded by real peft on transformers' models: the same logits."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from oracles import BERT, DISTILBERT, GPT2, ORACLES, ROBERTA, T5, T5_11, Oracle, batch
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful import methods
from heedful.errors import UserError
from heedful.methods import Method, read_adapter, why_not_peft, write_adapter
from heedful.models import Classifier, load

pytestmark = pytest.mark.needs("peft")
TOLERANCE = 1e-5
LORA: list[dict[str, Any]] = [
    {"rank": 2},
    {"rank": 3, "alpha": 5.0, "targets": "q,k,v,o,ff", "rank_stabilized": True},
    {"rank": 2, "targets": "k"},
    {"rank": 2, "targets": "v,o"},
]


@pytest.fixture(autouse=True)
def peft() -> Any:
    """The oracle; it is part of the extra `bench`."""
    return pytest.importorskip("peft")


def base(oracle: Oracle, folder: Path) -> Path:
    """A pretrained body as transformers writes it, without a classifier's head."""
    oracle.make(None).save_pretrained(folder)
    return folder


def adapted(folder: Path, method: Method, **options: Any) -> Classifier:
    """Our classifier with random numbers in everything that the method trains."""
    torch.manual_seed(2)
    model = load(folder, head="classify", n_classes=3, **options)
    assert isinstance(model, Classifier)
    method.attach(model)
    with torch.no_grad():
        for parameter in method.trainable(model).values():
            parameter.copy_(0.15 * torch.randn_like(parameter))
    return model


def in_peft(folder: Path, adapter: Path, oracle: Oracle) -> Tensor:
    """The logits of the adapter as peft loads it, on a classifier with another head."""
    from peft import PeftModel

    torch.manual_seed(9)
    model = hf.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3)
    loaded = PeftModel.from_pretrained(model, adapter).eval()
    with torch.no_grad():
        logits: Tensor = loaded(**batch(oracle)).logits
    return logits


def assert_peft_agrees(
    oracle: Oracle, folder: Path, method: Method, model: Classifier, adapter: Path
) -> None:
    """Peft gives our logits, and reading the folder back gives our bits."""
    model.labels = ["a", "b", "c"]
    assert why_not_peft(model, method) is None
    assert write_adapter(model, method, adapter, str(folder)) is None
    with torch.no_grad():
        ours = model(**batch(oracle))
    theirs = in_peft(folder, adapter, oracle)
    assert ours.std() > 0.01
    assert (ours - theirs).abs().max() <= TOLERANCE

    again = load(folder, head="classify", n_classes=3)
    back = read_adapter(adapter, again)
    assert back == method
    assert again.labels == ["a", "b", "c"]
    with torch.no_grad():
        assert torch.equal(again(**batch(oracle)), ours)


@pytest.mark.parametrize("options", LORA, ids=lambda o: o.get("targets", "default"))
@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: o.name)
def test_peft_gives_our_logits_with_lora(oracle: Oracle, options: dict[str, Any], tmp_path: Path) -> None:
    folder = base(oracle, tmp_path / "base")
    method = methods.make("lora", **options)
    assert_peft_agrees(oracle, folder, method, adapted(folder, method), tmp_path / "adapter")


@pytest.mark.parametrize("oracle", [BERT, GPT2], ids=lambda o: o.name)
def test_peft_gives_our_logits_with_lora_in_the_upper_layers(oracle: Oracle, tmp_path: Path) -> None:
    folder = base(oracle, tmp_path / "base")
    method = methods.make("lora", rank=2, layers=1)
    assert_peft_agrees(oracle, folder, method, adapted(folder, method), tmp_path / "adapter")


@pytest.mark.parametrize("reparametrize", [False, True])
@pytest.mark.parametrize("oracle", [BERT, ROBERTA, GPT2], ids=lambda o: o.name)
def test_peft_gives_our_logits_with_a_prefix(oracle: Oracle, reparametrize: bool, tmp_path: Path) -> None:
    folder = base(oracle, tmp_path / "base")
    method = methods.make("prefix", length=5, reparametrize=reparametrize, hidden=8)
    model = adapted(folder, method)
    if reparametrize:
        method.load_state(model, method.state(model))
        assert method == methods.make("prefix", length=5, hidden=8)
    assert_peft_agrees(oracle, folder, method, model, tmp_path / "adapter")


@pytest.mark.parametrize("oracle", [BERT, ROBERTA, DISTILBERT], ids=lambda o: o.name)
def test_peft_gives_our_logits_with_a_prompt(oracle: Oracle, tmp_path: Path) -> None:
    folder = base(oracle, tmp_path / "base")
    method = methods.make("prompt", length=5, pool="first")
    assert_peft_agrees(oracle, folder, method, adapted(folder, method), tmp_path / "adapter")


@pytest.mark.parametrize("name", ["lora", "prefix", "prompt"])
def test_a_new_pooler_travels_with_the_head(name: str, tmp_path: Path) -> None:
    BERT.make("masked").save_pretrained(tmp_path / "base")
    given = {"lora": {}, "prefix": {"length": 4}, "prompt": {"length": 4, "pool": "first"}}[name]
    method = methods.make(name, **given)
    model = adapted(tmp_path / "base", method)
    assert "body.pooler.weight" in method.state(model)
    assert_peft_agrees(BERT, tmp_path / "base", method, model, tmp_path / "adapter")


def test_t5_names_its_head_and_gpt2_folds_its_projections(tmp_path: Path) -> None:
    for oracle in (T5, GPT2):
        folder = base(oracle, tmp_path / oracle.name)
        method = methods.make("lora", rank=2, targets="q,k,v,ff")
        write_adapter(adapted(folder, method), method, tmp_path / f"{oracle.name}-adapter", str(folder))
    facts = json.loads((tmp_path / "t5-adapter" / "adapter_config.json").read_text())
    assert "classification_head" in facts["modules_to_save"]
    tensors = load_file(tmp_path / "gpt2-adapter" / "adapter_model.safetensors")
    a = tensors["base_model.model.transformer.h.0.attn.c_attn.lora_A.weight"]
    b = tensors["base_model.model.transformer.h.0.attn.c_attn.lora_B.weight"]
    assert (a.shape, b.shape) == ((6, 24), (72, 6))
    assert [bool(b[24 * i : 24 * i + 24, 2 * j : 2 * j + 2].any()) for i in range(3) for j in range(3)] == [
        i == j for i in range(3) for j in range(3)
    ]


@pytest.mark.parametrize("oracle", [BERT, GPT2, T5], ids=lambda o: o.name)
def test_we_read_what_peft_trained(oracle: Oracle, peft: Any, tmp_path: Path) -> None:
    folder = base(oracle, tmp_path / "base")
    targets = {"bert": ["query", "value"], "gpt2": ["c_attn"], "t5": ["q", "v"]}[oracle.name]
    save = ["classification_head"] if oracle is T5 else None
    config = peft.LoraConfig(
        task_type="SEQ_CLS", r=3, lora_alpha=7, target_modules=targets, modules_to_save=save
    )
    model = hf.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft sets fan_in_fan_out itself for GPT-2, and says so
        theirs = peft.get_peft_model(model, config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:
                parameter.copy_(0.15 * torch.randn_like(parameter))
        expected = theirs(**batch(oracle)).logits
    theirs.save_pretrained(tmp_path / "adapter")
    ours = load(folder, head="classify", n_classes=3)
    read_adapter(tmp_path / "adapter", ours)
    with torch.no_grad():
        assert (ours(**batch(oracle)) - expected).abs().max() <= TOLERANCE


CANNOT = [
    (BERT, "full", {}, "peft has no full"),
    (BERT, "head", {}, "peft has no head"),
    (BERT, "bitfit", {}, "peft has no bitfit"),
    (BERT, "prompt", {"length": 4}, "peft pools the first virtual token"),
    (BERT, "prefix", {"length": 4, "shift": False}, "begins after the prefix"),
    (DISTILBERT, "prefix", {"length": 4}, "takes no keys from outside"),
    (T5_11, "prefix", {"length": 4}, "takes no keys from outside"),
    (GPT2, "prompt", {"length": 4}, "even if it is padding"),
    (T5, "prompt", {"length": 4}, "takes no embedded text"),
]


@pytest.mark.parametrize(("oracle", "name", "given", "why"), CANNOT)
def test_what_peft_cannot_hold_is_ours_and_says_why(
    oracle: Oracle, name: str, given: dict[str, Any], why: str, tmp_path: Path
) -> None:
    folder = base(oracle, tmp_path / "base")
    method = methods.make(name, **given)
    model = adapted(folder, method)
    reason = write_adapter(model, method, tmp_path / "adapter", str(folder))
    assert reason is not None
    assert why in reason
    assert "\n" not in reason
    assert not (tmp_path / "adapter" / "adapter_config.json").exists()
    again = load(folder, head="classify", n_classes=3)
    read_adapter(tmp_path / "adapter", again)
    with torch.no_grad():
        assert torch.equal(again(**batch(oracle)), model(**batch(oracle)))


def test_a_head_that_transformers_lacks_is_the_reason(tmp_path: Path) -> None:
    folder = base(ROBERTA, tmp_path / "base")
    method = methods.make("lora")
    model = adapted(folder, method, head_form="linear")
    assert "another head than one linear layer" in str(why_not_peft(model, method))


def test_why_peft_has_no_prompt_for_gpt2_is_true(peft: Any, tmp_path: Path) -> None:
    folder = base(GPT2, tmp_path / "base")
    model = hf.AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3)
    config = peft.PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=4)
    theirs = peft.get_peft_model(model, config).eval()
    inputs = batch(GPT2, (9, 4))
    with torch.no_grad():
        padded = theirs(**inputs).logits[1]
        alone = theirs(**{k: v[1:, :4] for k, v in inputs.items()}).logits[0]
    assert (padded - alone).abs().max() > 0.01


def test_an_adapter_of_another_base_is_refused(tmp_path: Path) -> None:
    folder = base(BERT, tmp_path / "base")
    method = methods.make("lora")
    write_adapter(adapted(folder, method), method, tmp_path / "adapter", "some/base")
    state = load_file(folder / "model.safetensors")
    state["embeddings.LayerNorm.bias"] += 1e-3
    save_file(state, folder / "model.safetensors", {"format": "pt"})
    other = load(folder, head="classify", n_classes=3)
    with pytest.raises(UserError, match="was trained on some/base, whose weights are not this model's"):
        read_adapter(tmp_path / "adapter", other)
