"""How `--help` looks: options in panels, each with its bounds and its default."""

from __future__ import annotations

import re
from inspect import Parameter
from typing import TYPE_CHECKING, Any

from cyclopts import App
from cyclopts.help import DefaultFormatter
from rich.text import Text

from heedful.options.values import describe_bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts.help import HelpEntry, HelpPanel
    from rich.console import Console, ConsoleOptions

HELP = ("--help", "-h")
FEW = 12
"""A command with at most this many options shows them in one panel."""
PANELS = {
    "Training": """epochs lr batch_size seed steps token_budget accumulate optimizer schedule warmup
        weight_decay clip label_smoothing class_weights expect_shares head_start eval_every patience metric
        threshold select train_eval_rows minutes budget_min branch""",
    "Data": """max_len long_texts train_rows balanced dev_rows fold with_dev text_column pair_column
        label_column group time documents block pack dev dev_share test data_dir split split_seed strict
        unlabeled questions questions_share sentences""",
    "Model": "attention projections dropout pool head tokenizer vocab_size min_count model_options",
    "Method and objective": """method method_options kind objective answer_loss label_words mlm_weight
        mlm_first mlm_rate mask_rate whole_words span_form span_loss salient window_left window_right
        cache_features""",
    "Machine": "jobs processes threads device precision",
    "Output": "out resume overwrite retry keep note tensorboard track score_dev score_test json",
}
"""The panel of each option, the most common options first. Other options come before them all."""
PANEL_OF = {
    "--" + name.replace("_", "-"): (title, place)
    for title, names in PANELS.items()
    for place, name in enumerate(names.split())
}


def format_default(value: Any) -> str | None:
    """Return a default as a person would type it, or None where it says nothing."""
    if value is None or value is False or value in ("", ()):
        return None
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


class GeneratedCommand(App):
    """A command that keeps its whole help, where the parser would put the line of the list of commands."""

    @property
    def help(self) -> str:
        return (self.default_command.__doc__ if self.default_command else None) or ""

    @help.setter
    def help(self, value: str) -> None:
        pass


class PanelFormatter(DefaultFormatter):
    """Cyclopts' formatter, with many options divided into panels and with bounds after each description."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds: dict[str, str] = {}
        self.optional: list[str] | None = None

    def read_arguments(self, app: App, arguments: Sequence[str]) -> None:
        """Find a command's bounds and optional arguments for its help, as cyclopts does not pass them on."""
        words = [word for word in arguments if word not in HELP]
        _, apps, _ = app.parse_commands(words)
        if len(words) == len(arguments) or apps[-1].default_command is None:
            return
        collection = apps[-1].assemble_argument_collection()
        self.bounds = {
            name: bounds
            for argument in collection
            if (bounds := describe_bounds(argument.field_info.annotation))
            for name in argument.names
        }
        self.optional = [
            argument.name.lstrip("-").upper()
            + ("..." if argument.field_info.kind == Parameter.VAR_POSITIONAL else "")
            for argument in collection
            if argument.field_info.is_positional and argument.show and not argument.required
        ]

    def render_usage(self, console: Console, options: ConsoleOptions, usage: Any) -> None:
        """Print the usage line with the names of optional arguments, where cyclopts has only [ARGS]."""
        line = str(usage)
        if self.optional is not None:  # the command can be run, with or without a subcommand
            names = " ".join(f"[{name}]" for name in self.optional)
            line = re.sub(r"\[ARGS(\.\.\.)?\]", names, line).replace(" COMMAND ", " [COMMAND] ")
        super().render_usage(console, options, line)

    def __call__(self, console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
        """Print one panel, or the panels that it is divided into."""
        for entry in panel.entries:
            text = getattr(entry.description, "primary_renderable", None)
            if isinstance(text, Text):
                about = " ".join(text.plain.split())
                bounds = next((self.bounds[name] for name in entry.names if name in self.bounds), "")
                entry.description.primary_renderable = Text(f"{about} [{bounds}]" if bounds else about)
        for title, entries in divide(panel.entries) if panel.title == "Parameters" else []:
            super().__call__(console, options, panel.copy(title=title, entries=entries))
        if panel.title != "Parameters":
            super().__call__(console, options, panel)


def divide(entries: list[HelpEntry]) -> list[tuple[str, list[HelpEntry]]]:
    """Return the panels of a command: its arguments and special options, then those of each title."""
    if len(entries) <= FEW:
        return [("Options", entries)]
    panels: dict[str, list[tuple[int, HelpEntry]]] = {"Options": [], **{title: [] for title in PANELS}}
    for entry in entries:
        title, place = PANEL_OF.get(next(iter(entry.positive_names), ""), ("Options", 0))
        panels[title].append((place, entry))
    return [
        (title, [entry for _, entry in sorted(members, key=lambda member: member[0])])
        for title, members in panels.items()
        if members
    ]
