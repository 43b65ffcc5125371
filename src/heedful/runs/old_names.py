"""Names of options and fields in files that older versions wrote, read as they are called today."""

from __future__ import annotations

import re
from typing import Any

from heedful.options.training import OLD_PROMPT_LENGTH, has_prompt_length

OPTIONS = {
    "rank_stabilised": "rank_stabilized",
    "reparametrise": "reparametrize",
    "renormalise": "renormalize",
}
"""Options of methods and of attention mechanisms."""
RENAMED = {**OPTIONS, "found": "message"}
"""These, and the fields of checks.json."""
ASSIGNMENT = re.compile(rf"\b({'|'.join(OPTIONS)})(?=\s*=)")
ASSIGNMENT_KEYS = ("attention", "attentions", "command", "method_options")
"""The keys whose texts contain assignments, such as `zero_after:renormalize=true`."""


def update_names(stored: Any, assignments: bool = False) -> Any:
    """Return the content of a stored file with each old name replaced: keys, and texts with `assignments`.

    What a user types or passes from Python does not come here; there an old name is an unknown option.
    """
    if isinstance(stored, dict):
        return {
            RENAMED.get(key, key): update_names(value, assignments or key in ASSIGNMENT_KEYS)
            for key, value in stored.items()
        }
    if isinstance(stored, list):
        return [update_names(value, assignments) for value in stored]
    if isinstance(stored, str) and assignments:
        return ASSIGNMENT.sub(lambda match: OPTIONS[match[0]], stored)
    return stored


def mark_prompt_length(config: dict[str, Any]) -> dict[str, Any]:
    """Return the content of config.toml; a prompt whose length it does not have was one of 128 vectors."""
    adapt = config.get("adapt")
    if not isinstance(adapt, dict) or adapt.get("method") != "prompt":
        return config
    given = adapt.get("method_options", [])
    if has_prompt_length(given):
        return config
    return {**config, "adapt": {**adapt, "method_options": [*given, OLD_PROMPT_LENGTH]}}


def mark_balanced(stored: Any) -> Any:
    """Return the stored options of a run or a study; those without `balanced` chose their rows that way."""
    if isinstance(stored, dict):
        older = {"balanced": True} if stored.get("train_rows") is not None else {}
        return older | {key: mark_balanced(value) for key, value in stored.items()}
    return [mark_balanced(value) for value in stored] if isinstance(stored, list) else stored
