"""Which programs of a ladder to compile, the most useful ones first.

A time limit may leave some out. So all layers of every width come first, then predictions, then the other cuts, for the
first batch size before the others.
"""

from collections.abc import Collection, Sequence

from edgefl.errors import ExportError
from edgefl.planning.rungs import Ladder
from edgefl.values import ProgramSpec

__all__ = ["ladder_specs"]


def ladder_specs(ladder: Ladder, batch_sizes: Sequence[int], cuts: Collection[str] | None = None) -> list[ProgramSpec]:
    """Return the programs of a ladder in the order to compile them; cuts are named by their first blocks."""
    unknown = [name for name in cuts or () if name not in ladder.cuts]
    if unknown:
        raise ExportError(f"no cut of the model begins at {unknown[0]!r}", fix=f"Choose from {', '.join(ladder.cuts)}.")
    chosen = [layers for name, layers in ladder.cuts.items() if cuts is None or name in cuts]
    widths = list(ladder.widths.values())
    found: list[ProgramSpec] = []
    for batch in batch_sizes:
        found += [ladder.training_spec(each, chosen[0], batch) for each in widths]
        found += [ladder.inference_spec(each, batch) for each in widths]
        found += [ladder.training_spec(each, layers, batch) for layers in chosen[1:] for each in widths]
    return found
