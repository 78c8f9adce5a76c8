"""Strategies `signsgd`, `topk`, `terngrad`, `drive`, `eden` and `random_subsampling`: the mean of compressed updates.

They are what FedMRN was compared with (its section 5.1.3), and random subsampling, which needs no positions. Each is
federated averaging with one uplink; the compressors and their papers are in `edgefl.local_rules.compression`. Where a
paper has a setting of its own, it is the default. Section 5.1.3 keeps 3 % of the entries with Top-k, so that all of
them send about one bit a weight. Devices train as in FedAvg, with the learning rate that it has in that comparison.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from edgefl.local_rules import Descent
from edgefl.strategies.composable_strategy import ComposableStrategy
from edgefl.strategies.compressed_uplink import CompressionSettings
from edgefl.strategies.uplinks import Sent, UplinkChoice

__all__ = ["DriveAverage", "EdenAverage", "RandomSubsampling", "SignSGD", "TernGradAverage", "TopKAverage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compressed(ComposableStrategy):
    """What the strategies of this file share. Each adds its name, and what it sends."""

    name: ClassVar[str]
    sends: ClassVar[Sent]
    descent: Descent = field(default_factory=lambda: Descent(learning_rate=0.03))

    def check_settings(self) -> None:
        """Raise a `FieldError` if settings contradict each other."""
        self.uplinks.must_be(self.sends, self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignSGD(_Compressed):
    """Stochastic signs, one bit a weight (Safaryan and Richtarik 2021)."""

    name: ClassVar[str] = "signsgd"
    sends: ClassVar[Sent] = Sent.STOCHASTIC_SIGN
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=Sent.STOCHASTIC_SIGN))


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKAverage(_Compressed):
    """The largest entries of each update, and where they are (Aji and Heafield 2017)."""

    name: ClassVar[str] = "topk"
    sends: ClassVar[Sent] = Sent.TOP_K
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=Sent.TOP_K))


@dataclass(frozen=True, slots=True, kw_only=True)
class TernGradAverage(_Compressed):
    """Three levels, 1.6 bits a weight (Wen et al. 2017)."""

    name: ClassVar[str] = "terngrad"
    sends: ClassVar[Sent] = Sent.TERNGRAD
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=Sent.TERNGRAD))


@dataclass(frozen=True, slots=True, kw_only=True)
class DriveAverage(_Compressed):
    """Signs after a random rotation, with the least error (Vargaftik et al. 2021)."""

    name: ClassVar[str] = "drive"
    sends: ClassVar[Sent] = Sent.DRIVE
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=Sent.DRIVE))


@dataclass(frozen=True, slots=True, kw_only=True)
class EdenAverage(_Compressed):
    """Signs after a random rotation, without a bias (Vargaftik et al. 2022)."""

    name: ClassVar[str] = "eden"
    sends: ClassVar[Sent] = Sent.EDEN
    uplinks: UplinkChoice = field(default_factory=lambda: UplinkChoice(sent=Sent.EDEN))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSubsampling(_Compressed):
    """Entries that the seed names (Konecny et al. 2016); one in 32 is one bit a weight, as only values travel."""

    name: ClassVar[str] = "random_subsampling"
    sends: ClassVar[Sent] = Sent.RANDOM_SUBSAMPLE
    uplinks: UplinkChoice = field(
        default_factory=lambda: UplinkChoice(
            sent=Sent.RANDOM_SUBSAMPLE, compression=CompressionSettings(sent_share=1 / 32)
        )
    )
