"""Our models against transformers' on random tiny checkpoints, float32, with padding: at most 1e-5."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
import torch
import transformers as hf
from oracles import CASES, GPT2, IDS, ORACLES, T5, T5_11, Oracle, batch, theirs
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful import checkpoints, models
from heedful.models import Cache, LanguageModel

TOLERANCE = 1e-5


def saved(oracle: Oracle, head: str | None, folder: Path) -> object:
    """An oracle's model and its folder as transformers writes it."""
    model = oracle.make(head)
    model.save_pretrained(folder)
    return model


def assert_same(ours: Tensor, other: Tensor, mask: Tensor) -> None:
    """Equal at real tokens, or whole for logits of texts."""
    assert ours.shape == other.shape
    real = mask.bool() if ours.dim() == 3 else torch.ones(len(ours), dtype=torch.bool)
    assert (ours - other)[real].abs().max() <= TOLERANCE


@pytest.mark.parametrize(("oracle", "head"), CASES, ids=IDS)
def test_what_we_load_computes_what_transformers_computes(
    oracle: Oracle, head: str | None, tmp_path: Path
) -> None:
    reference = saved(oracle, head, tmp_path)
    inputs = batch(oracle)
    ours = models.load(tmp_path, head=head)
    assert_same(ours(**inputs).detach(), theirs(reference, inputs, head), inputs["attention_mask"])
    assert ours.report.new == []


@pytest.mark.parametrize(("oracle", "head"), CASES, ids=IDS)
def test_what_we_export_transformers_loads_whole(oracle: Oracle, head: str | None, tmp_path: Path) -> None:
    reference = saved(oracle, head, tmp_path / "theirs")
    ours = models.load(tmp_path / "theirs", head=head)
    checkpoints.export(ours, tmp_path / "ours")
    auto = {
        None: hf.AutoModel,
        "classify": hf.AutoModelForSequenceClassification,
        "masked": hf.AutoModelForMaskedLM,
        "causal": hf.AutoModelForCausalLM,
        "text2text": hf.AutoModelForSeq2SeqLM,
    }[head]
    back, info = auto.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert type(back) is type(reference)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert not info["mismatched_keys"]
    inputs = batch(oracle)
    assert torch.equal(theirs(back.eval(), inputs, head), theirs(reference, inputs, head))


@pytest.mark.parametrize(("oracle", "head"), CASES, ids=IDS)
def test_a_round_trip_keeps_every_bit(oracle: Oracle, head: str | None, tmp_path: Path) -> None:
    saved(oracle, head, tmp_path / "theirs")
    ours = models.load(tmp_path / "theirs", head=head)
    checkpoints.save(ours, tmp_path / "ours")
    again = models.load(tmp_path / "ours", head=head)
    assert again.config == ours.config
    for (name, a), (_, b) in zip(ours.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: o.name)
def test_embeddings_and_one_layer_agree_part_by_part(oracle: Oracle, tmp_path: Path) -> None:
    reference = saved(oracle, None, tmp_path)
    ours = models.load(tmp_path)
    inputs = batch(oracle)
    seen: list[Tensor] = []
    first = {
        "bert": lambda: reference.encoder.layer[0],
        "roberta": lambda: reference.encoder.layer[0],
        "distilbert": lambda: reference.transformer.layer[0],
        "gpt2": lambda: reference.h[0],
    }.get(oracle.name, lambda: reference.encoder.block[0])()
    first.register_forward_hook(
        lambda m, args, out: seen.extend([args[0], out if isinstance(out, Tensor) else out[0]])
    )
    theirs(reference, inputs, None)
    mine: list[Tensor] = []
    layer = (ours.encoder if hasattr(ours, "encoder") else ours.stack).layers[0]
    layer.register_forward_hook(lambda m, args, out: mine.extend([args[0], out]))
    ours(**inputs)
    for a, b in zip(mine, seen, strict=True):
        assert_same(a.detach(), b.detach(), inputs["attention_mask"])


