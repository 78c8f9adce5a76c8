"""The sensitivity of a device's loss to each channel, by its own data: what a coordinator prunes by.

    s = sum over the training steps of (w * g)^2            for every weight w with the gradient g

is the first-order estimate of what removing a weight would do to the loss (Molchanov et al., "Importance Estimation for
Neural Network Pruning", CVPR 2019), and the sum over a channel's weights that of removing the channel. A device knows
no channels: it reports sums by index along an axis, and the coordinator adds these up over the spans of a group.

Rules with the setting `sensitivity` let `observed` look at every step, and add `reported` to their update. The
arithmetic is specified for other clients in docs/rules.md. Reports come from strangers: the coordinator calls
`check_reported`.
"""

import math
from collections.abc import Mapping

import numpy as np

from edgefl.errors import WireFormatError
from edgefl.local_rules.rule import Batch, State, StepResult, TrainStep, trained_parameters
from edgefl.local_rules.submodel_channels import Magnitude, channel_of_index, prunable_groups
from edgefl.local_rules.summation import sum_by_bin
from edgefl.masks import Mask, Weights
from edgefl.model_graph.elements import Dtype
from edgefl.wire import Dense, Expected, Payload

__all__ = [
    "LARGEST_SUM",
    "channel_sensitivities",
    "check_reported",
    "is_report",
    "observed",
    "report_forms",
    "report_name",
    "reported",
]

LARGEST_SUM = 1e18
"""No sum grows beyond this, so that every finite training has a finite report."""
_PREFIX = "sensitivity/"
_BLOCK = 1 << 14
"""The number of entries per block: they and their scratch space fit a small processor's cache."""


def report_name(tensor: str, axis: int) -> str:
    """Return the name of the payload with the sums along an axis of a tensor."""
    return f"{_PREFIX}{axis}/{tensor}"


def is_report(mask: Mask, name: str) -> bool:
    """Return whether a payload is a report of sensitivities, and not a tensor of the model."""
    return name.startswith(_PREFIX) and name not in mask.graph.tensor


def report_forms(mask: Mask) -> dict[str, Expected]:
    """Return the forms of the report of a submodel, by name."""
    return {
        report_name(tensor, axis): Expected((mask.shapes[tensor][axis],), Dense.codec, Dtype.FLOAT32.value)
        for tensor, axis in _axes(mask)
    }


def observed(run: TrainStep, state: State) -> TrainStep:
    """Return the training step, which then also adds to the sensitivities of the state."""
    tensors = list(dict.fromkeys(tensor for tensor, _ in _axes(state.mask)))

    def step(weights: Weights, batch: Batch) -> StepResult:
        result = run(weights, batch)
        for name in tensors:
            if name in result.gradients:
                _add_squares(state, name, weights, result.gradients)
        return result

    return step


def reported(state: State) -> dict[str, Payload]:
    """Return the sums along every axis that has channels, by name."""
    found: dict[str, Payload] = {}
    for tensor, axis in _axes(state.mask):
        sums = np.zeros(state.mask.shapes[tensor][axis])
        squares = state.memory.get(_key(tensor))
        if squares is not None:
            sum_by_bin(squares, axis, np.arange(sums.size), sums)
        found[report_name(tensor, axis)] = Dense(np.minimum(sums, LARGEST_SUM).astype(np.float32))
    return found


def check_reported(mask: Mask, tensors: Mapping[str, Payload]) -> None:
    """Refuse sums that are not sums of squares. Names, forms and size were checked with all other payloads."""
    for name in report_forms(mask):
        payload = tensors[name]
        if isinstance(payload, Dense) and not bool(np.all(payload.array >= 0)):
            raise WireFormatError(
                f"the report {name!r} has a negative sum of squares", fix="Send sums of (weight x gradient)^2."
            )


def channel_sensitivities(mask: Mask, tensors: Mapping[str, Payload]) -> dict[str, Magnitude]:
    """Return the sensitivity of each kept channel, for every group of which at least one tensor was trained."""
    known, found = set(_axes(mask)), dict[str, Magnitude]()
    for group in prunable_groups(mask):
        spans = [span for span in group.spans if (span.tensor, span.axis) in known]
        if not spans:
            continue
        total = np.zeros(mask.widths[group.name])
        for span in spans:
            payload = tensors[report_name(span.tensor, span.axis)]
            if isinstance(payload, Dense):
                sum_by_bin(payload.array, 0, channel_of_index(mask, group, span), total)
        found[group.name] = total
    return found


def _axes(mask: Mask) -> tuple[tuple[str, int], ...]:
    """Return the trained tensors and those of their axes that have channels which can be cut, in the model's order."""
    spans = {(span.tensor, span.axis) for group in prunable_groups(mask) for span in group.spans}
    return tuple(
        (name, axis)
        for name in trained_parameters(mask)
        if mask.graph.tensor[name].dtype is Dtype.FLOAT32
        for axis in range(len(mask.graph.tensor[name].shape))
        if (name, axis) in spans and report_name(name, axis) not in mask.graph.tensor
    )


def _add_squares(state: State, name: str, weights: Weights, gradients: Weights) -> None:
    """Add (w * g)^2 of every entry, in float32, block by block; a checkpoint holds finite sums only."""
    key, shape = _key(name), weights[name].shape
    if key not in state.memory:
        state.memory[key] = np.zeros(shape, np.float32)
    sums, w, g = (array.reshape(-1) for array in (state.memory[key], weights[name], gradients[name]))
    scratch = np.empty(min(math.prod(shape), _BLOCK), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, sums.size, _BLOCK):
            here = slice(begin, begin + _BLOCK)
            product = np.multiply(w[here], g[here], out=scratch[: sums.size - begin])
            product *= product
            product += sums[here]
            np.minimum(product, np.float32(LARGEST_SUM), out=sums[here])


def _key(tensor: str) -> str:
    return f"sensitivity:{tensor}"
