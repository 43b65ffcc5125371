"""Reading Hub folders whose architecture only transformers has, into `HubModel`.

No remote code is ever run: only modules that transformers itself holds, filled with tensors that we read.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from heedful.checkpoints.hub import HubBody, HubModel
from heedful.checkpoints.tables import ACTIVATIONS, SAME_ACTIVATION, Family, Row
from heedful.errors import UserError, shorten, unknown
from heedful.models import TransformerConfig
from heedful.models.heads import HeadForm
from heedful.runs.memory import require_memory

LARGEST_SIZE, MOST_LAYERS = 2**31, 10_000
LAYERS = re.compile(r"layers$|^n_layer$|^num_(hidden_)?(groups|blocks)$")
WIDTH = re.compile(r"^(hidden_size|d_model|n_embd|dim)$")
INNER_WIDTH = re.compile(r"^(intermediate_size|d_ff|hidden_dim|ffn_dim|n_inner)$")
TABLE_OF_POSITIONS = re.compile(r"(^|\.)(position_embeddings|embed_positions|wpe)$")
DROPOUTS = {
    "attention_dropout": re.compile(r"att"),
    "embed_dropout": re.compile(r"emb"),
    "ff_dropout": re.compile(r"activation|ffn"),
    "head_dropout": re.compile(r"classif|summary|cls"),
    "dropout": re.compile(r""),
}
"""Which of our dropouts a field of their configuration is: the first that matches."""


@dataclass(frozen=True)
class HubFamily(Family):
    """A checkpoint table in which both sides have the same names, for one model."""

    raw: Mapping[str, Any] = field(default_factory=dict)
    """Their config.json."""

    def write_config(self, config: TransformerConfig) -> dict[str, Any]:
        return dict(self.raw)

    def own_facts(self) -> dict[str, Any]:
        return {"hub": dict(self.raw)}

    def why_not(self, config: TransformerConfig) -> str | None:
        return None


def is_transformers_installed() -> bool:
    return importlib.util.find_spec("transformers") is not None


def has_classifier(model_type: object) -> bool:
    if not isinstance(model_type, str) or not is_transformers_installed():
        return False
    from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES

    return model_type in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES


def read(
    folder: Path,
    raw: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    head: str | None,
    n_classes: int | None,
    form: HeadForm,
    changes: Mapping[str, Any],
) -> tuple[Any, list[str], list[str], list[str]]:
    """Read a folder's model; also return the names loaded (theirs), new (ours) and ignored."""
    stored = raw.get("id2label")
    n = n_classes or (len(stored) if isinstance(stored, dict) and len(stored) > 1 else 2)
    model, missing, unexpected = build(raw, head, n, form, changes, tensors, str(folder))
    table = model.table
    body, prefix = "" if head is None else "body.", table.prefixes[head]
    new = []
    for name in sorted(missing):
        inside = head is None or name.startswith(prefix)
        if inside and "pooler" not in name:
            raise UserError(f'{folder}: the weights lack "{name}", which config.json calls for')
        new.append(f"{body}module.{name.removeprefix(prefix)}" if inside else f"head.theirs.{name}")
    for name in sorted(unexpected):
        if table.layer.match(name.removeprefix(prefix)):
            raise UserError(f'{folder}: "{name}" is unknown in this {table.name}; is config.json another\'s?')
    parameters = dict(model.named_parameters())
    if form == "linear" and head is not None:
        new = [n for n in new if not n.startswith("head.")] + [n for n in parameters if n.startswith("head.")]
    return model, sorted(set(tensors) - unexpected), [n for n in new if n in parameters], sorted(unexpected)


def refuse_sizes(raw: Mapping[str, Any], where: str) -> None:
    """Refuse sizes that no model has, before transformers allocates what they ask for."""
    largest = {LAYERS: 1, WIDTH: 1, INNER_WIDTH: 1}  # a size may have several names
    for name, value in raw.items():
        if not isinstance(value, int) or isinstance(value, bool) or name.endswith("_id"):
            continue
        limit = MOST_LAYERS if LAYERS.search(name) else LARGEST_SIZE
        if abs(value) > limit:
            raise UserError(f"{where}: {name} {value}: must be at most {limit:,}")
        for pattern, size in largest.items():
            if pattern.search(name):
                largest[pattern] = max(size, value)
    layers, wide, inner = largest.values()
    if isinstance(groups := raw.get("num_hidden_groups"), int):  # layers that share their weights
        layers = max(1, groups)
    width = raw.get("hidden_size")
    vocabulary = raw.get("vocab_size")
    if isinstance(width, int) and isinstance(vocabulary, int):
        require_memory(
            4.0 * width * vocabulary, f"{where}: a vocabulary of {vocabulary:,} of width {width:,}"
        )
    require_memory(4.0 * layers * wide * max(wide, inner), f"{where}: a model of these sizes")


