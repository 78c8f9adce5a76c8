"""How much of a model a device can have: the capacities of FedMAP, and the largest that fits a device's budget.

A capacity is judged by the most probable submodel of its size. Drawn ones of the same size may cost a little more or
less, which is for the strategy to look at.
"""

from dataclasses import dataclass, field

from edgefl.errors import MaskError
from edgefl.local_rules.probabilistic_masks import Extraction, Granularity, extract
from edgefl.masks import Mask, Weights
from edgefl.strategies.round_estimate import RoundEstimate
from edgefl.values import FieldError

__all__ = ["ANY", "Submodels", "capacities_of"]

ANY = "any"
_STEPS = 64


def capacities_of(text: str) -> tuple[float, ...]:
    """Read a list of capacities, ascending; 'any' is every one of 64 steps."""
    try:
        found = [n / _STEPS for n in range(1, _STEPS + 1)] if text.strip() == ANY else list(map(float, text.split(",")))
    except ValueError:
        found = []
    if not found or not all(0 < capacity <= 1 for capacity in found):
        raise FieldError(
            f"is a list of fractions above 0 and at most 1, or 'any', got {text[:60]!r}",
            fix="Write for example '1, 0.25, 0.0625'",
            path=("capacities",),
        )
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True, eq=False)
class Submodels:
    """Submodels of one model, by capacity; the most probable ones are made once."""

    whole: Mask
    p: Weights
    granularity: Granularity
    seed: int
    """Decides among equally probable entries, alike for all capacities: so smaller submodels lie within larger ones."""
    made: dict[float, Mask | None] = field(default_factory=dict)

    def top(self, capacity: float) -> Mask | None:
        """Return the most probable submodel; None where the model cannot be made as small."""
        if capacity not in self.made:
            self.made[capacity] = self._top(capacity)
        return self.made[capacity]

    def drawn(self, capacity: float, seed: int, *, max_draws: int) -> Mask:
        """Return a submodel drawn by chance."""
        return extract(
            self.whole,
            self.p,
            capacity,
            seed,
            granularity=self.granularity,
            method=Extraction.SAMPLE,
            max_draws=max_draws,
        )

    def fits(self, round_: RoundEstimate, mask: Mask, capacity: float) -> bool:
        """Say whether a device can train a submodel of a capacity, and may have others of that capacity."""
        if self.granularity is Granularity.WEIGHT:
            return round_.fits(round_.cost(mask), capacity)
        most = round_.participant.budget.kept_fraction
        return (most is None or capacity <= most) and round_.fits(mask.cost)

    def largest(self, round_: RoundEstimate, capacities: tuple[float, ...]) -> float | None:
        """Return the largest capacity whose most probable submodel a device can train."""
        low, high = 0, len(capacities)
        while low < high:  # whoever can train a submodel can train the ones within it
            middle = (low + high) // 2
            mask = self.top(capacities[middle])
            if mask is None or self.fits(round_, mask, capacities[middle]):
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
