"""Models by name: from a Hub folder, the packaged MiniLM, a preset, or the Hub."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from heedful.attention import parse
from heedful.checkpoints import hub_reader as hub
from heedful.checkpoints import sentence_transformers_form as sentence_form
from heedful.checkpoints.assignment import convert_tensor, set_weights, shape_error
from heedful.checkpoints.files import LEGACY_PATTERNS, POOLING, read_model_json, read_tensors
from heedful.checkpoints.tables import Family, Row
from heedful.errors import UserError
from heedful.families import FAMILIES
from heedful.models import PRESETS, Classifier, LanguageModel, Model, TransformerConfig, build
from heedful.models.config import DROPOUTS
from heedful.models.heads import HeadForm
from heedful.runs.old_names import update_names
from heedful.text.model_folders import find_folder

OWN = "heedful"
POOLINGS = {"mean_tokens": "mean", "cls_token": "first"}
"""The poolings that a sentence-transformers folder may declare, and our names for them."""
PROBLEM_TYPES = ("multi_label_classification", "regression")
"""What a classifier's outputs mean, as transformers calls it in config.json, if it is not one label."""
THRESHOLDS = "heedful_thresholds"
"""The key of config.json for the probability from which each of several labels is predicted."""
TRAINED_LENGTH = "heedful_trained_length"
"""The key of config.json for the largest number of tokens per text in training."""
CHANGEABLE = {"attention", "attention_options", *DROPOUTS, "head_dropout", "pool"}
"""What may differ from a checkpoint's configuration: the rest is in its weights."""


@dataclass(frozen=True)
class LoadReport:
    """What reading a checkpoint did. `loaded` and `ignored` are names in the file, `new` are ours."""

    source: str
    folder: Path | None = None
    loaded: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def load(
    name: str | Path,
    head: str | None = None,
    n_classes: int | None = None,
    attention: str | None = None,
    *,
    head_form: HeadForm = "family",
    **changes: Any,
) -> Model:
    """Load a model by name, ready to evaluate (call `.train()` to train it).

    `name` is, in this order: a folder in Hub form, `minilm`, a preset, `$HEEDFUL_MODELS/<name>`, a Hub id.
    `head` is None, "classify", "masked", "causal" or "text2text"; `n_classes` defaults to the checkpoint's
    own number, else 2. `attention` swaps the mechanism, as "performer" or "performer:features=64".
    `changes` are fields of `TransformerConfig`; a pretrained model takes only dropouts and `pool`, and
    `dropout` means every one that the body has.
    What was loaded, new and ignored is in the model's `report`.
    """
    name = str(name)
    if n_classes is not None and (not isinstance(n_classes, int) or n_classes < 1):
        raise UserError(f"a classifier needs at least 1 output, not {n_classes!r}")
    if attention is not None:
        changes["attention"], changes["attention_options"] = parse(attention)
    if name in PRESETS and not Path(name).is_dir():
        config = with_changes(PRESETS[name].config, changes)
        config = config.replace(pooler=config.pooler and head in (None, "classify"))
        model = build(config, head, n_classes or 2, head_form)
        return attach_report(model, LoadReport(name, new=[n for n, _ in model.named_parameters()]))
    folder = find_folder(name, LEGACY_PATTERNS, PRESETS)
    theirs = read_model_json(folder / "config.json")
    tensors = read_tensors(folder)
    if theirs.get("model_type") == OWN:
        model = load_own(name, folder, theirs, tensors, head, n_classes, head_form, changes)
    elif theirs.get("model_type") not in FAMILIES and hub.has_classifier(theirs.get("model_type")):
        hub.refuse_sizes(theirs, str(folder / "config.json"))
        model, *names = hub.read(folder, theirs, tensors, head, n_classes, head_form, spread_dropout(changes))
        attach_report(model, LoadReport(name, folder, *names))
    else:
        family = find_family(theirs, folder)
        config = apply_changes(read_family_config(family, theirs, folder), changes, name)
        if head == "classify" and "head_form" in sentence_form.read_section(theirs):
            model = load_with_own_head(name, folder, family, config, theirs, tensors, n_classes, head_form)
        else:
            model = load_family(name, folder, family, config, tensors, head, n_classes, head_form)
    labels = theirs.get("id2label")
    if isinstance(model, Classifier) and isinstance(labels, dict) and len(labels) == model.n_classes:
        model.labels = [str(label) for _, label in sorted(labels.items(), key=lambda item: int(item[0]))]
    if isinstance(model, Classifier):
        read_answers(model, theirs)
    if isinstance(length := theirs.get(TRAINED_LENGTH), int) and length > 0:
        model.trained_length = length
    return model