def build(
    raw: Mapping[str, Any],
    head: str | None,
    n_classes: int,
    form: HeadForm,
    changes: Mapping[str, Any],
    tensors: Mapping[str, Tensor] | None = None,
    where: str = "config.json",
) -> tuple[Any, set[str], set[str]]:
    """Build a model, with `tensors` if given; also return which tensors were missing and unexpected."""
    import transformers
    from transformers.models.auto import modeling_auto as auto

    family = str(raw.get("model_type"))
    if head not in (None, "classify"):
        raise UserError(f'{where}: {family} is outside heedful\'s own families; its head is "classify" alone')
    if form not in ("family", "linear"):
        raise unknown("head form", form, ("family", "linear"))
    raw = {k: v for k, v in raw.items() if k not in ("auto_map", "dtype", "torch_dtype")}
    raw = {**raw, **translate_dropouts(raw, changes, family)}
    values = {k: v for k, v in raw.items() if k not in ("id2label", "label2id", "num_labels")}
    with silence_transformers():
        try:
            config = transformers.CONFIG_MAPPING[family].from_dict({**values, "num_labels": n_classes})
        except Exception as error:  # their validation raises what it likes
            raise UserError(f"{where}: is no {family} ({shorten(str(error), 120)})") from None
        if config.is_encoder_decoder:
            raise UserError(f"{where}: {family} is an encoder-decoder; of those heedful adapts t5 alone")
        causal, masked = auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
        decoder = family in causal and family not in masked
        if decoder:
            config.use_cache = False
            if config.pad_token_id is None:  # their classifiers refuse batches without one
                raw["pad_token_id"] = config.pad_token_id = 0
        # What we saved has the classifier's body, which may lack a pooler that the bare model has.
        bare = head is None and tensors is not None
        classes = auto.MODEL_MAPPING if bare else auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING
        theirs, missing, unexpected = build_module(classes[type(config)], config, tensors, where)
        module = theirs.base_model
        body = HubBody(module, describe(config, module, family, decoder, where))
        body.table = tensor_table(theirs, module, family, head, raw)
        if head is None:
            return body, missing, unexpected
        expected = probe(theirs, body) if form == "family" else None
        model = HubModel(body, n_classes, form, theirs)
    model.table = body.table
    if expected is not None:
        refuse_other_heads(model, *expected)
    return model, missing, unexpected


def build_module(
    cls: Any, config: Any, tensors: Mapping[str, Tensor] | None, where: str
) -> tuple[Any, Any, Any]:
    if tensors is None:
        return cls(config).eval(), set(), set()
    theirs, info = cls.from_pretrained(
        None, config=config, state_dict=dict(tensors), output_loading_info=True, ignore_mismatched_sizes=True
    )
    missing, prefix = set(info["missing_keys"]), f"{theirs.base_model_prefix}."
    bare = theirs is theirs.base_model
    for name, shape, wanted in info["mismatched_keys"]:
        if bare or name.startswith(prefix):
            raise UserError(
                f'{where}: "{name}" has shape {tuple(shape)}; config.json calls for {tuple(wanted)}'
            )
        missing.add(name)  # a head for another number of classes
    return theirs.float().eval(), missing, set(info["unexpected_keys"])


def translate_dropouts(raw: Mapping[str, Any], changes: Mapping[str, Any], family: str) -> dict[str, float]:
    """Return dropouts in their words; anything else is in the weights or in their code."""
    for name in changes:
        if name in ("attention", "attention_options"):
            raise UserError(f"the attention of {family} is transformers' and cannot be swapped")
        if name == "pool":
            raise UserError(f"{family} pools as transformers does; pool is for heedful's own families")
        if not name.endswith("dropout"):
            raise UserError(f"{name} is fixed by the weights; only dropouts can be chosen")
    if not changes:
        return {}
    import transformers

    defaults = transformers.CONFIG_MAPPING[family]().to_dict()
    new: dict[str, float] = {}
    for theirs, value in {**defaults, **raw}.items():
        if "drop" not in theirs or not isinstance(value, int | float) or isinstance(value, bool):
            continue
        ours = next(name for name, pattern in DROPOUTS.items() if pattern.search(theirs))
        if ours in changes:
            new[theirs] = float(changes[ours])
    if not new:
        raise UserError(f"{family} has no dropout of that kind in its configuration")
    return new


