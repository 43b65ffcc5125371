"""What a kind of problem decides: the objective, the metric, the size of the head, baselines and scoring."""

from __future__ import annotations

from collections.abc import Sequence
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar, Literal

if TYPE_CHECKING:
    from heedful.data.named_tasks import Kind


class Problem:
    """One kind of problem. Class attributes declare what is true of it; an instance has no state.

    What is in higher layers is named by its import path, `module:attribute`, and imported when it is used.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """The kind in words, for tables."""
    objective: ClassVar[str]
    """The objective that is minimized unless another one is asked for."""
    metric: ClassVar[str]
    """The metric that models are selected by unless another one is asked for."""
    metrics: ClassVar[tuple[str, ...]] = ()
    """The metrics that results and reports show, the usual one first."""
    command: ClassVar[str] = "adapt"
    """The command that trains models for it."""
    task_kind: ClassVar[Kind | None] = None
    """The `kind` of the tasks (`heedful.data.Task`) that ask for it; None if no task does by itself."""
    load_as: ClassVar[Kind | None] = None
    """The `kind` that a task is loaded as when this problem is named; None for the task's own."""
    head_form: ClassVar[Literal["family", "linear", "ordinal"] | None] = None
    """The form of the head, where the method does not decide it."""
    generates_text: ClassVar[bool] = False
    """Whether the model's answers are free text and not labels."""
    scorer: ClassVar[str]
    """The class that scores a model's outputs, writes its predictions and checks them."""
    results: ClassVar[str]
    """The class that does the same for a model without a network."""
    baselines: ClassVar[str | None] = None
    """The function that scores simple baselines: `function(task, splits, bag, metric)`."""

    def count_outputs(self, task: Any) -> int | None:
        """Return the size of the model's head for a task; None for the size of the vocabulary."""
        return None

    def make_scorer(self, *arguments: Any, **options: Any) -> Any:
        return resolve_name(self.scorer)(*arguments, **options)

    def make_results(self, *arguments: Any, **options: Any) -> Any:
        return resolve_name(self.results)(*arguments, **options)

    def score_baselines(
        self, task: Any, splits: Sequence[str] | None = None, bag: Any = None, metric: Any = None
    ) -> dict[str, dict[str, float]]:
        """Score the baselines on splits (by default all but train); see `heedful.evaluation.baselines`."""
        if self.baselines is None:
            return {}
        scores: dict[str, dict[str, float]] = resolve_name(self.baselines)(task, splits, bag, metric)
        return scores
