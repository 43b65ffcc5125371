"""`heedful study knowledge`: what a model knows, and whether anybody can tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json
from heedful.options.studies import KnowledgeOptions

STUDY = KnowledgeOptions()


def knowledge(
    data: str = STUDY.data,
    /,
    *,
    study: Annotated[KnowledgeOptions, Parameter(name="*")] = STUDY,
    json: Json = False,
) -> None:
    """What does a model know, and can its memories be told from its inventions?

    Pretrains on biographies, fine-tunes on "Where was NAME born?", and
    compares with no pretraining and with always giving one answer. Then asks
    about people it was asked about, people it has only read about, and people
    who do not exist: how sure it is of each, and by which rule it invents.
    Predictions stand one a line in each run's folder. The same command
    continues a study that was stopped.

    Examples:
      heedful study knowledge
      heedful study knowledge birthplaces --pretrain read.toml --finetune ask.toml
      heedful study knowledge birthplaces --pretrain runs/born-read
      heedful study knowledge my/birthplaces --out studies/mine --json

    Parameters
    ----------
    data
        world/birthplaces (made here), birthplaces, or a folder with wiki.txt and questions as it has them.
    json
        Print one JSON object.
    """
    from heedful.cli.study_output import finish
    from heedful.studies.knowledge.study import knowledge as work

    finish(*work(replace(study, data=data)), json=json)
