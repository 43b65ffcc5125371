"""`heedful data`: show the data of a task, or generate a world of data."""

from __future__ import annotations

from cyclopts import App

from heedful.cli import data_make, data_show

app = App(name="data", help="Show the data of a task, or generate a world of data.")
app.command(data_show.command, name="show")

make = App(name="make", help="Generate data.")
make.command(data_make.command, name="world")
app.command(make)
