"""The sentences of studies: templates, one group per study; `str.format` fills in numbers and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.report.formats import join_names
from heedful.runs.schemas import SplitResult

COLLAPSED = "collapsed"
NOT_ABOVE = "no better than the most frequent label"
NO_ANSWER = "no better than one answer to everything"
SOME_COLLAPSED = "{lost} of {runs} seeds collapsed"
MOST_COLLAPSED = (
    "Most runs collapsed: {lost} of {finished} give nearly one answer to everything; their learning rates "
    "are too high or too low, or they are too short."
)

SEARCH_WAITING = "No run has finished yet."
SEARCH_BEST = "Best on dev: {settings}, with {metric} {score}."
SEARCH_BEST_COLLAPSED = (
    " It gives nearly one answer to everything: none of the settings that were tried is useful."
)
SEARCH_BEST_LOW = " It is {how}, within chance."
SEARCH_ALL_TIED = "None of the others can be told apart from it on dev."
SEARCH_SOME_TIED = "{tied} of the other {others} cannot be told apart from it on dev."
SEARCH_BEATS_ALL = (
    "It beats each of the others on dev, beyond chance; each has one seed, and another may change that."
)
SEARCH_TEST = "On test, scored once, for this run alone: {metric} {score}{baseline}."
SEARCH_TEST_BASELINE = "; a bag of words has {value:.3f}"
SEARCH_EPOCHS = (
    "Runs that differ in epochs shared their first epochs: {trained} epochs were trained instead of {asked}."
)
SEARCH_HEADS = "{heads} heads were trained on features computed once."
SEARCH_EDGE = "The best is on the edge of the grid: {setting} {end} may be better."
SEARCH_ENDS = {
    "lr": ("is the lowest that was tried; a lower one", "is the highest that was tried; a higher one"),
    "epochs": ("is the lowest number that was tried; fewer", "is the highest number that was tried; more"),
}
"""Settings whose lowest or highest value, when it is best, says that the grid is too small."""

ARMS_ALL_COLLAPSED = (
    "Every arm collapsed: all give nearly one answer to everything, and nothing can be compared."
)
ARMS_NOT_ABOVE = " But none is shown to be better than always giving the most frequent label."
ARMS_ONE_EXAMPLE = "On {split} there is one example: nothing can be compared."
ARMS_ALONE = "Only {arm} has a finished run: there is nothing to compare."
ARM_WITHOUT_RESULT = "{arm} has no result: {reason}"
ARM_COLLAPSED = "{arm} collapsed: it gives nearly one answer to everything."
ARM_LOW = "{arm} is on dev {how}, within chance."
ARM_PARTLY_COLLAPSED = "{arm}: {how}: they give nearly one answer to everything."

LABELS_WAITING = "No arm has finished yet."
LABELS_BETTER = "{objective} is truly better with {sizes} labels."
LABELS_BETTER_BUT_LOW = (
    "{objective} is better with {sizes} labels, but there it is not shown to be better than always giving "
    "the most frequent label."
)
LABELS_BETTER_ONCE = "{objective} is better with {sizes} labels on these examples; {caution}."
LABELS_AHEAD = (
    "With {sizes} labels the runs of the arms differ beyond chance, but another draw of the labels could "
    "change that."
)
LABELS_TIED = "With {sizes} labels the arms cannot be told apart."
LABELS_RANGE = (
    "{objective}: {metric} on {split} goes from {low:.3f} with {fewest} labels to {high:.3f} with {most}."
)
LABELS_VALUE = "{objective}: {metric} on {split} is {value:.3f} with {size} labels."

OPTIMIZERS_RATES = "Learning rates, each chosen on dev: {rates}."
OPTIMIZERS_COLLAPSED = "{names} collapsed. "
OPTIMIZERS_LOW = "{names} learned nothing that shows: {how}. "
OPTIMIZERS_SAME = (
    "All have the learning rate {rate:g}. {lost}This compares how well one rate suits each of them, not the "
    "optimizers; without --same-settings each gets its own learning-rate search."
)
OPTIMIZERS_EDGE = "{name} is best at the {end} rate that was tried, {rate:g}: its true best may lie beyond."

OVERFIT_RIGHT = "{verdict}: all {n} examples are right"
OVERFIT_AGAIN = " after epoch {epochs} (first after epoch {first:g})"
OVERFIT_SINCE = ", from epoch {first:g} of {epochs} on"
OVERFIT_TOO_FEW = ", but a label has too few of them for a PASS."
OVERFIT_FAILED = "FAIL: {reason}."
OVERFIT_WRONG = "FAIL: {right} of {n} examples are right after {epochs} epochs."
OVERFIT_NOTE = "This is accuracy on the examples that were trained on; it says nothing about new texts."
OVERFIT_OVERFLOW = "The learning rate is too high: the loss overflowed."
OVERFIT_FROZEN = "--method {method} keeps the body frozen; --method full can move everything."
OVERFIT_CONTRADICTION = "The same text is among the examples with two labels: nothing can learn both."
OVERFIT_ROSE = "The learning rate {rate:g} is too high: the loss rose again after it had fallen."
OVERFIT_FALLS = (
    "The loss still falls ({first:.3f} to {last:.3f}): a higher learning rate than {rate:g}, or more "
    "epochs, may be all it takes."
)
OVERFIT_FLAT = (
    "The loss hardly moves ({first:.3f} to {last:.3f}): the learning rate {rate:g} is most likely too low, "
    "or so high that the model gives one answer to everything."
)
OVERFIT_FEW_LABELS = (
    'Only {count} of the {n} examples have the label "{label}", and a PASS needs {enough} of each; '
    "--examples {examples} or more may have them."
)

ATTENTION_WAITING = "No variant has finished yet."
ATTENTION_BEST = (
    "Of the variants that hide the future, {name} has the lowest perplexity on dev, {value:.1f}{others}."
)
ATTENTION_ONE_SEED = "Each was trained with one seed; another may change the order of close ones."
ATTENTION_OTHERS = "; the others: {values}"
ATTENTION_TIMES = "Training time relative to softmax: {times}."
ATTENTION_LEAK = (
    "{name} leaks: in one pass a token's loss is {difference} than from the prefix alone, and its "
    "perplexity is {lower} than softmax's."
)
ATTENTION_LEAK_NOTE = (
    "{name} sees the future: in one pass its loss is {difference} than from the prefix alone ({largest:.3f} "
    "at most at one token), so its perplexity cannot be compared with the others'."
)

KNOWLEDGE_WAITING = "No run has answered yet."
KNOWLEDGE_READ_BEFORE = (
    "The biographies were learned before, in {run}: {steps:,} steps in {minutes:.1f} minutes."
)
KNOWLEDGE_RIGHT = (
    "The pretrained model answers {right} of {n:,} questions about people it has only read about; always "
    "answering {constant} is right for {fixed}{without}."
)
KNOWLEDGE_WITHOUT = "; without pretraining it is {right}"
KNOWLEDGE_DIFFERENCE = (
    "Pretraining changes exact match by {difference:+.3f} (95 % interval {low:+.3f} to {high:+.3f}, p {p}): "
    "{verdict}."
)
KNOWLEDGE_VERDICTS = {True: "a difference", False: "no difference that these questions can tell"}
KNOWLEDGE_ALL_ALIKE = "All {n:,} answers are {which}: there is nothing to tell apart."
KNOWLEDGE_CONFIDENCE = (
    "A right answer is surer than a wrong one in {share} of pairs (AUROC {auroc:.3f}, 95 % interval "
    "{low:.3f} to {high:.3f}); the mean confidence is {confidence}, and {right} are right (calibration "
    "error {error:.3f})."
)
KNOWLEDGE_NO_THRESHOLD = (
    "No threshold of confidence promises at most {risk} wrong answers: half of these questions is not "
    "enough for it, or confidence is not."
)
KNOWLEDGE_THRESHOLD = (
    "Answering only above a confidence of {threshold:.3f}, chosen on half of the questions to have at most "
    "{risk} wrong, answers {coverage} of the other half, of which {wrong} are wrong ({low} to {high})."
)
KNOWLEDGE_INVENTED = (
    "Asked about {n:,} people who do not exist, it never says so: {sure} of the answers have more than half "
    "of the probability, {known} are places of train, {constant} its most frequent one (its most frequent "
    "answers: {answers})."
)
KNOWLEDGE_MEMORY = (
    "A memory (a right answer on dev) is surer than an invention about a stranger in {share} of pairs (95 % "
    "interval {low} to {high}); a coin has 50 %."
)
KNOWLEDGE_SURNAMES = (
    "{who} strangers with one surname get the same place in {same} of pairs, any two in {anybody} (p {p}): "
    "{verdict}."
)
KNOWLEDGE_WHO = {True: "Where names hint at the country, two", False: "Two"}
KNOWLEDGE_SURNAME_VERDICTS = {
    True: "the surname plays a part",
    False: "nothing shows that the surname matters",
}

OPTION_TITLES = {"lr": "learning rate", "epochs": "epochs", "batch_size": "batch size"}


def option_title(option: str) -> str:
    return OPTION_TITLES.get(option, option.replace("_", " "))


def describe_setting(option: str, value: Any) -> str:
    """Return one setting in words: `learning rate 0.001`."""
    if option == "epochs":
        return f"{value} epoch{'s' if value != 1 else ''}"
    return f"{option_title(option)} {format(value, 'g') if isinstance(value, float) else value}"


def describe_settings(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    return join_names([describe_setting(name, settings[name]) for name in names]) or "these settings"


def format_interval(low: float, high: float) -> str:
    return f"{low:.3f} to {high:.3f}"


def split_interval(split: SplitResult | None) -> str:
    """Return the 95 % interval of a split's score; empty where it is not known."""
    low, high = (split.ci95 if split is not None else None) or (None, None)
    return "" if low is None or high is None else format_interval(low, high)


def describe_score(split: SplitResult) -> str:
    return f"{split.value:.3f} (95 % interval {split_interval(split)})"
