"""The uplink of post-training compression: devices train as usual, and send an approximation of what training added.

Devices train by the rule `compressed_sgd`; `edgefl.local_rules.compression` has the compressors and their papers. Here
payloads become new values again: what the device was given, plus the update that they stand for. Matrices and kernels
are compressed; norms, biases and running statistics come as new values.
"""

from dataclasses import dataclass, replace

from edgefl.local_rules import CompressedSgd, Descent
from edgefl.local_rules.compressed_sgd import Compression, Share
from edgefl.local_rules.compression import SignScale
from edgefl.local_rules.descent import NotNegative
from edgefl.strategies.strategy import ClientUpdate
from edgefl.strategies.update_checks import check_mask_kept, check_values
from edgefl.strategies.uplink import add_change, rule_settings
from edgefl.values import RuleSettings, check_fields
from edgefl.wire import Payload

__all__ = ["CompressedUplink", "CompressionSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    """The settings of the compressors; each reads its own."""

    sign_scale: SignScale = SignScale.MAXIMUM
    """The scale of stochastic signs."""
    terngrad_clip: NotNegative = 2.5
    """TernGrad's clipping, in standard deviations; 0 for none."""
    sent_share: Share = 0.03
    """The share of a tensor's entries that Top-k and random subsampling send."""
    subsample_unbiased: bool = True
    """Whether random subsampling scales up what it sends to make up for what it does not."""

    def __post_init__(self) -> None:
        check_fields(self)

    def build(self, descent: Descent, compressor: Compression) -> "CompressedUplink":
        """Return the uplink of devices that train with this descent."""
        rule = CompressedSgd(
            descent=descent,
            compressor=compressor,
            sign_scale=self.sign_scale,
            terngrad_clip=self.terngrad_clip,
            kept=self.sent_share,
            unbiased=self.subsample_unbiased,
        )
        return CompressedUplink(rule)


@dataclass(frozen=True, slots=True)
class CompressedUplink:
    """Devices compress their update at the end."""

    local: CompressedSgd

    @property
    def rule(self) -> RuleSettings:
        """The rule `compressed_sgd`."""
        return rule_settings(self.local)

    def check(self, update: ClientUpdate) -> None:
        """Refuse anything but the compressor's payloads of matrices and kernels, and new values of the rest."""
        mask, tensors = update.mask, update.tensors
        check_mask_kept(update)
        check_values(self.local, mask, tensors, compressed=self.local.expected(mask))
        self.local.check(mask, tensors)

    def values(self, update: ClientUpdate) -> ClientUpdate:
        """Add the update that the payloads stand for to what the device was given."""
        mask = update.mask
        updates = self.local.expand(mask, update.tensors, update.seed)
        tensors: dict[str, Payload] = {}
        for name in mask.trained_tensors:
            if name in updates:
                tensors[name] = add_change(update, name, updates.pop(name))
            else:
                tensors[name] = update.tensors[name]
        return replace(update, tensors=tensors)
