"""Written questions whose answers can be checked: functions `answer_...`; an assignment has the claims."""

from __future__ import annotations

from heedful.contracts.suite import Suite

SUITE = Suite(
    "answers",
    "answers to written questions, as functions answer_...; the claims come with an assignment",
    {},
    (),
)
