"""What a run reports about its scores: labels, or free answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from torch import Tensor

from heedful.data import Task, tokenize
from heedful.evaluation import baselines, checks
from heedful.evaluation.decision_threshold import choose_decision, predict_held_out
from heedful.evaluation.metrics import METRICS, Metric, confusion, find_metric, macro_f1
from heedful.objectives import Classify, Evaluation
from heedful.objectives.answer import AnswerEvaluation, AnswerObjective
from heedful.objectives.base import Floats, Ints
from heedful.objectives.questions import encode_questions, normalize_spaces, question_room
from heedful.objectives.readings import score_labels
from heedful.runs.directory import BAG_OF_WORDS, Run
from heedful.runs.schemas import Check, Prediction, Results, SplitResult
from heedful.statistics.shares import correct_probabilities

PROBE_ROWS = 16
"""Training rows on which a saved model must compute the same."""


class Scorer(Protocol):
    """Turns the evaluations of a run into results, predictions and checks: one class per kind of answer."""

    def results(self, evaluations: Mapping[str, Evaluation]) -> dict[str, SplitResult]:
        """Return the scores of each split, with intervals and baselines."""

    def result_fields(self, model: Any, steps: int, epochs: float) -> dict[str, Any]:
        """Return further fields of results.json."""

    def write_scored(self, run: Run, evaluations: Mapping[str, Evaluation]) -> None:
        """Write the predictions of the splits that were scored."""

    def write_unscored(self, run: Run, model: Any) -> None:
        """Write predictions of splits that cannot be scored, where they are of use."""

    def data_checks(self, max_len: int, room: int) -> list[Check]:
        """Check the data: what is shared between splits, and what is cut off."""

    def dev_checks(self, dev: Evaluation, results: Results) -> list[Check]:
        """Check the predictions on dev."""

    def probe(self, model: Any) -> Tensor:
        """Return outputs on a few training rows, to compare two models by."""


class LabelResults:
    """Results, predictions and checks of labels, whatever model gave them."""

    def __init__(
        self,
        task: Task,
        rows: Ints,
        *,
        balanced: bool = False,
        correction: Floats | None = None,
        with_baselines: bool = True,
        with_bag: bool = True,
    ) -> None:
        self.task, self.rows, self.balanced = task, rows, balanced
        self.with_baselines, self.with_bag = with_baselines, with_baselines and with_bag
        self.correction = correction
        self.of_bag: dict[str, Floats] = {}

    @cached_property
    def bag(self) -> baselines.BagOfWords:
        """The bag of words, fitted to the rows and with the class weights of the run."""
        return baselines.BagOfWords.from_task(self.task, self.rows, balanced=self.balanced)

    def ask_bag(self, split: str) -> Floats:
        """Return the probabilities of the bag of words for a split."""
        if split not in self.of_bag:
            rows = self.bag.score_rows(self.task.splits[split])
            corrected = rows if self.correction is None else correct_probabilities(rows, self.correction)
            self.of_bag[split] = corrected
        return self.of_bag[split]

    def pick_bag_outputs(self, split: str, metric: Metric) -> npt.NDArray[Any]:
        """Return what the metric reads of the bag of words, whose threshold is tuned as that of a model."""
        probabilities, labels = self.ask_bag(split), self.task.splits[split].labels
        dev = self.task.splits.get("dev")
        if metric.reads == "probabilities" or dev is None or dev.labels is None or labels is None:
            return metric.pick_outputs(probabilities)
        if split == "dev":
            return predict_held_out(metric, np.asarray(labels).astype(np.int64), probabilities)
        on_dev = metric.score(score_labels(np.asarray(dev.labels).astype(np.int64), self.ask_bag("dev")))
        decision = choose_decision(metric, on_dev, self.task.label_names)
        return metric.pick_outputs(probabilities) if decision is None else decision.predict(probabilities)

    def results(self, evaluations: Mapping[str, Evaluation]) -> dict[str, SplitResult]:
        names = self.task.label_names
        results = {}
        for split, e in evaluations.items():
            metric = find_metric(e.metric, names)
            assert e.labels is not None
            assert e.predicted is not None
            cells = confusion(e.labels, e.predicted, len(names))
            results[split] = SplitResult(
                **metric.describe(),
                value=e.value,
                n=e.n,
                ci95=metric.evaluation_interval(e),
                loss=e.loss,
                macro_f1=macro_f1(cells),
                confusion=tuple(tuple(int(c) for c in row) for row in cells),
                predicted_counts=count_labels(e.predicted, names),
                baselines=self.score_baselines(split, metric) if self.with_baselines else None,
                of=self.task.splits[split].of,
                threshold=e.threshold,
                value_at_half=e.value_at_half,
            )
        return results

    def score_baselines(self, split: str, metric: Metric) -> dict[str, float]:
        of_bag = self.pick_bag_outputs(split, metric) if self.with_bag else None
        return baselines.label_baselines(self.task, self.task.splits[split], of_bag, metric)

    def write_scored(self, run: Run, evaluations: Mapping[str, Evaluation]) -> None:
        for split, e in evaluations.items():
            run.write_predictions(split, self.predictions(split, e))
            if self.with_bag:
                run.write_predictions(split, self.bag_predictions(split), by=BAG_OF_WORDS)

    def bag_predictions(self, split: str) -> Iterator[Prediction]:
        """Return the answers of the bag of words; the texts are in those of the model."""
        names, labels = self.task.label_names, self.task.splits[split].labels
        assert labels is not None
        for i, row in enumerate(self.ask_bag(split)):
            probabilities = dict(zip(names, row.round(6).tolist(), strict=True))
            yield Prediction(f"{split}-{i}", names[labels[i]], names[row.argmax()], probabilities)

    def predictions(self, split: str, e: Evaluation) -> list[Prediction]:
        names = self.task.label_names
        assert e.labels is not None
        assert e.predicted is not None
        assert e.probabilities is not None
        return [
            Prediction(
                id=f"{split}-{i}",
                label=names[e.labels[i]],
                predicted=names[e.predicted[i]],
                probabilities=dict(zip(names, e.probabilities[i].tolist(), strict=True)),
                text=example.text,
                pair=example.pair,
            )
            for i, example in enumerate(self.task.splits[split])
        ]

    def write_unscored(self, run: Run, model: Any) -> None:
        """Write nothing: `heedful predict` labels such rows."""

    def dev_checks(self, dev: Evaluation, results: Results) -> list[Check]:
        assert dev.labels is not None
        predicted = results.splits["dev"].predicted_counts or {}
        counts = count_labels(dev.labels, self.task.label_names)
        simple = results.splits["dev"].baselines or {}
        # The bag of words has a check of its own, on the same examples, which tells smaller differences.
        best = max((value for name, value in simple.items() if name != "bag_of_words"), default=0.0)
        right = dev.predicted == dev.labels
        metric = find_metric(dev.metric, self.task.label_names)
        findings = [checks.collapse(predicted, counts, float(np.mean(right)))]
        findings.append(checks.metric_fits(metric, counts))
        if self.with_bag:
            of_bag = self.pick_bag_outputs("dev", metric)
            findings.append(checks.beats_bag_of_words(metric, *metric.examples(dev), of_bag))
        if metric.is_share:
            findings.append(checks.evaluation_size(dev.n, dev.value, best, "always giving one label"))
        return findings

    def result_fields(self, model: Any, steps: int, epochs: float) -> dict[str, Any]:
        fields: dict[str, Any] = {"labels": tuple(self.task.label_names)}
        # A bag of words is fitted when the first split is scored.
        if self.of_bag and self.bag.n_rows < len(self.rows):
            fields["bag_of_words_rows"] = self.bag.n_rows
        return fields


class NetworkProbe:
    """The checks of a network's texts, and its outputs on a few of them."""

    def __init__(self, task: Task, classify: Classify) -> None:
        self.task, self.classify = task, classify

    def data_checks(self, max_len: int, room: int) -> list[Check]:
        lengths = self.classify.tokens["train"].lengths
        if self.classify.tokens["train"].truncated_rows:
            lengths = tokenize(self.task.splits["train"], self.classify.tokenizer).lengths
        how = self.classify.long_texts
        return [*split_checks(self.task), checks.truncation(lengths, max_len, room, how)]

    def probe(self, model: Any) -> Tensor:
        rows = np.arange(min(PROBE_ROWS, len(self.classify.tokens["train"])))
        device = next(model.parameters()).device
        return self.classify.logits(model, self.classify.inputs("train", rows).to(device))


