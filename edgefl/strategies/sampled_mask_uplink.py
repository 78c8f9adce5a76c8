"""The uplink of FedPM: one bit a weight, which says whether a random weight is kept. The strategy is `fedpm.py`."""

from dataclasses import dataclass, replace

from edgefl.local_rules import SampledMasks
from edgefl.local_rules.sampled_masks import random_weights
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.uplink import check_bits, settings_for
from edgefl.values import RuleSettings
from edgefl.wire import Bits, Dense, Payload

__all__ = ["SampledMaskUplink"]


@dataclass(frozen=True, slots=True)
class SampledMaskUplink:
    """Devices learn which random weights to keep, and send one draw."""

    local: SampledMasks

    @property
    def rule(self) -> RuleSettings:
        """Sampled masks."""
        return settings_for(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but bits of matrices and kernels, and new values of the rest."""
        check_bits(update)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Return the device's own model: the random weights that it kept."""
        seed, gain = self.local.weight_seed, self.local.weight_gain
        tensors: dict[str, Payload] = {}
        for name, payload in update.tensors.items():
            if isinstance(payload, Bits):
                tensors[name] = Dense(random_weights(update.mask, name, seed, gain) * payload.to_bool())
            else:
                tensors[name] = payload
        return replace(update, tensors=tensors)
