"""`heedful data`: look at a task's data, or make a world of data."""

from __future__ import annotations

from cyclopts import App

app = App(name="data", help="Look at a task's data, or make a world of data.")
app.command(
    "heedful.cli.data_show:show", name="show", help="Rows, labels, lengths, baselines, duplicates, examples."
)

make = App(name="make", help="Generate data.")
make.command(
    "heedful.cli.data_make:world",
    name="world",
    help="An invented but consistent world, in the named tasks' formats.",
)
app.command(make)
