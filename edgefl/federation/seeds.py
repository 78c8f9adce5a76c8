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
    """Return the seed of a device's task, from which its training draws."""
    return derive(seed, "task", number, device, *again)


def combine_seed(seed: int, number: int) -> int:
    """Return the seed for aggregating a round's updates."""
    return derive(seed, "combine", number)


def personal_seed(seed: int) -> int:
    """Return the seed for planning personalisation."""
    return derive(seed, "personal")


def extract_seed(seed: int) -> int:
    """Return the seed for extracting a submodel from the final model."""
    return derive(seed, "extract")
