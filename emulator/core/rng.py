"""Named random streams: one seed feeds them all, and a new stream never disturbs an old one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random  # noqa: TID251 - the streams are named here

    import numpy as np


def seed_of(seed: int, *names: object) -> int:
    """A 63-bit seed for the stream `names` under `seed`; the same on every machine and Python."""
    text = "/".join([str(seed), *(str(name) for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def stream(seed: int, *names: object) -> np.random.Generator:
    """A numpy generator for the stream `names` under `seed`."""
    import numpy as np

    return np.random.default_rng(seed_of(seed, *names))


def light(seed: int, *names: object) -> random.Random:
    """A generator of single floats for the stream `names`, for processes that start too often to import numpy."""
    import random  # noqa: TID251 - the streams are named here

    return random.Random(seed_of(seed, *names))
