"""Initial weights that depend only on a seed.

torch's layers draw their initial values from its default generator and cannot use another, so the seed is set while a
model is built, and the previous state is restored.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from edgefl.errors import ExportError

__all__ = ["seeded"]

# What torch's generator accepts without wrapping around.
_SEEDS = range(2**63)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw torch's random numbers on the CPU from a seed, and restore the generator afterwards."""
    if seed not in _SEEDS:
        raise ExportError(f"the seed is {seed}", fix="Give a whole number from 0 to 2**63 - 1.")
    # No devices: models are built on the CPU, so the generators of GPUs are not used.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
