"""Every strategy by name, and how a federation's settings become one. The coordinator calls `strategy_of`."""

from collections.abc import Mapping

from edgefl.strategies.fedavg import Fedavg
from edgefl.strategies.strategy import Strategy
from edgefl.values import Setting, chosen

__all__ = ["STRATEGIES", "strategy_of"]

_STRATEGIES: tuple[type[Strategy], ...] = (Fedavg,)
STRATEGIES: Mapping[str, type[Strategy]] = {strategy.name: strategy for strategy in _STRATEGIES}
"""The strategies that a federation may name."""


def strategy_of(name: str, settings: Mapping[str, Setting]) -> Strategy:
    """Make the strategy that a federation asks for; a `SchemaError` says what is wrong with its name or settings."""
    return chosen("strategy", STRATEGIES, name, settings)
