"""Named random streams, which depend only on the seed, a purpose and keys such as the epoch.

They do not depend on the process, the number of workers or the order of calls: a resumed run continues
exactly, and two workers never draw the same numbers, because their keys differ.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def key(seed: int, purpose: str, *keys: int) -> int:
    """Return 128 bits for a seed, a purpose and keys, the same on every machine and in every process."""
    name = repr((int(seed), purpose, tuple(int(k) for k in keys)))
    return int.from_bytes(blake2b(name.encode(), digest_size=16).digest(), "little")


def stream(seed: int, purpose: str, *keys: int) -> np.random.Generator:
    """Return the random generator of a purpose, such as `stream(seed, "masking", epoch, step)`."""
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(key(seed, purpose, *keys))))
