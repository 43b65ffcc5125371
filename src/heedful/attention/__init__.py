"""How q, k and v become an output: one file a mechanism, one `Mask`, one registry."""

from heedful.attention.mask import Mask
from heedful.attention.mechanism import Mechanism
from heedful.attention.registry import MECHANISMS, able, make, options, parse

__all__ = ["MECHANISMS", "Mask", "Mechanism", "able", "make", "options", "parse"]
