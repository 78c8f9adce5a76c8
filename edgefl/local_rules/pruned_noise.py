"""Rule `pruned_noise`: Hermes on the device with FedMRN's uplink.

Before it trains, the device loses channels by `channel_pruning`'s test and choice. Within the remaining submodel it
trains masked noise, as `masked_noise` does with a submodel of that size: noise and draws are those of the new widths,
so the coordinator rebuilds them from the seed and the mask that comes with the bits.

The two meet in one place. Hermes' penalty (its Eq. 3) is part of the loss, so its gradient is added to that of the
forward pass, at the weights of the forward pass, and moves the update like any other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from edgefl.local_rules.channel_pruning import ChannelPruning, PruningScope, remember_accuracy
from edgefl.local_rules.descent import DescentRule, Positive, weight_tensors
from edgefl.local_rules.masked_noise import MaskedNoise, Masking, MaskKind, NoiseDistribution
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.local_rules.sent_tensors import bits_and_values
from edgefl.local_rules.submodel_channels import narrow
from edgefl.masks import Mask, Weights
from edgefl.values import Fraction, PositiveCount, Ratio
from edgefl.wire import Expected

__all__ = ["PrunedNoise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedNoise(DescentRule):
    """The settings of `channel_pruning` and of `masked_noise`."""

    name: ClassVar[str] = "pruned_noise"
    accuracy_threshold: Fraction = 0.5
    target: Fraction = 0.3
    rate: Fraction = 0.2
    lasso: Ratio = 1e-4
    scope: PruningScope = PruningScope.GROUP
    multiple: PositiveCount = 1
    masks: MaskKind = MaskKind.BINARY
    bound: Positive | None = None
    masking: Masking = Masking.PROGRESSIVE_STOCHASTIC
    distribution: NoiseDistribution = field(default=NoiseDistribution.UNIFORM, metadata={"added": True})

    @classmethod
    def of(cls, pruning: ChannelPruning, noise: MaskedNoise) -> "PrunedNoise":
        """Combine the two rules; the descent is that of the first."""
        return cls(
            descent=pruning.descent,
            accuracy_threshold=pruning.accuracy_threshold,
            target=pruning.target,
            rate=pruning.rate,
            lasso=pruning.lasso,
            scope=pruning.scope,
            multiple=pruning.multiple,
            masks=noise.masks,
            bound=noise.bound,
            masking=noise.masking,
            distribution=noise.distribution,
        )

    @property
    def pruning(self) -> ChannelPruning:
        """What happens before training."""
        return ChannelPruning(
            descent=self.descent,
            accuracy_threshold=self.accuracy_threshold,
            target=self.target,
            rate=self.rate,
            lasso=self.lasso,
            scope=self.scope,
            multiple=self.multiple,
        )

    @property
    def noise(self) -> MaskedNoise:
        """How the remaining submodel is trained."""
        return MaskedNoise(
            descent=self.descent,
            masks=self.masks,
            bound=self.bound,
            masking=self.masking,
            distribution=self.distribution,
        )

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send bits of matrices and kernels, and new values of the rest."""
        return bits_and_values(mask, weight_tensors(mask))

    def begin(self, inputs: TrainingInput) -> State:
        """Prune if the submodel is accurate and large enough, and generate the noise of the rest."""
        mask, accuracy = self.pruning.prune_if_ready(inputs)
        return remember_accuracy(self.noise.begin(_left(inputs, mask)), accuracy)

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Take a step with masked noise down the gradient of Eq. 3."""
        pruning, mask = self.pruning, state.mask

        def penalised(weights: Weights, batch: Batch) -> StepResult:
            result = run(weights, batch)
            return replace(result, gradients=pruning.penalised_gradients(mask, weights, result.gradients))

        # Without a proximal term, the other tensors of the submodel do not matter in a step.
        names = None if self.descent.proximal else weight_tensors(mask)
        return self.noise.step(_left(inputs, mask, names), state, batch, penalised)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Draw the final bits at the widths of the new mask, and return it with them."""
        update = self.noise.finish(_left(inputs, state.mask), state, batch, run)
        metrics = self.pruning.metrics(inputs, state, update.weights)
        return replace(update, metrics={**metrics, **update.metrics})


def _left(inputs: TrainingInput, mask: Mask, names: Sequence[str] | None = None) -> TrainingInput:
    """Return the inputs as if they had come without the pruned channels, with all tensors or the named ones."""
    if mask.widths == inputs.mask.widths:
        return inputs
    chosen = inputs.weights if names is None else {name: inputs.weights[name] for name in names}
    return replace(inputs, mask=mask, weights=narrow(inputs.mask, mask, chosen))
