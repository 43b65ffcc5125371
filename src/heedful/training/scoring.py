"""What a run writes about its answers, and what it can check in them: labels, or free text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from torch import Tensor

from heedful.data import Task, tokenize
from heedful.evaluation import checks
from heedful.evaluation import metrics as scores
from heedful.evaluation.baselines import BagOfWords, bag_of_words, baselines, constant_answer
from heedful.evaluation.metrics import METRICS
