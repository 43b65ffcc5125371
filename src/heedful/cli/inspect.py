"""`heedful inspect`: show the parts of a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from heedful.cli.output import Flag, Json, ModelName, print_facts, print_json, print_table
from heedful.options.types import ClassCount

if TYPE_CHECKING:
    from heedful.models import Model


def command(
    model: ModelName,
    /,
    *,
    head: str | None = None,
    n_classes: ClassCount | None = None,
    attention: str | None = None,
    details: Flag = False,
    json: Json = False,
) -> None:
    """Show a model's family, sizes, parameters per part, and which tensors were loaded, new or ignored.

    Examples:
      heedful inspect minilm
      heedful inspect minilm --attention performer:features=128
      heedful inspect tinybert --json

    Parameters
    ----------
    head
        Add a head: classify, masked, causal or text2text.
    n_classes
        Number of classes of the head. By default the checkpoint's own number, or 2.
    attention
        Replace the attention mechanism (heedful list attentions): performer:features=128.
    details
        Name every tensor that was loaded, new or ignored.
    """
    from heedful.checkpoints import load

    facts = describe_model(load(model, head=head, n_classes=n_classes, attention=attention))
    if json:
        print_json(facts)
    else:
        show(facts, details)


def describe_model(model: Model) -> dict[str, Any]:
    from heedful.checkpoints import find_export_obstacle
    from heedful.checkpoints.reader import head_of

    config, report = model.config, model.report
    parts = parameters_by_part(model)
    sizes = ("n_layers", "d_model", "n_heads", "d_head", "d_ff", "max_len", "vocab_size")
    return {
        "source": report.source,
        "folder": str(report.folder) if report.folder else None,
        "family": config.family,
        "kind": config.kind,
        "head": head_of(model),
        "attention": config.attention,
        "attention_options": dict(config.attention_options),
        "sizes": {name: getattr(config, name) for name in sizes},
        "position": config.position,
        "norm": f"{config.norm_place}-{config.norm}",
        "activation": config.activation,
        "projections": config.projections,
        "parameters": {"total": sum(parts.values()), "parts": parts},
        "exports_to_transformers": find_export_obstacle(model) is None,
        "export_obstacle": find_export_obstacle(model),
        "loaded": report.loaded,
        "new": report.new,
        "ignored": report.ignored,
    }


PARTS = (
    (".mechanism.", "attention mechanism"),
    (".attn.", "self-attention"),
    (".cross.", "cross-attention"),
    (".ff.", "feed-forward"),
    ("embed.tokens", "token embeddings"),
    ("embed.positions", "position embeddings"),
    ("embed.types", "type embeddings"),
    ("relative.", "relative positions"),
    ("pooler.", "pooler"),
    ("norm", "norms"),
)


def parameters_by_part(model: Model) -> dict[str, int]:
    """Return the number of parameters per part; a tied output is counted once, as embedding."""
    counts: Counter[str] = Counter()
    for name, parameter in model.named_parameters():
        labels = (label for key, label in PARTS if key in name)
        counts["head" if name.startswith("head.") else next(labels, "other")] += parameter.numel()
    return dict(counts)


def show(facts: Mapping[str, Any], details: bool) -> None:
    options = ", ".join(f"{k}={v}" for k, v in facts["attention_options"].items())
    sizes, obstacle = facts["sizes"], facts["export_obstacle"]
    print_facts(
        f"{facts['source']}: {facts['family']} {facts['kind'].replace('_', '-')}",
        {
            "layers": f"{sizes['n_layers']}, {sizes['d_model']} wide, feed-forward {sizes['d_ff']}",
            "attention": f"{facts['attention']}{f' ({options})' if options else ''}, "
            f"{sizes['n_heads']} heads of {sizes['d_head']}, {facts['projections']} projections",
            "positions": f"{facts['position']}, up to {sizes['max_len']}",
            "form": f"{facts['norm'].replace('-', '-norm, ')} norm, {facts['activation']}",
            "vocabulary": f"{sizes['vocab_size']:,}",
            "head": facts["head"] or "none",
            "folder": facts["folder"] or "none: new weights",
            "exports": f"no: {obstacle}" if obstacle else "to transformers",
        },
    )
    total = facts["parameters"]["total"]
    rows = [(part, f"{n:,}", f"{n / total:.1%}") for part, n in facts["parameters"]["parts"].items()]
    rows.append(("total", f"{total:,}", ""))
    print_table("parameters", ("part", "count", "share"), rows, right=("count", "share"))
    tensors = []
    for what in ("loaded", "new", "ignored"):
        names = facts[what]
        shown = names if details else names[:4]
        more = f", and {len(names) - len(shown)} more (--details)" if len(names) > len(shown) else ""
        tensors.append((what, len(names), ", ".join(shown) + more))
    print_table("tensors", ("", "count", "which"), tensors, right=("count",))
