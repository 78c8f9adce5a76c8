"""The first masks of FedSpa: random masks of a density that a device can train in time.

Single weights are chosen by ERK (`edgefl.local_rules.erk`) within the widest submodel of leading channels that fits.
Whole channels are chosen at widths that are about the same share of every group: the largest such share whose
parameters are within the density, then a step more of the narrowest groups as long as that fits. The same seed gives
the same mask. On rungs (`round_estimate.py`) both are of the widths of a rung.
"""

from collections.abc import Callable, Mapping

from edgefl.errors import MaskError
from edgefl.local_rules.erk import erk_mask
from edgefl.local_rules.prune_regrow import draw_channels
from edgefl.masks import Mask
from edgefl.model_graph import ChannelGroup, Cost, ModelGraph, cost_of
from edgefl.planning import widest
from edgefl.strategies.round_estimate import RoundEstimate

__all__ = ["filled_widths", "random_channel_mask", "random_weight_mask"]


def random_weight_mask(estimate: RoundEstimate, density: float, seed: int) -> Mask | None:
    """Return a mask of single weights, or None if the device can have none."""
    submodel = estimate.widest(density=density)
    try:
        return None if submodel is None else erk_mask(submodel, density, seed)
    except MaskError:  # one so narrow that its norms and biases alone are too many
        return None


def random_channel_mask(
    estimate: RoundEstimate, enough: Callable[[Cost], bool], widths: Mapping[str, int], seed: int
) -> Mask | None:
    """Return a mask of whole channels, of the given widths or what fits the device; None if nothing does.

    `enough` tells which submodels are sparse enough, and `widths` are those of the largest.
    """
    graph = estimate.graph
    found: Mapping[str, int] | None = widths
    if estimate.on_rungs:
        found = estimate.largest_rung(accept=lambda rung: enough(cost_of(graph, rung)))
    elif not estimate.fits(cost_of(graph, widths)):
        try:
            found = filled_widths(graph, lambda cost: enough(cost) and estimate.fits(cost))
        except MaskError:
            found = None
    if found is None:
        return None
    return Mask.of(graph, kept={group.name: draw_channels(group, found[group.name], seed) for group in _cut(graph)})


def filled_widths(graph: ModelGraph, fits: Callable[[Cost], bool]) -> Mapping[str, int]:
    """Return widths that fit and to which nothing can be added; raise a `MaskError` if nothing fits."""
    widths = dict(widest(graph, fits, multiple=1).widths)
    grown = True
    while grown:
        grown = False
        for group in sorted(_cut(graph), key=lambda group: widths[group.name] / group.width):
            wider = {**widths, group.name: widths[group.name] + group.multiple_of}
            if wider[group.name] <= group.width and fits(cost_of(graph, wider)):
                widths, grown = wider, True
                break
    return widths


def _cut(graph: ModelGraph) -> list[ChannelGroup]:
    return [group for group in graph.groups if group.fixed is None]
