"""`heedful data`: show the data of a task, or generate a world of data."""

from __future__ import annotations

from cyclopts import App

from heedful.cli.data_make import world
from heedful.cli.data_show import show

app = App(name="data", help="Show the data of a task, or generate a world of data.")
app.command(show)

make = App(name="make", help="Generate data.")
make.command(world)
app.command(make)
