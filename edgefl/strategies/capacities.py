"""FedMAP's capacities: how much of a model a device can have, and the largest capacity that fits its budget.

A capacity is evaluated by the most probable submodel of its size. Drawn ones of the same size may cost slightly more or
less; the strategy checks that.
"""

from dataclasses import dataclass, field

from edgefl.errors import MaskError
from edgefl.local_rules.probabilistic_masks import Extraction, Granularity, extract
from edgefl.masks import Mask, Weights
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.values import FieldError

__all__ = ["ANY", "CapacitySubmodels", "parse_capacities"]

ANY = "any"
_STEPS = 64


def parse_capacities(text: str) -> tuple[float, ...]:
    """Parse a list of capacities, ascending; 'any' is each of 64 steps."""
    try:
        found = [n / _STEPS for n in range(1, _STEPS + 1)] if text.strip() == ANY else list(map(float, text.split(",")))
    except ValueError:
        found = []
    if not found or not all(0 < capacity <= 1 for capacity in found):
        raise FieldError(
            f"must be a list of fractions above 0 and at most 1, or 'any', got {text[:60]!r}",
            fix="Write for example '1, 0.25, 0.0625'",
            path=("capacities",),
        )
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True, eq=False)
class CapacitySubmodels:
    """Submodels of one model, by capacity; the most probable ones are cached."""

    whole: Mask
    p: Weights
    granularity: Granularity
    seed: int
    """Breaks ties among equally probable entries, in the same way for all capacities: so smaller submodels lie within
    larger ones."""
    _top_by_capacity: dict[float, Mask | None] = field(default_factory=dict)

    def top(self, capacity: float) -> Mask | None:
        """Return the most probable submodel; None if the model cannot be that small."""
        if capacity not in self._top_by_capacity:
            self._top_by_capacity[capacity] = self._top(capacity)
        return self._top_by_capacity[capacity]

    def draw(self, capacity: float, seed: int, *, max_draws: int) -> Mask:
        """Return a random submodel."""
        return extract(
            self.whole,
            self.p,
            capacity,
            seed,
            granularity=self.granularity,
            method=Extraction.SAMPLE,
            max_draws=max_draws,
        )

    def fits(self, estimate: RoundEstimate, mask: Mask, capacity: float) -> bool:
        """Return whether a device can train a submodel of a capacity, and may have others of that capacity."""
        if self.granularity is Granularity.WEIGHT:
            return estimate.can_train(mask, capacity)
        most = estimate.participant.budget.kept_fraction
        return (most is None or capacity <= most) and estimate.can_train(mask)

    def largest(self, estimate: RoundEstimate, capacities: tuple[float, ...]) -> float | None:
        """Return the largest capacity whose most probable submodel a device can train."""
        low, high = 0, len(capacities)
        while low < high:  # a device that can train a submodel can train the ones within it
            middle = (low + high) // 2
            mask = self.top(capacities[middle])
            if mask is None or self.fits(estimate, mask, capacities[middle]):
                low = middle + 1
            else:
                high = middle
        return capacities[low - 1] if low and self.top(capacities[low - 1]) is not None else None

    def _top(self, capacity: float) -> Mask | None:
        weights = sum(array.size for array in self.p.values())
        if self.granularity is Granularity.WEIGHT and capacity * weights < 1:
            return None
        try:
            return extract(self.whole, self.p, capacity, self.seed, granularity=self.granularity)
        except MaskError:
            return None
