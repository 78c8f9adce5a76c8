"""Rule `fine_tune`: adapt the global model to the device's data. Nothing is sent.

PerFedMask, Algorithm 1, line 15, after FedBABU: the head, frozen during the federation, is trained at its end, by
default together with the body. `trains` says what that is: the training graph of the plan is cut for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

import numpy as np

from edgefl.errors import MaskError
from edgefl.local_rules.descent import DescentRule, start
from edgefl.local_rules.rule import Batch, State, TrainingInput, TrainStep, Update
from edgefl.masks import Mask, freeze
from edgefl.model_graph import TensorRole
from edgefl.wire import Expected

__all__ = ["FineTune", "HeadTreatment"]

_BEFORE = "accuracy_before"
"""The accuracy on the device's own validation data before the first step."""


class HeadTreatment(StrEnum):
    """What happens to the head, the layers that write the model's output."""

    TRAIN = "train"
    """It is trained if the mask trains it, with everything else that the mask trains."""
    FREEZE = "freeze"
    HEAD_ONLY = "head_only"
    """Everything else is frozen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FineTune(DescentRule):
    """Gradient descent whose result stays on the device."""

    name: ClassVar[str] = "fine_tune"
    head: HeadTreatment = HeadTreatment.TRAIN

    def trains(self, mask: Mask) -> Mask:
        """Return the mask with the head or everything else frozen, as the settings say."""
        if self.head is HeadTreatment.TRAIN:
            return mask
        graph = mask.graph
        heads = {graph.layer_of[tensor.name] for tensor in graph.tensors if tensor.role is TensorRole.HEAD}
        frozen = heads if self.head is HeadTreatment.FREEZE else set(graph.trainable_layers) - heads
        tuned = freeze(mask, frozen)
        if not tuned.trained:
            raise MaskError(
                f"fine-tuning with head {self.head.value!r} leaves no layer to train",
                fix="Choose another setting of 'head', or give a mask that trains the layers to fine-tune.",
            )
        return tuned

    def sends(self, mask: Mask) -> Mapping[str, Expected]:
        """Send nothing."""
        return {}

    def begin(self, inputs: TrainingInput) -> State:
        """Freeze what must not change, and start from the weights as they were sent."""
        state = start(inputs, self.trains(inputs.mask))
        if inputs.accuracy is not None:
            state.memory[_BEFORE] = np.array(inputs.accuracy(inputs.weights))
        return state

    def finish(self, inputs: TrainingInput, state: State, batch: Batch, run: TrainStep) -> Update:
        """Keep everything. The mask is the planned one: freezing was only for this fine-tuning."""
        metrics = {_BEFORE: float(state.memory[_BEFORE])} if _BEFORE in state.memory else {}
        return Update({}, state.weights, inputs.mask, metrics)
