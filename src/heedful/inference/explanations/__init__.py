"""Explanations: which words of a text carried an answer, and whether the explanation can be trusted.

Linear models have exact contributions; networks have integrated gradients of their word embeddings; every
model has occlusion. A deletion test compares the order of the words with random orders.
"""

from heedful.inference.explanations.deletion import DeletionTest as DeletionTest
from heedful.inference.explanations.explain import explain as explain
from heedful.inference.explanations.explain import explain_run as explain_run
from heedful.inference.explanations.result import Explanation as Explanation
from heedful.inference.explanations.result import WordEffect as WordEffect
