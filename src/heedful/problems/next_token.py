"""The next token, or hidden tokens, of plain text: language modeling."""

from __future__ import annotations

from heedful.problems.base import Problem


class NextToken(Problem):
    """Tokens of a text are predicted from other tokens of it, with no labels."""

    name = "next_token"
    title = "language modeling"
    objective = "causal"
    metric = "perplexity"
    command = "pretrain"
    generates_text = True
    scorer = "heedful.evaluation.text_scorer:TextScorer"
