"""The uplinks of FedMRN and FedPM: one bit per weight.

Matrices and kernels come as bits; norms, biases and running statistics come as new values.

FedMRN (Li et al., "Masked Random Noise for Communication-Efficient Federated Learning", ACM MM 2024, Algorithm 1): the
bits select from noise that both ends generate from the seed. Devices train by the rule `masked_noise`. Here the bits
become new values again, w + G(s) * m (line 9), whose weighted mean is Eq. 5. The seed is that of the plan, so an upload
cannot bring its own noise. Both ends generate the noise in the shape of the submodel, so masks that cut channels or
hold single weights change nothing.

FedPM (`fedpm.py`): a bit says whether a random weight is kept. Devices train by the rule `sampled_masks`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from edgefl.local_rules import Descent, MaskedNoise, SampledMasks
from edgefl.local_rules.descent import Positive
from edgefl.local_rules.masked_noise import Masking, MaskKind, NoiseDistribution
from edgefl.local_rules.sampled_masks import random_weights
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.update_checks import check_mask_kept, check_values
from edgefl.strategies.uplink import add_change, rule_settings
from edgefl.values import RuleSettings, check_fields
from edgefl.wire import Bits, Dense, Payload

__all__ = ["MaskedNoiseUplink", "NoiseSettings", "SampledMaskUplink"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseSettings:
    """The settings of masked noise."""

    noise_masks: MaskKind = MaskKind.BINARY
    noise_bound: Positive | None = field(default=None, metadata={"absent": "0.01, or 0.005 with signed masks"})
    """How large noise is: uniform in [-bound, bound), unless it has another distribution."""
    noise_masking: Masking = Masking.PROGRESSIVE_STOCHASTIC
    """How masks are drawn; all but the default are the paper's ablations."""
    noise_distribution: NoiseDistribution = NoiseDistribution.UNIFORM
    """What noise is drawn from; clients that know only uniform noise are left out of rounds with another."""

    def __post_init__(self) -> None:
        check_fields(self)

    def build(self, descent: Descent, *, sensitivity: bool = False) -> "MaskedNoiseUplink":
        """Return the uplink of devices that train with this descent, and may report sensitivities."""
        rule = MaskedNoise(
            descent=descent,
            masks=self.noise_masks,
            bound=self.noise_bound,
            masking=self.noise_masking,
            sensitivity=sensitivity,
            distribution=self.noise_distribution,
        )
        return MaskedNoiseUplink(rule)


@dataclass(frozen=True, slots=True)
class MaskedNoiseUplink:
    """Devices learn which noise to add, and send one bit per weight."""

    local: MaskedNoise

    @property
    def rule(self) -> RuleSettings:
        """The rule `masked_noise`."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but bits of matrices and kernels, and new values of the rest."""
        check_mask_kept(update)
        check_values(self.local, update.mask, update.tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Add the masked noise to what the device was given."""

        def restore(name: str, bits: Bits) -> Dense:
            return add_change(update, name, self.local.change(bits, update.seed, name, update.mask.held.get(name)))

        return _restore_bits(update, restore)


@dataclass(frozen=True, slots=True)
class SampledMaskUplink:
    """Devices learn which random weights to keep, and send one draw."""

    local: SampledMasks

    @property
    def rule(self) -> RuleSettings:
        """The rule `sampled_masks`."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but bits of matrices and kernels, and new values of the rest."""
        check_mask_kept(update)
        check_values(self.local, update.mask, update.tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Return the device's own model: the random weights that it kept."""
        seed, gain = self.local.weight_seed, self.local.weight_gain
        return _restore_bits(
            update, lambda name, bits: Dense(random_weights(update.mask, name, seed, gain) * bits.to_bool())
        )


def _restore_bits(update: ClientUpdate, restore: Callable[[str, Bits], Dense]) -> ClientUpdate:
    """Return an update with the new values that its bits stand for; everything else stays as it came."""
    tensors: dict[str, Payload] = {
        name: restore(name, payload) if isinstance(payload, Bits) else payload
        for name, payload in update.tensors.items()
    }
    return replace(update, tensors=tensors)
