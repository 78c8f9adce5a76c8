"""The first masks of FedSpa: random ones, of a density, that a device can train in time.

Single weights are chosen by ERK (`edgefl.local_rules.erk`) within the widest part of leading channels that fits. Whole
channels are chosen at widths that are about the same share of every group: the largest such share whose parameters are
within the density, then a step more of the narrowest groups as long as that fits. The same seed gives the same mask.
"""

from collections.abc import Callable, Mapping

from edgefl.errors import MaskError
from edgefl.local_rules.channel_regrow import random_kept
from edgefl.local_rules.erk import erk_mask
from edgefl.masks import Mask
from edgefl.model_graph import ChannelGroup, Cost, ModelGraph, cost_of
from edgefl.planning import widest
from edgefl.strategies.round_estimate import RoundEstimate

__all__ = ["filled_widths", "random_channels_of", "random_weights_of"]


def random_weights_of(one: RoundEstimate, density: float, seed: int) -> Mask | None:
    """Return a mask of single weights, or None where the device can have none."""
    try:
        part = widest(one.graph, lambda cost: one.fits(cost, density), known=one.costs)
        return erk_mask(part, density, seed)
    except MaskError:  # no part fits, or one so narrow that its norms and biases alone are too many
        return None


def random_channels_of(
    one: RoundEstimate, enough: Callable[[Cost], bool], widths: Mapping[str, int], seed: int
) -> Mask | None:
    """Return a mask of whole channels, of the given widths or what fits the device; None where nothing does.

    `enough` says which parts are sparse enough, and `widths` are those of the largest.
    """
    graph = one.graph
    if not one.fits(cost_of(graph, widths)):
        try:
            widths = filled_widths(graph, lambda cost: enough(cost) and one.fits(cost))
        except MaskError:
            return None
    return Mask.of(graph, kept={group.name: random_kept(group, widths[group.name], seed) for group in _cut(graph)})


def filled_widths(graph: ModelGraph, fits: Callable[[Cost], bool]) -> Mapping[str, int]:
    """Return widths that fit and to which nothing can be added; a `MaskError` says that nothing fits."""
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
