"""The widest uniform submodel that fits: one fraction for every layer.

HeteroFL's submodels look like this, `edgefl export` offers it to a single device, and better planners are compared with
it.
"""

from collections.abc import Callable, Collection, MutableMapping

from edgefl.errors import MaskError
from edgefl.masks import Mask, kept_width
from edgefl.model_graph import Cost, ModelGraph, cost_of

__all__ = ["narrowest_widths", "widest"]

_STEPS = 512
"""The number of steps in which fractions are tried."""


def widest(
    graph: ModelGraph,
    fits: Callable[[Cost], bool],
    *,
    multiple: int = 8,
    trained: Collection[str] | None = None,
    known: MutableMapping[int, Cost] | None = None,
) -> Mask:
    """Return the leading channels of the largest fraction whose cost fits; `trained` None trains every layer.

    `fits` must not accept a submodel and reject a narrower one. Widths are multiples of `multiple` where a layer is
    wide enough. `known` caches costs: calls that differ only in `fits` may share it, so that a plan for many devices
    counts each submodel once.
    """
    costs = {} if known is None else known

    def fitting(step: int) -> bool:
        if step not in costs:
            costs[step] = cost_of(graph, _widths(graph, step, multiple), trained)
        return fits(costs[step])

    if not fitting(1):
        raise MaskError(
            f"not even the narrowest submodel of {graph.name!r} fits",
            fix="Allow more time or memory, freeze layers, or choose a smaller model.",
        )
    low, high = 1, _STEPS + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fitting(middle) else (low, middle)
    kept = {name: range(width) for name, width in _widths(graph, low, multiple).items()}
    return Mask.of(graph, trained=trained, kept=kept)


def narrowest_widths(graph: ModelGraph, *, multiple: int = 8) -> dict[str, int]:
    """Return the widths of the narrowest submodel that `widest` tries."""
    return _widths(graph, 1, multiple)


def _widths(graph: ModelGraph, step: int, multiple: int) -> dict[str, int]:
    return {group.name: kept_width(group, step / _STEPS, multiple=multiple) for group in graph.groups}