def describe(config: Any, module: Any, family: str, decoder: bool, where: str) -> TransformerConfig:
    """Return their configuration in our words, as far as methods, objectives and checks ask for it."""
    try:
        tokens = module.get_input_embeddings()
    except NotImplementedError:
        tokens = None
    if not isinstance(tokens, nn.Embedding):
        raise UserError(f"{where}: {family} has no table of token embeddings, so heedful cannot adapt it")
    tables = [m for n, m in module.named_modules() if TABLE_OF_POSITIONS.search(n) and hasattr(m, "weight")]
    rotary = any("rotary" in n for n, _ in module.named_modules())
    relative = getattr(config, "relative_attention", False)  # without a table there is no end to run into
    longest = getattr(config, "max_position_embeddings", None) or getattr(config, "n_positions", None) or 512
    # RoBERTa's kin begin after the padding's row.
    before = [m.padding_idx + 1 for m in tables if getattr(m, "padding_idx", None) is not None]
    d_model, n_heads = int(config.hidden_size), int(getattr(config, "num_attention_heads", 1))
    activation = str(getattr(config, "hidden_act", ""))
    forward = inspect.signature(module.forward).parameters
    ids = (config.pad_token_id, config.bos_token_id, config.eos_token_id)
    pad_id, bos_id, eos_id = (i if isinstance(i, int) else None for i in ids)  # a list has no one id
    return TransformerConfig(
        kind="decoder" if decoder else "encoder",
        family=family,
        vocab_size=tokens.num_embeddings,
        d_model=d_model,
        n_layers=int(config.num_hidden_layers),
        n_heads=n_heads,
        d_head=max(1, d_model // n_heads),
        d_ff=int(getattr(config, "intermediate_size", None) or 4 * d_model),
        max_len=int(longest) - max(before, default=0),
        position="rotary" if rotary else "learned" if tables or not relative else "relative",
        n_types=int(getattr(config, "type_vocab_size", 0) or 0) if "token_type_ids" in forward else 0,
        pooler=getattr(module, "pooler", None) is not None,
        norm_place="pre" if decoder else "post",
        activation=cast(Any, ACTIVATIONS.get(SAME_ACTIVATION.get(activation, activation), "gelu")),
        head_dropout=float(
            getattr(config, "classifier_dropout", None) or getattr(config, "hidden_dropout_prob", None) or 0.1
        ),
        pad_id=pad_id,
        bos_id=bos_id,
        eos_id=eos_id,
    )


def tensor_table(
    theirs: Any, module: Any, family: str, head: str | None, raw: Mapping[str, Any]
) -> HubFamily:
    """Return the names of a model's tensors, each once, in its body and in its head."""
    names: dict[int, str] = {}
    for name, tensor in module.state_dict(keep_vars=True).items():
        names.setdefault(id(tensor), name)
    unique = list(names.values())
    prefix = "" if head is None else f"{theirs.base_model_prefix}."
    rest = [] if head is None else [n for n in theirs.state_dict() if not n.startswith(prefix)]
    return HubFamily(
        name=family,
        rows=lambda _: [Row(n, (f"module.{n}",)) for n in unique],
        heads={"classify": [Row(n, (f"head.theirs.{n}",)) for n in rest]},
        classes={head: type(module if head is None else theirs).__name__},
        prefixes={head: prefix},
        fields=(),
        fixed={},
        layer=re.compile(r"(encoder|transformer|decoder|layers?|h|blocks?)\.(\w+\.)*?\d+\."),
        ignored=re.compile(r"(?!)"),
        raw=raw,
    )


def probe(theirs: Any, body: HubBody) -> tuple[Tensor, Tensor, Tensor]:
    """Return two texts, the second padded, and the logits of their whole classifier."""
    config = body.config
    ids = torch.arange(2, 12).view(2, 5) % config.vocab_size
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    ids = ids.masked_fill(mask == 0, config.pad_id or 0)
    with torch.no_grad():
        return ids, mask, theirs(input_ids=ids, attention_mask=mask).logits


def refuse_other_heads(model: HubModel, ids: Tensor, mask: Tensor, expected: Tensor) -> None:
    """Refuse a head that is not a function of one pooled state, which two texts show."""
    for with_pooler in (True, False):
        cast(Any, model.body).pools_states = with_pooler
        try:
            with torch.no_grad():
                logits = model.eval()(ids, mask)
        except (RuntimeError, TypeError, ValueError, AttributeError, IndexError):
            continue
        if logits.shape == expected.shape and torch.allclose(logits, expected, rtol=1e-3, atol=1e-4):
            return
    raise UserError(
        f"the own head of {model.config.family} reads more than one pooled state; --head linear works"
    )


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Hide transformers' tables and progress bars: what was loaded is in our report."""
    from transformers.utils import logging as their_logging

    logging: Any = their_logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about what their modules are made of
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
