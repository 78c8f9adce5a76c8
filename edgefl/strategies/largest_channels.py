"""The channels of the largest magnitude that fit.

The coordinator chooses by magnitude, as the devices do, when it must choose for them: for a device whose own submodel
has become too large for it, and for a submodel of any size.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping

from edgefl.errors import MaskError
from edgefl.local_rules.channel_pruning import magnitudes
from edgefl.local_rules.channel_removal import Scores, removal_order, remove_channels, without_lowest
from edgefl.masks import Mask, Weights, full_mask, gather
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.strategies.strategy import Model

__all__ = ["largest_channels", "largest_fraction", "largest_trainable", "narrowed"]


def largest_trainable(mask: Mask, weights: Weights, estimate: RoundEstimate, density: float = 1.0) -> Mask | None:
    """Return as much of a mask as a device can train: all of it, or its channels of the largest magnitude.

    On rungs it is cut to the largest rung within it. None if nothing of it can be trained.
    """
    if not estimate.on_rungs:
        return largest_channels(mask, weights, lambda smaller: estimate.can_train(smaller, density))
    if estimate.can_train(mask, density):
        return mask
    widths = estimate.largest_rung(mask.trained, within=mask.widths, density=density)
    return None if widths is None else narrowed(mask, magnitudes(mask, gather(mask, weights)), widths)


def narrowed(mask: Mask, scores: Scores, widths: Mapping[str, int]) -> Mask:
    """Return the mask with these widths, of every group the channels of the highest scores."""
    lost = {name: mask.widths[name] - width for name, width in widths.items() if width < mask.widths[name]}
    return without_lowest(mask, scores, lost)


def largest_channels(mask: Mask, weights: Weights, fits: Callable[[Mask], bool]) -> Mask | None:
    """Return the mask without as few channels as possible, the lowest first, so that it fits; None if none does.

    `weights` are those of the whole model. `fits` must not accept a submodel and reject a smaller one.
    """
    if fits(mask):
        return mask
    scores = magnitudes(mask, gather(mask, weights))
    order = removal_order(mask, scores)
    few = bisect_left(range(len(order) + 1), True, key=lambda steps: fits(remove_channels(mask, scores, order[:steps])))
    return remove_channels(mask, scores, order[:few]) if few <= len(order) else None


def largest_fraction(model: Model, fraction: float) -> Mask:
    """Return the channels of the largest magnitude that are at most this share of a model's parameters."""
    most = fraction * model.graph.parameters
    found = largest_channels(full_mask(model.graph), model.weights, lambda mask: mask.cost.parameters <= most)
    if found is None:
        raise MaskError(
            f"not even the narrowest submodel of {model.graph.name!r} has at most {most:,.0f} parameters",
            fix="Request a larger fraction, or use a model with narrower fixed parts.",
        )
    return found
