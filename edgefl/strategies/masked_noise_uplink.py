"""The uplink of FedMRN: one bit a weight, which selects from noise that both ends make of the seed.

Li et al., "Masked Random Noise for Communication-Efficient Federated Learning", ACM MM 2024, Algorithm 1. Devices train
by the rule `masked_noise`. Here its bits become new values again, w + G(s) * m (line 9): their weighted mean is Eq. 5.
The seed is the one of the plan, so an upload cannot bring its own noise. A device makes the noise of its part in the
shape of its part, and so does this file: masks that cut channels or hold single weights change nothing.

Matrices and kernels come as bits; norms, biases and running statistics as new values.
"""

from dataclasses import dataclass, field, replace

from edgefl.local_rules import Descent, MaskedNoise, rebuild
from edgefl.local_rules.descent import Positive
from edgefl.local_rules.masked_noise import Masking, MaskKind
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.uplink import check_bits, settings_for, updated
from edgefl.values import RuleSettings, check_fields
from edgefl.wire import Bits, Payload

__all__ = ["MaskedNoiseUplink", "NoiseSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSettings:
    """What masked noise is like."""

    noise_masks: MaskKind = MaskKind.BINARY
    noise_bound: Positive | None = field(default=None, metadata={"absent": "0.01, or 0.005 with signed masks"})
    """The noise is uniform in [-bound, bound)."""
    noise_masking: Masking = Masking.PROGRESSIVE_STOCHASTIC
    """How masks are drawn; all but the default are the paper's ablations."""

    def __post_init__(self) -> None:
        check_fields(self)

    def made(self, descent: Descent) -> "MaskedNoiseUplink":
        """Return the uplink of devices that train in this way."""
        rule = MaskedNoise(descent=descent, masks=self.noise_masks, bound=self.noise_bound, masking=self.noise_masking)
        return MaskedNoiseUplink(rule)


@dataclass(frozen=True, slots=True)
class MaskedNoiseUplink:
    """Devices learn which noise to take, and send one bit a weight."""

    local: MaskedNoise

    @property
    def rule(self) -> RuleSettings:
        """Masked noise."""
        return settings_for(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but bits of matrices and kernels, and new values of the rest."""
        check_bits(update)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Add the masked noise to what the device was given."""
        mask, seed = update.mask, update.seed
        kind, bound = self.local.masks, self.local.noise_bound
        tensors: dict[str, Payload] = {}
        for name, payload in update.tensors.items():
            if isinstance(payload, Bits):
                noise = rebuild(payload, seed, name, masks=kind, bound=bound, held=mask.held.get(name))
                tensors[name] = updated(update, name, noise)
            else:
                tensors[name] = payload
        return replace(update, tensors=tensors)
