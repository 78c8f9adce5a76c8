"""Strategies `signsgd`, `topk`, `terngrad`, `drive`, `eden` and `random_subsampling`: the mean of compressed updates.

They are the baselines of FedMRN (its section 5.1.3), and random subsampling, which needs no positions. Each is
federated averaging with one uplink; the compressors and their papers are in `edgefl.local_rules.compression`. A paper's
own settings are the defaults. Section 5.1.3 keeps 3 % of the entries with Top-k, so that all of them send about one bit
per weight. Devices train as in FedAvg, with the learning rate that it has in that comparison.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.compressed_uplink import CompressionSettings
from edgefl.strategies.uplink_choice import UplinkChoice, UplinkKind

__all__ = ["DriveAverage", "EdenAverage", "RandomSubsampling", "SignSGD", "TernGradAverage", "TopKAverage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compressed(ComposableStrategy):
    """What the strategies of this file share. Each adds its name and its uplink."""

    sends: ClassVar[UplinkKind]
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.03))

    def check_settings(self) -> None:
        """Refuse any other uplink."""
        self.uplinks.check_only(self.sends, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignSGD(_Compressed):
    """Stochastic signs, one bit per weight (Safaryan and Richtarik 2021)."""

    name: ClassVar[str] = "signsgd"
    sends: ClassVar[UplinkKind] = UplinkKind.STOCHASTIC_SIGN
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=UplinkKind.STOCHASTIC_SIGN))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKAverage(_Compressed):
    """The largest entries of each update, and their positions (Aji and Heafield 2017)."""

    name: ClassVar[str] = "topk"
    sends: ClassVar[UplinkKind] = UplinkKind.TOP_K
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=UplinkKind.TOP_K))


@dataclass(frozen=True, slots=True, kw_only=True)
class TernGradAverage(_Compressed):
    """Three levels, 1.6 bits per weight (Wen et al. 2017)."""

    name: ClassVar[str] = "terngrad"
    sends: ClassVar[UplinkKind] = UplinkKind.TERNGRAD
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=UplinkKind.TERNGRAD))


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveAverage(_Compressed):
    """Signs after a random rotation, with the least error (Vargaftik et al. 2021)."""

    name: ClassVar[str] = "drive"
    sends: ClassVar[UplinkKind] = UplinkKind.DRIVE
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=UplinkKind.DRIVE))


@dataclass(frozen=True, slots=True, kw_only=True)
class EdenAverage(_Compressed):
    """Signs after a random rotation, without bias (Vargaftik et al. 2022)."""

    name: ClassVar[str] = "eden"
    sends: ClassVar[UplinkKind] = UplinkKind.EDEN
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=UplinkKind.EDEN))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSubsampling(_Compressed):
    """Entries that the seed selects (Konecny et al. 2016); one in 32 is one bit per weight, as only values travel."""

    name: ClassVar[str] = "random_subsampling"
    sends: ClassVar[UplinkKind] = UplinkKind.RANDOM_SUBSAMPLE
    uplinks: UplinkChoice = field(
        default_factory=lambda: UplinkChoice(
            sent=UplinkKind.RANDOM_SUBSAMPLE, compression=CompressionSettings(sent_share=1 / 32)
        )
    )
