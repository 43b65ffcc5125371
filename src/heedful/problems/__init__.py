"""Kinds of problems: what sort of answer a model gives. One file per kind; nothing here imports torch."""

from heedful.problems.base import Problem
from heedful.problems.registry import (
    PROBLEMS,
    find_metric_name,
    find_problem,
    find_problem_of_options,
    find_problem_of_task,
)

__all__ = [
    "PROBLEMS",
    "Problem",
    "find_metric_name",
    "find_problem",
    "find_problem_of_options",
    "find_problem_of_task",
]
