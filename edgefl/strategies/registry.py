"""Every strategy by name, and how a federation's settings become one. The coordinator calls `strategy_of`."""

from collections.abc import Mapping

from edgefl.strategies.compression_baselines import (
    DriveAverage,
    EdenAverage,
    RandomSubsampling,
    SignSGD,
    TernGradAverage,
    TopKAverage,
)
from edgefl.strategies.ditto import Ditto
from edgefl.strategies.exact_head import ExactHead
from edgefl.strategies.exact_head_settings import ExactHeadSettings, HeadFit
from edgefl.strategies.fedavg import FedAvg
from edgefl.strategies.fedbabu import FedBABU
from edgefl.strategies.fedmap import FedMAP
from edgefl.strategies.fedmrn import FedMRN
from edgefl.strategies.fednova import FedNova
from edgefl.strategies.fedpm import FedPM
from edgefl.strategies.fedprox import FedProx
from edgefl.strategies.fedrolex import FedRolex
from edgefl.strategies.fedspa import FedSpa
from edgefl.strategies.fedsparsify import FedSparsify
from edgefl.strategies.fjord import FjORD
from edgefl.strategies.hermes import Hermes
from edgefl.strategies.heterofl import HeteroFL
from edgefl.strategies.joined import Joined
from edgefl.strategies.lg_fedavg import LGFedAvg
from edgefl.strategies.local_only import LocalOnly
from edgefl.strategies.per_fedavg import PerFedAvg
from edgefl.strategies.perfedmask import PerFedMask
from edgefl.strategies.split_mix import SplitMix
from edgefl.strategies.strategy import Strategy
from edgefl.strategies.sub_fedavg import SubFedAvg
from edgefl.strategies.user_strategies import is_user_strategy, user_strategy
from edgefl.values import FieldError, Setting, chosen, settings_from, settings_of

__all__ = ["STRATEGIES", "strategy_of"]

_STRATEGIES: tuple[type[Strategy], ...] = (
    FedAvg,
    Hermes,
    FedSpa,
    FedMAP,
    FedMRN,
    FedPM,
    SignSGD,
    TopKAverage,
    TernGradAverage,
    DriveAverage,
    EdenAverage,
    RandomSubsampling,
    FedSparsify,
    LocalOnly,
    Ditto,
    LGFedAvg,
    PerFedAvg,
    SubFedAvg,
    FedProx,
    FedNova,
    HeteroFL,
    FedRolex,
    FjORD,
    SplitMix,
    Joined,
    PerFedMask,
    FedBABU,
)
STRATEGIES: Mapping[str, type[Strategy]] = {strategy.name: strategy for strategy in _STRATEGIES}
"""The strategies that come with EdgeFL, by the names that federations use."""


def strategy_of(name: str, settings: Mapping[str, Setting]) -> Strategy:
    """Return the strategy that a federation names; a `SchemaError` says what is wrong with its name or settings.

    A name with a colon is a user's class, `package.module:Class`, which is imported.
    """
    known = {name: user_strategy(name)} if is_user_strategy(name) else STRATEGIES
    heads = settings_of(ExactHeadSettings)
    own = {key: value for key, value in settings.items() if key not in heads}
    head = chosen("head", {"head": ExactHeadSettings}, "head", {key: settings[key] for key in settings if key in heads})
    strategy = chosen("strategy", known, name, own)
    if head.exact_head is HeadFit.NONE:
        _check_unused(head)
        return strategy
    return ExactHead(strategy, head)


def _check_unused(head: ExactHeadSettings) -> None:
    """Refuse settings of a phase that there is not."""
    unused = next(
        (name for name in settings_from(head) if getattr(head, name) != getattr(ExactHeadSettings(), name)), None
    )
    if unused is not None:
        raise FieldError(
            "is a setting of an exact head, but there is none",
            fix="Add exact_head = 'ridge' or 'logistic', or leave it out",
            path=("settings", unused),
        )
