"""Which uplink: the setting that strategies share, and what it chooses between."""

from dataclasses import dataclass, field
from enum import StrEnum

from edgefl.local_rules import Descent
from edgefl.local_rules.compressed_sgd import Compression
from edgefl.strategies.compressed_uplink import CompressionSettings
from edgefl.strategies.masked_noise_uplink import NoiseSettings
from edgefl.strategies.uplink import NewValues, Uplink
from edgefl.values import FieldError, check_fields

__all__ = ["Sent", "UplinkChoice"]


class Sent(StrEnum):
    """What devices send after training. All but the first is of matrices and kernels; the rest is sent as values."""

    VALUES = "values"
    """The new values of everything that was trained."""
    MASKED_NOISE = "masked_noise"
    """One bit a weight, learned: FedMRN."""
    STOCHASTIC_SIGN = "stochastic_sign"
    SCALED_SIGN = "scaled_sign"
    TERNGRAD = "terngrad"
    TOP_K = "top_k"
    DRIVE = "drive"
    EDEN = "eden"
    RANDOM_SUBSAMPLE = "random_subsample"


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkChoice:
    """What devices send, and how it is made smaller."""

    sent: Sent = Sent.VALUES
    noise: NoiseSettings = field(default_factory=NoiseSettings)
    compression: CompressionSettings = field(default_factory=CompressionSettings)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.sent is not Sent.MASKED_NOISE and self.noise.noise_bound is not None:
            raise FieldError(
                f"is {self.noise.noise_bound}, and what is sent is {self.sent.value!r}",
                fix="Write sent = 'masked_noise', or leave the bound out",
                path=("noise_bound",),
            )

    def must_be(self, sent: Sent, strategy: str) -> None:
        """Refuse another choice, for a strategy that is nothing but federated averaging with one uplink."""
        if self.sent is not sent:
            raise FieldError(
                f"is {self.sent.value!r}, and {strategy} is federated averaging that sends {sent.value!r}",
                fix="Leave it out, or choose the strategy fedavg, which sends anything",
                path=("sent",),
            )

    def made(self, descent: Descent) -> Uplink:
        """Return the uplink of devices that train in this way."""
        match self.sent:
            case Sent.VALUES:
                return NewValues.by_descent(descent)
            case Sent.MASKED_NOISE:
                return self.noise.made(descent)
        return self.compression.made(descent, Compression(self.sent.value))
