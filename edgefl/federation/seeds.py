"""Every seed of a federation, derived from its one seed and the name of what is drawn.

The coordinator and the simulator use the same functions, so the same seed and the same devices give the same weights in
both. A seed depends only on the federation's seed and on its purpose, never on what was drawn before.
"""

from edgefl.noise import derive

__all__ = ["combine_seed", "extract_seed", "personal_seed", "round_seed", "task_seed"]


def round_seed(seed: int, number: int, serial: int = 1) -> int:
    """Return the seed of a round's selection and plans; `serial` tells later draws of one round apart."""
    return derive(seed, "round", number, serial)


def task_seed(seed: int, number: int, device: str, *again: int) -> int:
    """Return the seed of a device's task, which its training draws from."""
    return derive(seed, "task", number, device, *again)


def combine_seed(seed: int, number: int) -> int:
    """Return the seed of what is drawn when a round's updates are combined."""
    return derive(seed, "combine", number)


def personal_seed(seed: int) -> int:
    """Return the seed of the plans by which devices make the last model their own."""
    return derive(seed, "personal")


def extract_seed(seed: int) -> int:
    """Return the seed of what is drawn when a submodel is taken from the last model."""
    return derive(seed, "extract")
