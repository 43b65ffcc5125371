"""Corruption of texts for pretraining: masked tokens, or hidden spans, at random or salient.

Every function is vectorized over a batch, draws from the generator it is given (see
`heedful.data.random.stream`) and returns new arrays; its inputs are never changed.
"""

from heedful.data.corruption.masked import mask_tokens
from heedful.data.corruption.salient import convert_to_token_ranges, find_salient_ranges
from heedful.data.corruption.spans import hide_single_span, hide_t5_spans, is_long_enough
from heedful.data.corruption.windows import SalientSpans, WindowBatch, find_salient, hide_in_windows

__all__ = [
    "SalientSpans",
    "WindowBatch",
    "convert_to_token_ranges",
    "find_salient",
    "find_salient_ranges",
    "hide_in_windows",
    "hide_single_span",
    "hide_t5_spans",
    "is_long_enough",
    "mask_tokens",
]
