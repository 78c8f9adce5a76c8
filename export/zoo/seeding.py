"""Initial weights that depend on a seed and on nothing else.

torch's layers draw their initial values from its default generator and cannot be given another, so the seed is set
for as long as a model is built, and the state of before is put back.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from edgefl.errors import ExportError

__all__ = ["seeded"]

# What torch's generator takes without wrapping around.
_SEEDS = range(2**63)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw torch's random numbers on the CPU from a seed, and leave the generator as it was before."""
    if seed not in _SEEDS:
        raise ExportError(f"the seed is {seed}", fix="Give a whole number from 0 to 2**63 - 1.")
    # No devices: models are built on the CPU, so the generators of GPUs need neither a seed nor rescue.
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield
