"""Rule `ordered_dropout`: every step trains the leading channels of another width. FjORD on the device.

Horvath et al., "FjORD: Fair and Accurate Federated Learning under heterogeneous targets with Ordered Dropout", NeurIPS
2021, Algorithm 1. For each batch the device draws one of the levels p up to its own, all with the same probability, and
takes a step of gradient descent on the submodel of the first p of each group's channels. So the first channels learn
most often, and any leading part of the model works by itself.

What the paper leaves open, and what is done here:
- Entries outside the drawn submodel have gradient zero in that step. Momentum, weight decay and the proximal term act
  on the whole submodel of the device in every step, as they do in PyTorch on a parameter of which a slice was used.
- A level is rounded to a width that the norms of a group allow (`kept_width`); the paper rounds up.
- The device's own submodel is drawn too if it is none of the levels, or its widest channels would never be trained.
- All widths share one norm. If norms keep running statistics, a step updates those of the drawn channels; the authors'
  code has statistics for every width. Norms without them need no such thing.
- The paper's self-distillation, in which the widest submodel teaches the drawn one, is not here: it needs a loss of two
  outputs, and the training graph has a loss of one.

Randomness: the level of a step is the word `bits(derive(seed, "width"), step)`, modulo the number of levels.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from edgefl.local_rules.descent import DescentRule, train
from edgefl.local_rules.rule import Batch, State, StepResult, TrainingInput, TrainStep, Update
from edgefl.local_rules.submodel_channels import narrow, positions_within, without_channels
from edgefl.masks import Array, Mask, Weights, kept_width
from edgefl.noise import bits, derive
from edgefl.values import FieldError
from edgefl.wire import Dense

__all__ = ["OrderedDropout", "parse_levels", "nested_submodels"]


def parse_levels(text: str) -> tuple[float, ...]:
    """Return the fractions of a width that a text lists, such as '1, 0.5, 0.25', the largest first."""
    try:
        levels = tuple(sorted({float(level) for level in text.split(",")}, reverse=True))
    except ValueError:
        levels = (0.0,)
    if not all(0 < level <= 1 for level in levels):
        raise FieldError(
            f"must be a list of fractions above 0 and up to 1, got {text[:60]!r}",
            fix="Write for example '1, 0.5, 0.25'",
            path=("levels",),
        )
    return levels


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedDropout(DescentRule):
    """Gradient descent on leading channels of random width."""

    name: ClassVar[str] = "ordered_dropout"
    levels: str = "1, 0.8, 0.6, 0.4, 0.2"
    """Widths that a step may train, as fractions of the whole model's; those within the device's submodel are drawn
    from."""

    def __post_init__(self) -> None:
        DescentRule.__post_init__(self)
        parse_levels(self.levels)

    def step(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> StepResult:
        """Draw a width, and move everything down the gradient of that submodel's loss."""
        choices = nested_submodels(state.mask, parse_levels(self.levels))
        word = int(bits(derive(inputs.seed, "width"), state.steps, 1)[0])
        drawn = choices[word % len(choices)]
        within = run if drawn is state.mask else _NestedStep(state.mask, drawn, run)
        return train(self.descent, inputs, state, batch, within)

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Send the new values of the whole submodel."""
        tensors = {name: Dense(state.weights[name]) for name in state.mask.trained_tensors}
        metrics = {"learning_rate": self.descent.last_rate(inputs, state)}
        return Update(tensors, state.weights, state.mask, metrics)


@lru_cache(maxsize=8)
def nested_submodels(mask: Mask, levels: tuple[float, ...]) -> tuple[Mask, ...]:
    """Return the submodels that a step may train: the first channels of a submodel at every level within it."""
    found = []
    for level in levels:
        widths = {group.name: kept_width(group, level) for group in mask.graph.groups}
        if widths == mask.widths:
            found.append(mask)
        elif all(width <= mask.widths[name] for name, width in widths.items()):
            found.append(without_channels(mask, {name: mask.kept[name][:width] for name, width in widths.items()}))
    return tuple(found) if mask in found else (mask, *found)


@dataclass(frozen=True, slots=True, eq=False)
class _NestedStep:
    """A training step of a nested submodel, as a step of the one that contains it: entries outside have no gradient."""

    whole: Mask
    drawn: Mask
    run: TrainStep

    def __call__(self, weights: Weights, batch: Batch) -> StepResult:
        result = self.run(narrow(self.whole, self.drawn, weights), batch)
        gradients = {
            name: self._placed(name, gradient, np.zeros(self.whole.shapes[name], gradient.dtype))
            for name, gradient in result.gradients.items()
        }
        statistics = {name: self._placed(name, new, weights[name].copy()) for name, new in result.statistics.items()}
        return StepResult(result.loss, result.correct, gradients, statistics)

    def _placed(self, name: str, values: Array, into: Array) -> Array:
        """Write the entries of the nested submodel's tensor to their places in the outer one."""
        into[positions_within(self.whole, self.drawn, name)] = values
        return into
