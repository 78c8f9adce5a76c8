"""The `RoundContext` of each stage of a federation: planning, aggregation, personalisation.

The coordinator and the simulator take it from here, so that a strategy sees the same seeds in both.
"""

from edgefl.federation.seeds import combine_seed, personal_seed, round_seed
from edgefl.federation.settings import FederationSettings
from edgefl.strategies import RoundContext

__all__ = ["aggregation_context", "personalisation_context", "planning_context"]


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
