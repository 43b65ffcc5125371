"""How q, k and v become an output: a file per mechanism (one for both leaking masks), `Mask`, a registry."""

from typing import TYPE_CHECKING

from heedful.attention.registry import MECHANISMS, find_capable, make, options, parse
from heedful.plugins import lazy_attributes

if TYPE_CHECKING:
    from heedful.attention.mask import Mask
    from heedful.attention.mechanism import Mechanism
else:
    __getattr__ = lazy_attributes(
        __name__, {"heedful.attention.mask": "Mask", "heedful.attention.mechanism": "Mechanism"}
    )

__all__ = ["MECHANISMS", "Mask", "Mechanism", "find_capable", "make", "options", "parse"]
