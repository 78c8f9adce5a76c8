"""Every strategy by name, and how a federation's settings become one. The coordinator calls `strategy_of`."""

from collections.abc import Mapping

from edgefl.strategies.compressed import (
    DriveAverage,
    EdenAverage,
    RandomSubsampling,
    Signsgd,
    TerngradAverage,
    TopkAverage,
)
from edgefl.strategies.ditto import Ditto
from edgefl.strategies.fedavg import Fedavg
from edgefl.strategies.fedbabu import Fedbabu
from edgefl.strategies.fedmap import Fedmap
from edgefl.strategies.fedmrn import Fedmrn
from edgefl.strategies.fednova import Fednova
from edgefl.strategies.fedpm import Fedpm
from edgefl.strategies.fedprox import Fedprox
from edgefl.strategies.fedrolex import Fedrolex
from edgefl.strategies.fedspa import Fedspa
from edgefl.strategies.fjord import Fjord
from edgefl.strategies.hermes import Hermes
from edgefl.strategies.heterofl import Heterofl
from edgefl.strategies.local import Local
from edgefl.strategies.outside import is_outside, outside_strategy
from edgefl.strategies.perfedmask import Perfedmask
from edgefl.strategies.strategy import Strategy
from edgefl.values import Setting, chosen

__all__ = ["STRATEGIES", "strategy_of"]

_STRATEGIES: tuple[type[Strategy], ...] = (
    Fedavg,
    Hermes,
    Fedspa,
    Fedmap,
    Fedmrn,
    Fedpm,
    Signsgd,
    TopkAverage,
    TerngradAverage,
    DriveAverage,
    EdenAverage,
    RandomSubsampling,
    Local,
    Ditto,
    Fedprox,
    Fednova,
    Heterofl,
    Fedrolex,
    Fjord,
    Perfedmask,
    Fedbabu,
)
STRATEGIES: Mapping[str, type[Strategy]] = {strategy.name: strategy for strategy in _STRATEGIES}
"""The strategies that come with EdgeFL, by the names that a federation calls them."""


def strategy_of(name: str, settings: Mapping[str, Setting]) -> Strategy:
    """Make the strategy that a federation asks for; a `SchemaError` says what is wrong with its name or settings.

    A name with a colon is that of a class elsewhere, `package.module:Class`, which is imported.
    """
    known = {name: outside_strategy(name)} if is_outside(name) else STRATEGIES
    return chosen("strategy", known, name, settings)