def read_answers(model: Classifier, facts: Mapping[str, Any]) -> None:
    """Set what a model's outputs mean, from the configuration or the adapter that it was saved with."""
    if facts.get("problem_type") in PROBLEM_TYPES:
        model.problem_type = facts["problem_type"]
    thresholds = facts.get(THRESHOLDS)
    if isinstance(thresholds, list) and len(thresholds) == model.n_classes:
        model.thresholds = [float(value) for value in thresholds]


def describe_answers(model: Model) -> dict[str, Any]:
    """Return what `read_answers` reads; nothing for one label per text."""
    if not isinstance(model, Classifier) or model.problem_type is None:
        return {}
    thresholds = {} if model.thresholds is None else {THRESHOLDS: model.thresholds}
    return {"problem_type": model.problem_type, **thresholds}


def kind_of(name: str | Path) -> str:
    """Return the kind of model that a name refers to, from its configuration alone where that is enough."""
    return read_model_config(name).kind


def declared_pooling(name: str | Path) -> str | None:
    """Return the pooling that an encoder's folder declares as sentence-transformers does: "mean" or "first".

    None where nothing is declared, or something that is neither.
    """
    if str(name) in PRESETS and not Path(name).is_dir():
        return None
    folder = find_folder(str(name), LEGACY_PATTERNS, PRESETS)
    path = folder / POOLING
    if not path.is_file():
        return None
    config = read_model_config(name)
    if config.kind != "encoder" or config.family not in FAMILIES:
        return None
    declared = read_model_json(path)
    modes = {mode for mode in POOLINGS if declared.get(f"pooling_mode_{mode}") is True}
    modes |= {f"{declared.get('pooling_mode')}_tokens", f"{declared.get('pooling_mode')}_token"} & {*POOLINGS}
    return POOLINGS[modes.pop()] if len(modes) == 1 else None


def read_model_config(name: str | Path) -> TransformerConfig:
    name = str(name)
    if name in PRESETS and not Path(name).is_dir():
        return PRESETS[name].config
    folder = find_folder(name, LEGACY_PATTERNS, PRESETS)
    theirs = read_model_json(folder / "config.json")
    if theirs.get("model_type") == OWN and isinstance(theirs.get("heedful"), dict):
        return read_own_config(theirs["heedful"], folder)
    if theirs.get("model_type") not in FAMILIES and hub.has_classifier(theirs.get("model_type")):
        return load(name).config
    return read_family_config(find_family(theirs, folder), theirs, folder)


def read_family_config(family: Family, theirs: Mapping[str, Any], folder: Path) -> TransformerConfig:
    config = family.read_config(theirs, str(folder / "config.json"))
    return sentence_form.restore_pool(config, theirs)


def find_family(theirs: Mapping[str, Any], folder: Path) -> Family:
    model_type = theirs.get("model_type")
    if model_type is None:
        names = ", ".join(FAMILIES)
        raise UserError(f'{folder / "config.json"}: has no "model_type"; known families: {names}')
    if model_type not in FAMILIES:
        raise unknown_family(model_type, folder)
    return FAMILIES[model_type]


def unknown_family(model_type: object, folder: Path) -> UserError:
    remedy = "; pip install 'heedful[hub]' brings those of transformers"
    return UserError(
        f'{folder / "config.json"}: family "{model_type}" is not known; '
        f"known families: {', '.join(FAMILIES)}{'' if hub.is_transformers_installed() else remedy}"
    )


def family_of(model: Model) -> Family | None:
    """Return the table that a model is read and written with; one from the Hub brings its own."""
    table: Family | None = getattr(model, "table", None)
    return table or FAMILIES.get(model.config.family)


