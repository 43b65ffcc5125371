"""Free text: the model writes the answer to a question."""

from __future__ import annotations

from heedful.problems.base import Problem


class FreeText(Problem):
    """Answers are free text; they are right if they equal the reference, runs of white space apart."""

    name = "text"
    title = "text to text"
    objective = "answer"
    metric = "exact_match"
    task_kind = load_as = "text2text"
    generates_text = True
    scorer = "heedful.evaluation.scorer:AnswerScorer"
    baselines = "heedful.evaluation.baselines:score_answer_baselines"
