"""What the demo says in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.solve.plan import format_minutes

LETTERS = (
    "In {minutes} and with {labels:,} labels, heedful solve made a model that sends {accuracy} of {n:,} new "
    "letters to the right desk ({low} to {high})"
)
ABOVE = (
    "{made}; a bag of words sends {bag_of_words} there, and the most frequent desk is right for {majority}."
)
NOT_ABOVE = "{made}, which is not clearly above simple rules ({simple})."
UNTESTED = "In {minutes} and with {labels:,} labels, heedful solve had no time to score new letters. {answer}"
REVIEWS_NOT_ABOVE = (
    "Stars of reviews with {size:,} labels: none is clearly above simple rules ({simple:.2f})."
)
REVIEWS_BEST = (
    "Stars of reviews with {size:,} labels: {method} on the encoder {start} is right for {accuracy:.2f} of "
    "all reviews ({low:.2f} to {high:.2f}); {other}a bag of words for {bag_of_words:.2f}."
)
REVIEWS_OTHER = "{start} at best for {accuracy:.2f}, "
BIRTHPLACES = (
    "Birthplaces: right for {after} of {n} people after reading biographies, for {without} without, and for "
    "{constant} with one answer for all."
)


def describe_letters(facts: Mapping[str, Any]) -> str:
    """Say how good the chosen model is on new letters, and whether it beats the simple rules."""
    about = {**facts, "minutes": format_minutes(facts["minutes"])}
    if not facts["n"]:
        return UNTESTED.format(**about)
    rules = [facts[name] for name in ("bag_of_words", "majority") if facts[name] is not None]
    shares = ("accuracy", "low", "high", "bag_of_words", "majority")
    about |= {name: format_share(facts[name]) for name in shares if facts[name] is not None}
    made = LETTERS.format(**about)
    if rules and facts["low"] <= max(rules):
        return NOT_ABOVE.format(made=made, simple=format_share(max(rules)))
    return ABOVE.format(made=made, **about) if len(rules) == 2 else f"{made}."


def format_share(share: float) -> str:
    return f"{100 * share:.0f} %"
