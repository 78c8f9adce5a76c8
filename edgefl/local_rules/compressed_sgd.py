"""Rule `compressed_sgd`: train as usual, then compress the update. The baselines of FedMRN (its section 5.1.3).

The update of a matrix or kernel, that is what training added to it, is compressed; norms, biases and running statistics
are sent in full, as new values. `CompressedSgd.expected`, `check` and `expand` are the coordinator's side.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

from edgefl.local_rules.compression import (
    Compressor,
    Drive,
    Eden,
    RandomSubsample,
    ScaledSign,
    SignScale,
    StochasticSign,
    TernGrad,
    TopK,
)
from edgefl.local_rules.compression.compressor import FloatArray
from edgefl.local_rules.descent import DescentRule, NotNegative, weight_tensors
from edgefl.local_rules.rule import Batch, State, TrainingInput, TrainStep, Update
from edgefl.local_rules.sent_tensors import new_values
from edgefl.masks import Mask
from edgefl.values import Dimension, Quantity
from edgefl.wire import Dense, Expected, Payload

__all__ = ["CompressedSgd", "Compression"]

Share = Annotated[float, Quantity(Dimension.SHARE, "a share above 0 and at most 1", "0.03", low=1e-9, high=1)]


class Compression(StrEnum):
    """The compressors."""

    STOCHASTIC_SIGN = "stochastic_sign"
    SCALED_SIGN = "scaled_sign"
    TERNGRAD = "terngrad"
    TOP_K = "top_k"
    DRIVE = "drive"
    EDEN = "eden"
    RANDOM_SUBSAMPLE = "random_subsample"


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedSgd(DescentRule):
    """Gradient descent whose update is compressed at the end."""

    name: ClassVar[str] = "compressed_sgd"
    compressor: Compression = Compression.EDEN
    sign_scale: SignScale = SignScale.MAXIMUM
    """The scale of stochastic signs."""
    terngrad_clip: NotNegative = 2.5
    """TernGrad's clipping, in standard deviations; 0 for none."""
    kept: Share = 0.03
    """The share of entries that Top-k and random subsampling send."""
    unbiased: bool = True
    """Whether random subsampling scales up what it sends to make up for what it does not."""

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Compress what training added."""
        compressed = set(weight_tensors(state.mask))
        compressor = self.build()
        tensors: dict[str, Payload] = {}
        for name in state.mask.trained_tensors:
            if name in compressed:
                tensors |= compressor.compress(name, state.weights[name] - inputs.weights[name], inputs.seed)
            else:
                tensors[name] = Dense(state.weights[name])
        return Update(tensors, state.weights, state.mask)

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send the compressor's payloads of matrices and kernels, and new values of the rest."""
        return new_values(mask) | self.expected(mask)

    def expected(self, mask: Mask) -> dict[str, Expected]:
        """Return the expected forms of a submodel's compressed payloads, by name."""
        compressor = self.build()
        found: dict[str, Expected] = {}
        for name in weight_tensors(mask):
            found |= compressor.expected(name, mask.shapes[name])
        return found

    def check(self, mask: Mask, payloads: Mapping[str, Payload]) -> None:
        """Refuse compressed payloads, of the expected forms, that no compressor produces."""
        compressor = self.build()
        for name in weight_tensors(mask):
            compressor.check(name, payloads, mask.shapes[name])

    def expand(self, mask: Mask, payloads: Mapping[str, Payload], seed: int) -> dict[str, FloatArray]:
        """Return the updates that compressed payloads stand for, by tensor, at the widths of the mask."""
        compressor, updates = self.build(), {}
        for name in weight_tensors(mask):
            update = compressor.expand(name, payloads, mask.shapes[name], seed)
            if name in mask.held:
                update *= mask.held[name]
            updates[name] = update
        return updates

    def build(self) -> Compressor:
        """Return the compressor with its settings."""
        match self.compressor:
            case Compression.STOCHASTIC_SIGN:
                return StochasticSign(self.sign_scale)
            case Compression.SCALED_SIGN:
                return ScaledSign()
            case Compression.TERNGRAD:
                return TernGrad(self.terngrad_clip)
            case Compression.TOP_K:
                return TopK(self.kept)
            case Compression.DRIVE:
                return Drive()
            case Compression.EDEN:
                return Eden()
            case Compression.RANDOM_SUBSAMPLE:
                return RandomSubsample(self.kept, self.unbiased)
