"""`heedful study attention`: what the mechanism changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json
from heedful.options.studies import AttentionOptions

STUDY = AttentionOptions()


def attention(
    corpus: str = STUDY.corpus,
    /,
    *,
    study: Annotated[AttentionOptions, Parameter(name="*")] = STUDY,
    json: Json = False,
) -> None:
    """What does the attention mechanism change?

    The same small decoder, trained with each variant on the same batches:
    time, loss, perplexities, given sentences, samples, and how much each sees
    of the future it has to predict. The same command continues a study that
    was stopped.

    Examples:
      heedful study attention
      heedful study attention lm1b/dev.txt --test lm1b/test.txt --attentions softmax,additive
      heedful study attention my.txt --attentions performer,bigbird:block=16 --projections "" --masking ""

    Parameters
    ----------
    corpus
        A text file, a folder, a task's text or world/...; a line is a text.
    json
        Print one JSON object.
    """
    from heedful.cli.study_output import finish
    from heedful.studies.attention import attention as work

    finish(*work(replace(study, corpus=corpus)), json=json)
