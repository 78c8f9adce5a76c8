"""What devices send after training: the setting that strategies share."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NoReturn

from edgefl.local_rules import Descent
from edgefl.local_rules.compressed_sgd import Compression
from edgefl.local_rules.masked_noise import NoiseDistribution
from edgefl.strategies.compressed_uplink import CompressionSettings
from edgefl.strategies.one_bit_uplinks import NoiseSettings
from edgefl.strategies.uplink import Uplink, ValuesUplink
from edgefl.values import FieldError, check_fields

__all__ = ["UplinkChoice", "UplinkKind"]


class UplinkKind(StrEnum):
    """What devices send. All kinds but the first compress matrices and kernels; the rest is sent as values."""

    VALUES = "values"
    """The new values of everything that was trained."""
    MASKED_NOISE = "masked_noise"
    """One learned bit per weight: FedMRN."""
    STOCHASTIC_SIGN = "stochastic_sign"
    SCALED_SIGN = "scaled_sign"
    TERNGRAD = "terngrad"
    TOP_K = "top_k"
    DRIVE = "drive"
    EDEN = "eden"
    RANDOM_SUBSAMPLE = "random_subsample"


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkChoice:
    """What devices send, and how it is compressed."""

    sent: UplinkKind = UplinkKind.VALUES
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    compression: CompressionSettings = field(default_factory=CompressionSettings)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.sent is UplinkKind.MASKED_NOISE:
            return
        if self.noise.noise_bound is not None:
            self._refuse_noise("noise_bound", f"{self.noise.noise_bound}")
        if self.noise.noise_distribution is not NoiseDistribution.UNIFORM:
            self._refuse_noise("noise_distribution", f"{self.noise.noise_distribution.value!r}")

    def _refuse_noise(self, setting: str, given: str) -> NoReturn:
        raise FieldError(
            f"is {given}, but devices send {self.sent.value!r}",
            fix=f"Write sent = 'masked_noise', or leave {setting} out",
            path=(setting,),
        )

    def check_only(self, sent: UplinkKind, strategy: str) -> None:
        """Refuse any other kind, for a strategy that is federated averaging with one uplink."""
        if self.sent is not sent:
            raise FieldError(
                f"is {self.sent.value!r}, but {strategy} is federated averaging that sends {sent.value!r}",
                fix="Leave it out, or choose the strategy fedavg, which can send any kind",
                path=("sent",),
            )

    def build(self, descent: Descent) -> Uplink:
        """Return the uplink of devices that train with this descent."""
        match self.sent:
            case UplinkKind.VALUES:
                return ValuesUplink.by_descent(descent)
            case UplinkKind.MASKED_NOISE:
                return self.noise.build(descent)
        return self.compression.build(descent, Compression(self.sent.value))
