"""`heedful lab`: attention taken apart, one command per topic.

A topic's command is made from the signature and the docstring of its function in `heedful.lab`, when it is
called: `heedful lab` itself imports no topic, and never torch.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from cyclopts import App, Parameter

from heedful.cli.help_format import GeneratedCommand
from heedful.cli.output import Json, JsonArray, console, print_json, print_table
from heedful.errors import UserError
from heedful.lab.base import TOPICS, Finding, Vector, Vectors, describe_condition, find_topic, format_value

STATUS_FAILED = 1
Form = Literal["svg", "png", "pdf", "html"]
COMMON_PARAMETERS = """
figure
    Write the figure to this file: .png, .svg, .pdf or .html.
"""

app = App(
    name="lab",
    help="Show properties of attention, constructed, checked with numbers and drawn.",
    help_epilogue="Scores are not scaled (scale 1) unless an option says so.",
)


@app.default
def topics(topic: Annotated[str | None, Parameter(show=False)] = None, /, *, json: JsonArray = False) -> None:
    """List the topics."""
    if topic is not None:
        find_topic(topic)
    if json:
        print_json([{"topic": t.name, "about": t.about} for t in TOPICS.values()])
        return
    print_table("topics", ("topic", "what it shows"), [(t.name, t.about) for t in TOPICS.values()])
    console().print("heedful lab TOPIC --help shows the options of a topic; heedful lab all runs every topic")


@app.command(name="all")
def everything(*, figures: Path | None = None, form: Form = "svg", json: JsonArray = False) -> int:
    """Run every topic with its default options; the exit status is 1 if one fails.

    Only scaling is shortened, to fewer mechanisms and shorter texts. A topic
    whose pretrained model is not installed is listed as not run, with the
    reason. Measured times never make a topic fail.

    Examples:
      heedful lab all
      heedful lab all --figures figures --form png

    Parameters
    ----------
    figures
        Write the figures into this folder, as lab-TOPIC.svg and so on.
    form
        File format of the figures.
    """
    findings: list[Finding[Any]] = []
    rows: list[tuple[str, ...]] = []
    not_run: list[dict[str, str]] = []
    for topic in TOPICS.values():
        start = time.monotonic()
        try:
            finding = topic.load()(**topic.in_all)
        except UserError as error:
            rows.append((topic.name, "not run", "", "", str(error)))
            not_run.append({"topic": topic.name, "not_run": str(error)})
            continue
        findings.append(finding)
        if figures is not None:
            finding.draw(figures / f"lab-{topic.name}.{form}")
        verdict, seconds = finding.verdict(), f"{time.monotonic() - start:.1f}"
        failed = "; ".join(f"{n.name}: {format_value(n.value)}, {n.condition}" for n in finding.failed)
        rows.append((topic.name, *verdict, seconds, failed))
    if json:
        print_json([*(finding.facts() for finding in findings), *not_run])
    else:
        numbers = ("conditions hold", "seconds")
        print_table("the attention lab", ("topic", "", *numbers, "what does not hold"), rows, right=numbers)
        if figures is not None:
            console().print(f"figures: {figures}", markup=False)
    return 0 if all(finding.passed for finding in findings) else STATUS_FAILED


for listed in TOPICS.values():
    app.command(f"{__name__}:{listed.name}", name=listed.name, help=listed.about)


def __getattr__(name: str) -> App:
    """Return the command of a topic, which the parser looks up by name."""
    if name in TOPICS:
        function = find_topic(name).load()
        command = GeneratedCommand(name=name, help_epilogue="")
        command.default(make_runner(function, inspect.cleandoc(function.__doc__ or "")))
        return command
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def make_runner(function: Callable[..., Finding[Any]], text: str) -> Callable[..., int]:
    """Wrap a topic's function: vectors are read from files or words, the finding is printed."""
    hints = get_type_hints(function, include_extras=True)
    vectors = {name for name, hint in hints.items() if {Vectors, Vector} & {hint, *get_args(hint)}}
    several = {name for name in vectors if Vectors in {hints[name], *get_args(hints[name])}}
    signature = inspect.signature(function)

    def run(*arguments: Any, figure: Path | None = None, json: bool = False, **options: Any) -> int:
        from heedful.lab.vectors import parse_vectors
        from heedful.report.charts.images import check_extension

        if figure is not None:
            check_extension(figure)
        for name in vectors & options.keys():
            if options[name] is not None:
                options[name] = parse_vectors(f"--{name.replace('_', '-')}", options[name])
        for name in several & options.keys():
            if options[name] is not None and options[name].ndim == 1:
                options[name] = options[name][None]  # one row
        finding = function(*arguments, **options)
        if figure is not None:
            finding.draw(figure)
        if json:
            print_json(finding.facts() | ({"figure": str(figure)} if figure else {}))
        else:
            print_finding(finding, figure)
        return 0 if finding.passed else STATUS_FAILED

    parameters = [
        p.replace(
            kind=p.kind if p.kind is p.POSITIONAL_ONLY else p.KEYWORD_ONLY,
            annotation=command_line_type(hints[p.name], p.name in vectors),
        )
        for p in signature.parameters.values()
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, hint, default in (("figure", Path | None, None), ("json", Json, False))
    ]
    run.__signature__ = signature.replace(parameters=parameters, return_annotation=int)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__doc__ = text + COMMON_PARAMETERS
    return run


def command_line_type(hint: Any, vectors: bool) -> Any:
    """Return the type of a topic's option on the command line."""
    if vectors:
        return Annotated[str | None, Parameter(allow_leading_hyphen=True)]
    if hint is bool:
        return Annotated[bool, Parameter(negative=())]
    if get_origin(hint) is tuple or any(get_origin(part) is tuple for part in get_args(hint)):
        return Annotated[hint, Parameter(consume_multiple=True)]
    return hint


def print_finding(finding: Finding[Any], figure: Path | None) -> None:
    out = console()
    out.print(f"{finding.topic}: {finding.claim}", style="bold", markup=False)
    for line in finding.construction:
        out.print(fill(line, out.width, initial_indent="  ", subsequent_indent="    "), markup=False)
    out.print()
    rows = [(n.name, format_value(n.value), n.condition, describe_condition(n)) for n in finding.numbers]
    print_table("numbers", ("number", "value", "must be", "holds"), rows, right=("value",))
    for table in finding.tables:
        out.print()
        cells = [[format_value(cell) for cell in row] for row in table.rows]
        print_table(table.title, table.columns, cells)
    out.print()
    verdict, count = finding.verdict()
    out.print(f"{verdict}: {count} conditions hold", markup=False)
    if figure is not None:
        out.print(f"figure: {figure}", markup=False)
