"""`heedful data`: look at a task's data, or make a world of data."""

from __future__ import annotations

from cyclopts import App

from heedful.cli.data_make import world
from heedful.cli.data_show import show

app = App(name="data", help="Look at a task's data, or make a world of data.")
app.command(show)

make = App(name="make", help="Generate data.")
make.command(world)
app.command(make)
