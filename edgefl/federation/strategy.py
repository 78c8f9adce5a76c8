"""The strategy that a federation's settings choose, and which of its rounds are for every device."""

from edgefl.artifacts.bundle import INFER, Bundle
from edgefl.artifacts.features import feature_graph
from edgefl.federation.settings import FederationSettings
from edgefl.strategies import RoundContext, Strategy, strategy_of

__all__ = ["check_features", "federation_strategy", "selects_all"]


def federation_strategy(settings: FederationSettings) -> Strategy:
    """Return the strategy of a federation; an error says what is wrong with its name, its settings or its rounds."""
    strategy = strategy_of(settings.strategy.name, settings.strategy.settings)
    check_rounds = getattr(strategy, "check_rounds", None)
    if check_rounds is not None:
        check_rounds(settings.rounds.count, buffered=settings.buffered)
    return strategy


def check_features(strategy: Strategy, bundle: Bundle) -> None:
    """Refuse a model whose features cannot be had, for a strategy that needs them in its last round."""
    if getattr(strategy, "selects_all", None) is not None:
        feature_graph(bundle.files[INFER], bundle.graph)


def selects_all(strategy: Strategy, round_context: RoundContext) -> bool:
    """Return whether a round is for every available device, and waits for all of them, as the fit of an exact head."""
    asks = getattr(strategy, "selects_all", None)
    return asks is not None and bool(asks(round_context))