class LabelScorer(NetworkProbe, LabelResults):
    """The same for a network, which has tokens."""

    def __init__(self, task: Task, classify: Classify) -> None:
        balanced = classify.class_weights is not None
        LabelResults.__init__(self, task, classify.rows, balanced=balanced, correction=classify.correction)
        self.classify = classify


class AnswerScorer:
    def __init__(self, task: Task, objective: AnswerObjective) -> None:
        self.task, self.objective = task, objective
        self.constant = normalize_spaces(baselines.find_most_frequent_answer(task.splits["train"]))

    def results(self, evaluations: Mapping[str, Evaluation]) -> dict[str, SplitResult]:
        """Return exact match, beside that of always giving train's most frequent answer."""
        results = {}
        for split, e in evaluations.items():
            metric = METRICS[e.metric]
            references, _ = metric.examples(e)
            constant = np.full(len(references), self.constant, object)
            results[split] = SplitResult(
                **metric.describe(),
                value=e.value,
                n=e.n,
                ci95=metric.evaluation_interval(e),
                loss=e.loss,
                baselines={"constant_answer": float(metric.compute(references, constant))},
                of=self.task.splits[split].of,
            )
        return results

    def right_of_constant(self, split: str) -> Floats:
        return np.array([text == self.constant for text in self.objective.texts[split]], np.float64)

    def write_scored(self, run: Run, evaluations: Mapping[str, Evaluation]) -> None:
        for split, e in evaluations.items():
            assert isinstance(e, AnswerEvaluation)
            self.write_answer_rows(run, split, e.answers, e.confidence)

    def write_answer_rows(self, run: Run, split: str, answers: Sequence[str], confidence: Floats) -> None:
        truth: Sequence[str | None] = self.objective.texts.get(split) or [None] * len(answers)
        examples = self.task.splits[split]
        rows = enumerate(zip(truth, answers, confidence, examples, strict=True))
        predictions = (
            Prediction(f"{split}-{i}", right, answer, {answer: float(sure)}, example.text, example.pair)
            for i, (right, answer, sure, example) in rows
        )
        run.write_predictions(split, predictions)
        run.write_answers(split, answers)

    def write_unscored(self, run: Run, model: Any) -> None:
        """Write the answers to test's questions where only others know what is right."""
        if "test" in self.objective.questions and "test" not in self.objective.splits:
            self.write_answer_rows(run, "test", *self.objective.ask(model, "test"))

    def dev_checks(self, dev: Evaluation, results: Results) -> list[Check]:
        assert isinstance(dev, AnswerEvaluation)
        truth, constant = Counter(self.objective.texts["dev"]), self.right_of_constant("dev")
        return [
            checks.collapse(Counter(dev.answers), truth, dev.value),
            checks.beats_constant_answer(dev.right, constant, self.constant),
            checks.evaluation_size(dev.n, dev.value, float(constant.mean()), "always giving one answer"),
            checks.unknown_tokens(self.count_unknown()),
        ]

    def count_unknown(self) -> dict[str, tuple[int, int]]:
        """Count the texts with tokens that the vocabulary lacks, and all texts, by split and side."""
        sides = {"questions": self.objective.questions, "answers": self.objective.answers}
        return {
            f"{split}'s {name}": (encoded.unknown, len(encoded.ids))
            for name, side in sides.items()
            for split, encoded in side.items()
        }

    def result_fields(self, model: Any, steps: int, epochs: float) -> dict[str, Any]:
        return {"labels": tuple(self.task.label_names)}

    def data_checks(self, max_len: int, room: int) -> list[Check]:
        form = self.objective.form
        limits = (max_len, room) if form.whole else (question_room(max_len), question_room(room))
        texts = list(self.task.splits["train"].texts)
        lengths = [len(ids) for ids in encode_questions(form.tokenizer, texts, special=form.whole).ids]
        return [*split_checks(self.task), checks.truncation(lengths, *limits)]

    def probe(self, model: Any) -> Tensor:
        rows = np.arange(min(PROBE_ROWS, len(self.objective.texts["train"])))
        device = next(model.parameters()).device
        losses, _, _ = self.objective.token_losses(model, self.objective.inputs("train", rows).to(device))
        return -losses


def leave_out_bag(scorer: Scorer | LabelResults) -> None:
    """Fit no bag of words to compare with: it is compared elsewhere, and a fit takes time."""
    if hasattr(scorer, "with_bag"):
        scorer.with_bag = False


def count_labels(labels: Ints, names: Sequence[str]) -> dict[str, int]:
    return dict(zip(names, np.bincount(labels, minlength=len(names)).tolist(), strict=True))


def split_checks(task: Task) -> list[Check]:
    return [checks.shared_texts(task), checks.shared_parts(task), checks.labels_everywhere(task)]
