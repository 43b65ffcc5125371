"""Named random streams: a stream depends on its name and keys alone.

Not on the process, the number of workers or the order of calls: a run that resumes continues exactly, and two
workers never repeat each other, because their keys differ.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np


def key(seed: int, purpose: str, *keys: int) -> int:
    """Turn a name into 128 bits, the same on every machine and in every process."""
    name = repr((int(seed), purpose, tuple(int(k) for k in keys)))
    return int.from_bytes(blake2b(name.encode(), digest_size=16).digest(), "little")


def stream(seed: int, purpose: str, *keys: int) -> np.random.Generator:
    """Open the random stream of a purpose, such as `stream(seed, "masking", epoch, step)`."""
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(key(seed, purpose, *keys))))