def apply_changes(config: TransformerConfig, changes: Mapping[str, Any], name: str) -> TransformerConfig:
    """Return a configuration with other values than the checkpoint's, where its weights leave a choice."""
    for option in changes:
        if option not in CHANGEABLE:
            config.replace(**{option: changes[option]})
            raise UserError(f"{option} is fixed by the weights of {name}; only a preset's can be chosen")
    return with_changes(config, changes)


def spread_dropout(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Name each dropout, for a Hub model, whose configuration is its own."""
    every = dict.fromkeys(DROPOUTS[:5], changes["dropout"]) if "dropout" in changes else {}
    return {**every, **changes}


def with_changes(config: TransformerConfig, changes: Mapping[str, Any]) -> TransformerConfig:
    """Return a configuration with other values; `dropout` means every dropout of the body."""
    config = config.replace(**{name: value for name, value in changes.items() if name != "dropout"})
    return config.with_dropout(changes["dropout"]) if "dropout" in changes else config


def load_family(
    name: str,
    folder: Path,
    family: Family,
    config: TransformerConfig,
    tensors: Mapping[str, Tensor],
    head: str | None,
    n_classes: int | None,
    head_form: HeadForm,
) -> Model:
    """Build the model and fill it from a family's tensors; everything is checked before anything is set."""
    where = str(folder)
    names = {family.canonical_name(n): n for n in tensors}
    for canonical, fallback in family.fallbacks.items():
        if canonical not in names and fallback in names:
            names[canonical] = names[fallback]
    stored = {canonical: tensors[n] for canonical, n in names.items()}
    has_pooler = "pooler.dense.weight" in stored or (head is not None and head_form == "family")
    config = config.replace(
        pooler=head in family.pooled and has_pooler, tie_output=family.ties_output(config, stored)
    )
    head_rows = family.heads.get(head or "", []) if head != "classify" or head_form == "family" else []
    if head == "classify":
        outputs = [
            row.theirs for row in head_rows if row.ours == ("head.out.weight",) and row.theirs in stored
        ]
        n_stored = len(stored[outputs[0]]) if outputs else None
        n_classes = n_classes or n_stored or 2
        head_rows = head_rows if n_stored == n_classes else []
    words, shape = family.rows(config)[0], (config.vocab_size, config.d_model)
    if words.theirs in stored and tuple(stored[words.theirs].shape) != shape:
        # Refused before anything is built: a wrong size could ask for more memory than there is.
        raise shape_error(words, stored[words.theirs], shape, where)
    model = build(config, head, n_classes or 2, head_form)
    parameters = dict(model.named_parameters())
    state: dict[str, Tensor] = {}
    used: set[str] = set()
    for row in family.rows(config):
        if row.theirs in stored:
            used.add(row.theirs)
            ours = row if head is None else row.with_prefix("body.")
            state |= convert_tensor(ours, stored[row.theirs], parameters, where)
        elif not row.theirs.startswith("pooler."):
            raise UserError(f'{where}: the weights lack "{row.theirs}", which config.json calls for')
    # A tied output is the embedding, read already; its copy in the file is passed over.
    head_rows = [row for row in head_rows if row.ours[0] in parameters or row.theirs in stored]
    for row in head_rows:
        if row.theirs in stored:
            used.add(row.theirs)
            if row.ours[0] in parameters:
                state |= convert_tensor(row, stored[row.theirs], parameters, where)
    lacking = [row.theirs for row in head_rows if row.theirs not in stored]
    if lacking and any(row.ours[0] in state for row in head_rows):
        raise UserError(f'{where}: the {head} head lacks "{lacking[0]}"; half a head is not loaded')
    rest = set(stored) - used
    for canonical in sorted(rest):
        # An unknown tensor inside a layer means that this is another model.
        if family.layer.match(canonical) and not family.ignored.match(canonical):
            raise UserError(
                f'{where}: "{names[canonical]}" is unknown in a {family.name} with {config.n_layers} layers; '
                f"is config.json of another model?"
            )
    set_weights(parameters, state)
    new = [n for n in parameters if n not in state]
    loaded, ignored = (sorted({names[n] for n in group}) for group in (used, rest))
    return attach_report(model, LoadReport(name, folder, loaded, new, ignored))


def load_with_own_head(
    name: str,
    folder: Path,
    family: Family,
    config: TransformerConfig,
    theirs: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    n_classes: int | None,
    head_form: HeadForm,
) -> Model:
    """Load a sentence-transformers folder that heedful wrote, with the head that lies beside it."""
    stored, labels = sentence_form.read_head(folder)
    n = n_classes or len(labels)
    if n != len(labels):
        return load_family(name, folder, family, config, tensors, "classify", n, head_form)
    form = sentence_form.read_section(theirs)["head_form"]
    model = load_family(name, folder, family, config, tensors, "classify", n, form)
    assert isinstance(model, Classifier)
    parameters = {ours: p for ours, p in model.named_parameters() if ours.startswith("head.")}
    if set(parameters) != set(stored):
        odd = sorted(set(parameters) ^ set(stored))[0]
        raise UserError(f'{folder}: the head does not fit config.json: "{odd}" is in one of them alone')
    for ours, tensor in stored.items():
        set_weights(parameters, convert_tensor(Row(ours, (ours,)), tensor, parameters, str(folder)))
    model.labels = labels
    report = model.report
    new = [ours for ours in report.new if ours not in stored]
    return attach_report(model, replace(report, loaded=sorted([*report.loaded, *stored]), new=new))


def own_tensors(model: Model) -> dict[str, Tensor]:
    """Return parameters, and buffers such as Performer's features, under our names.

    A tied output is the embedding and has no name of its own.
    """
    names: dict[int, str] = {}
    state = model.state_dict(keep_vars=True)
    for name, tensor in state.items():
        names.setdefault(id(tensor), name)
    return {name: state[name] for name in names.values()}


def load_own(
    name: str,
    folder: Path,
    theirs: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    head: str | None,
    n_classes: int | None,
    head_form: HeadForm,
    changes: Mapping[str, Any],
) -> Model:
    """Load a folder that heedful wrote, for a model that transformers has no class for."""
    if not isinstance(theirs.get("heedful"), dict):
        raise UserError(f'{folder / "config.json"}: has no "heedful" section')
    labels = theirs.get("labels") if isinstance(theirs.get("labels"), list) else None
    n = n_classes or (len(labels) if labels else 2)
    same_head = head == theirs.get("head") and (labels is None or n == len(labels))
    form = theirs.get("head_form", head_form) if same_head else head_form
    if isinstance(theirs.get("hub"), dict):
        if not hub.has_classifier(theirs["hub"].get("model_type")):
            raise unknown_family(theirs["hub"].get("model_type"), folder)
        hub.refuse_sizes(theirs["hub"], str(folder / "config.json"))
        model, *_ = hub.build(theirs["hub"], head, n, form, spread_dropout(changes))
    else:
        config = apply_changes(read_own_config(theirs["heedful"], folder), changes, name)
        model = build(config, head, n, form)
    parameters = own_tensors(model)
    body_prefix = "" if theirs.get("head") is None else "body."
    state: dict[str, Tensor] = {}
    used: set[str] = set()
    for ours in parameters:
        source = ours if ours.startswith("head.") else body_prefix + ours.removeprefix("body.")
        if source.startswith("head.") and not same_head:
            continue
        if source in tensors:
            used.add(source)
            state |= convert_tensor(Row(source, (ours,)), tensors[source], parameters, str(folder))
        elif ".mechanism." not in source:
            raise UserError(f'{folder}: the weights lack "{source}", which config.json calls for')
    set_weights(parameters, state)
    if isinstance(model, Classifier) and labels and same_head:
        model.labels = [str(label) for label in labels]
    new = [p for p in parameters if p not in state]
    return attach_report(model, LoadReport(name, folder, sorted(used), new, sorted(set(tensors) - used)))


def read_own_config(values: Mapping[str, Any], folder: Path) -> TransformerConfig:
    """Return the configuration that heedful wrote. Older versions left the head's form to the family."""
    family = FAMILIES.get(str(values.get("family")))
    older = {"classifier": family.fixed["classifier"]} if family and "classifier" in family.fixed else {}
    try:
        return TransformerConfig.from_dict({**older, **update_names(values)})
    except UserError as error:
        raise UserError(f"{folder / 'config.json'}: {error}") from None


def attach_report(model: Model, report: LoadReport) -> Model:
    model.report = report
    return model.eval()


def head_of(model: Model) -> str | None:
    return model.kind if isinstance(model, Classifier | LanguageModel) else None
