"""`heedful course`: assignments, and checks of what students write."""

from __future__ import annotations

from cyclopts import App

from heedful.cli import course_check, course_grade, course_new

app = App(name="course", help="Write assignments, and check what students write.")
app.command(course_check.command, name="check")
app.command(course_new.new, name="new")
app.command(course_new.starter, name="starter")
app.command(course_grade.grade, name="grade")
app.command(course_grade.autograder, name="autograder")
