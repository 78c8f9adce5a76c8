"""Every seed of a federation, derived from its one seed, and the `RoundContext` that brings it to a strategy.

The coordinator and the simulator use the same functions, so the same seed and the same devices give the same weights in
both. A seed depends only on the federation's seed and on its purpose, never on what was drawn before.
"""

from edgefl.federation.settings import FederationSettings
from edgefl.noise import derive
from edgefl.strategies import RoundContext

__all__ = [
    "aggregation_context",
    "combine_seed",
    "extract_seed",
    "personal_seed",
    "personalisation_context",
    "planning_context",
    "round_seed",
    "task_seed",
]


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


def planning_context(settings: FederationSettings, number: int, serial: int = 1) -> RoundContext:
    """Return the context in which a round is planned; `serial` tells several plans of one round apart."""
    return _context(settings, number, round_seed(settings.seed, number, serial))


def aggregation_context(settings: FederationSettings, number: int) -> RoundContext:
    """Return the context in which the updates of a round are aggregated."""
    return _context(settings, number, combine_seed(settings.seed, number))


def personalisation_context(settings: FederationSettings) -> RoundContext:
    """Return the context of the round after the last one, in which devices personalise the final model."""
    return _context(settings, settings.rounds.count, personal_seed(settings.seed))


def _context(settings: FederationSettings, number: int, seed: int) -> RoundContext:
    return RoundContext(number, settings.rounds.count, seed, settings.work)