@pytest.mark.parametrize("oracle", [T5, T5_11], ids=lambda o: o.name)
def test_t5_generation_logits_agree_step_by_step_with_a_cache(oracle: Oracle, tmp_path: Path) -> None:
    reference = saved(oracle, "text2text", tmp_path)
    ours = models.load(tmp_path, head="text2text")
    assert isinstance(ours, LanguageModel)
    inputs = batch(oracle)
    decoder_ids = torch.randint(2, 60, (4, 6), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        whole = reference(**inputs, decoder_input_ids=decoder_ids).logits
        context = ours.body.encode(inputs["input_ids"], inputs["attention_mask"])
        cache = Cache()
        steps = [
            ours.step(decoder_ids[:, i : i + 1], cache, inputs["attention_mask"], context) for i in range(6)
        ]
    assert (torch.cat(steps, 1) - whole).abs().max() <= TOLERANCE


def test_gpt2_decodes_with_a_cache_as_without(tmp_path: Path) -> None:
    reference = saved(GPT2, "causal", tmp_path)
    ours = models.load(tmp_path, head="causal")
    ids = batch(GPT2, (8, 8))["input_ids"]
    with torch.no_grad():
        whole = reference(ids).logits
        cache = Cache()
        steps = torch.cat(
            [ours.step(ids[:, :3], cache), ours.step(ids[:, 3:4], cache), ours.step(ids[:, 4:], cache)], 1
        )
    assert (steps - whole).abs().max() <= TOLERANCE


def test_t5_1_1_has_an_output_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    reference = T5_11.make("text2text")
    reference.lm_head.weight = torch.nn.Parameter(0.2 * torch.randn_like(reference.lm_head.weight))
    reference.save_pretrained(tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state["lm_head.weight"] = reference.lm_head.weight.detach().clone()
    save_file(state, tmp_path / "model.safetensors", {"format": "pt"})
    inputs = batch(T5_11)
    ours = models.load(tmp_path, head="text2text")
    assert not ours.config.tie_output
    assert ours.config.output_scale == 1.0
    assert_same(ours(**inputs).detach(), theirs(reference, inputs, "text2text"), inputs["attention_mask"])
    checkpoints.export(ours, tmp_path / "ours")
    assert torch.equal(
        load_file(tmp_path / "ours" / "model.safetensors")["lm_head.weight"], state["lm_head.weight"]
    )


def old_names(name: str) -> str:
    """The names of the first checkpoints: gamma and beta for norms."""
    for norm in ("LayerNorm", "layer_norm"):
        name = name.replace(f"{norm}.weight", f"{norm}.gamma").replace(f"{norm}.bias", f"{norm}.beta")
    return name


FORMS = {
    "old norm names": lambda oracle, state: {old_names(n): t for n, t in state.items()},
    "with the prefix": lambda oracle, state: {PREFIX[oracle.name] + n: t for n, t in state.items()},
    "half precision": lambda oracle, state: {n: t.half() for n, t in state.items()},
    "with buffers": lambda oracle, state: {**state, **BUFFERS.get(oracle.name, {})},
    "with a tied copy": lambda oracle, state: {**state, **COPIES.get(oracle.name, lambda s: {})(state)},
}
PREFIX = {"bert": "bert.", "roberta": "roberta.", "distilbert": "distilbert.", "gpt2": "transformer.",
          "t5": "transformer.", "t5-1.1": "transformer."}  # fmt: skip
BUFFERS = {
    "bert": {
        "embeddings.position_ids": torch.arange(32)[None],
        "cls.seq_relationship.weight": torch.zeros(2, 24),
    },
    "roberta": {"embeddings.position_ids": torch.arange(34)[None], "lm_head.bias": torch.zeros(60)},
    "gpt2": {"h.0.attn.bias": torch.ones(1, 1, 32, 32), "h.1.attn.masked_bias": torch.tensor(-1e4)},
    "t5": {"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": torch.zeros(32, 3)},
}
COPIES = {
    "bert": lambda s: {"cls.predictions.decoder.weight": s["embeddings.word_embeddings.weight"].clone()},
    "gpt2": lambda s: {"lm_head.weight": s["wte.weight"].clone()},
    "t5": lambda s: {
        "encoder.embed_tokens.weight": s["shared.weight"].clone(),
        "decoder.embed_tokens.weight": s["shared.weight"].clone(),
    },
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("oracle", ORACLES, ids=lambda o: o.name)
def test_historical_forms_load_the_same_weights(oracle: Oracle, form: str, tmp_path: Path) -> None:
    saved(oracle, None, tmp_path)
    expected = models.load(tmp_path)
    path = tmp_path / "model.safetensors"
    state = FORMS[form](oracle, load_file(path))
    save_file(state, path, {"format": "pt"})
    again = models.load(tmp_path)
    for (name, a), (_, b) in zip(expected.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(
            a.half() if form == "half precision" else a, b.half() if form == "half precision" else b
        ), name


@pytest.mark.parametrize("form", ["bin", "sharded bin", "sharded safetensors"])
def test_every_container_reads_the_same(form: str, tmp_path: Path) -> None:
    model = saved(ORACLES[0], "masked", tmp_path)
    expected = models.load(tmp_path, head="masked")
    (tmp_path / "model.safetensors").unlink()
    if form == "sharded safetensors":
        model.save_pretrained(tmp_path, max_shard_size="10KB")
        assert len(list(tmp_path.glob("*.safetensors"))) > 2
    else:
        state = dict(model.state_dict())
        names = sorted(state)
        halves = [names] if form == "bin" else [names[::2], names[1::2]]
        files = ["pytorch_model.bin"] if form == "bin" else [f"pytorch_model-{i}-of-2.bin" for i in (1, 2)]
        for file, part in zip(files, halves, strict=True):
            torch.save({n: state[n] for n in part}, tmp_path / file)
        if form == "sharded bin":
            where = {n: f for f, part in zip(files, halves, strict=True) for n in part}
            (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
    again = models.load(tmp_path, head="masked")
    for (name, a), (_, b) in zip(expected.named_parameters(), again.named_parameters(), strict=True):
        assert torch.equal(a, b), name


def test_a_body_gets_a_new_head_and_says_so(tmp_path: Path) -> None:
    saved(ORACLES[0], "masked", tmp_path)
    ours = models.load(tmp_path, head="classify", n_classes=4)
    assert ours.report.new == ["body.pooler.weight", "body.pooler.bias", "head.out.weight", "head.out.bias"]
    assert "cls.predictions.bias" in ours.report.ignored


def test_a_classifier_keeps_its_number_of_classes_unless_told(tmp_path: Path) -> None:
    saved(ORACLES[2], "classify", tmp_path)
    assert models.load(tmp_path, head="classify").n_classes == 3
    other = models.load(tmp_path, head="classify", n_classes=5)
    assert other.n_classes == 5
    assert "head.out.weight" in other.report.new
    assert "classifier.weight" in other.report.ignored


def test_the_real_minilm_agrees_with_transformers() -> None:
    from heedful.text.model_folders import minilm_folder

    reference = hf.AutoModel.from_pretrained(minilm_folder()).eval()
    ours = models.load("minilm")
    assert ours.report.new == []
    ids = torch.randint(1000, 30000, (3, 20), generator=torch.Generator().manual_seed(0))
    mask = torch.ones_like(ids)
    mask[1, 11:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    assert_same(ours(**inputs).detach(), theirs(reference, inputs, None), mask)
    pooled = ours.pool(ours(**inputs), ids, mask)
    with torch.no_grad():
        assert (pooled - reference(**inputs).pooler_output).abs().max() <= TOLERANCE


def test_an_exported_minilm_brings_its_tokenizer(tmp_path: Path) -> None:
    checkpoints.export(models.load("minilm", head="classify", n_classes=2), tmp_path / "out")
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "out")
    assert tokenizer("hello").input_ids[:2] == [101, 7592]


def test_left_padding_changes_no_real_token_of_roberta(tmp_path: Path) -> None:
    reference = saved(ORACLES[1], None, tmp_path)
    inputs = batch(ORACLES[1])
    flipped = copy.deepcopy(inputs)
    for row, length in enumerate(inputs["attention_mask"].sum(1).tolist()):
        flipped["input_ids"][row] = inputs["input_ids"][row].roll(9 - length)
        flipped["attention_mask"][row] = inputs["attention_mask"][row].roll(9 - length)
    ours = models.load(tmp_path)
    assert_same(ours(**flipped).detach(), theirs(reference, flipped, None), flipped["attention_mask"])
