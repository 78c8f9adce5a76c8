"""What becomes less for a device that cannot train the whole model for a whole round in time: a setting of strategies.

    width    its submodel: narrower, by `widths.py` and `freezing.py`
    batch    its batches: it takes as many steps as others on the whole model, with fewer samples in each
    steps    its steps: it trains the whole model on full batches, for fewer of them

The last two are plain answers to unequal devices, which methods of submodels have to beat. A device that can do none
within its budget, with two samples a batch or in one step, gets what `width` would give it; so does one whose engine
runs compiled programs, of which each has its own batch size.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from edgefl.masks import full_mask
from edgefl.strategies.round_estimate import RoundEstimate, largest_fitting
from edgefl.values import LocalWork, check_fields

__all__ = ["FitBy", "LocalWorkChoice"]

_SMALLEST_BATCH = 2
"""Batch norm cannot standardise a single sample."""


class FitBy(StrEnum):
    """What is made smaller until a round fits a device's budget."""

    WIDTH = "width"
    BATCH = "batch"
    STEPS = "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWorkChoice:
    """How much work each device gets."""

    fit_by: FitBy = FitBy.WIDTH

    def __post_init__(self) -> None:
        check_fields(self)

    def fitted(self, estimates: Mapping[str, RoundEstimate]) -> dict[str, RoundEstimate]:
        """Return the estimates with the work of each device."""
        if self.fit_by is FitBy.WIDTH:
            return dict(estimates)
        return {device: self._fitted(estimate) for device, estimate in estimates.items()}

    def _fitted(self, estimate: RoundEstimate) -> RoundEstimate:
        whole = full_mask(estimate.graph)
        if estimate.on_rungs or estimate.can_train(whole):
            return estimate
        least, most = (_SMALLEST_BATCH, estimate.work.batch_size) if self.fit_by is FitBy.BATCH else (1, estimate.steps)
        found = largest_fitting(least, most, lambda amount: self._with(estimate, amount).can_train(whole))
        return estimate if found is None else self._with(estimate, found)

    def _with(self, estimate: RoundEstimate, amount: int) -> RoundEstimate:
        """Return the estimate with batches of this size, or this many steps."""
        if self.fit_by is FitBy.STEPS:
            return replace(estimate, work=replace(estimate.work, most_steps=amount))
        steps = estimate.steps
        per_epoch = max(estimate.samples // amount, 1)  # as many epochs as the steps need, and no more
        work = LocalWork(epochs=-(-steps // per_epoch), batch_size=amount, most_steps=steps)
        return replace(estimate, work=work)
