"""`heedful course`: check what students write."""

from __future__ import annotations

from cyclopts import App

from heedful.cli import course_check

app = App(name="course", help="Check what students write.")
app.command(course_check.command, name="check")
