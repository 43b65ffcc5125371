"""What pretraining hides from a model: tokens (masked) or spans (single, T5's, in windows), at random
or salient.

Every function is vectorised over a batch, takes its random numbers from the generator it is given (see
`heedful.data.random.stream`) and returns new arrays: what comes in is never changed.
"""

from heedful.data.corruption.masked import mask_tokens
from heedful.data.corruption.salient import salient_ranges, token_ranges
from heedful.data.corruption.spans import long_enough, single_span, t5_spans
from heedful.data.corruption.windows import Rows, Salient, find_salient, windows

__all__ = [
    "Rows",
    "Salient",
    "find_salient",
    "long_enough",
    "mask_tokens",
    "salient_ranges",
    "single_span",
    "t5_spans",
    "token_ranges",
    "windows",
]
