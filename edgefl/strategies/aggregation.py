"""How updates become one model: the settings that strategies share, and the choice between aggregation methods.

`running_mean` has the maths of running sums, `order_statistics` that of sorting. Every strategy whose devices send new
values has an `AggregationSettings` among its settings.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from edgefl.local_rules.descent import Positive
from edgefl.masks import Weights
from edgefl.strategies.order_statistics import aggregate_by_order, median, trimmed_mean
from edgefl.strategies.running_mean import Overlap, RunningMean
from edgefl.strategies.sample_counts import MOST_TIMES_MEDIAN, claims_of, sample_cap
from edgefl.strategies.strategy import ClientUpdate, ClientUpdates, Model
from edgefl.strategies.update_checks import movement
from edgefl.values import Bytes, Dimension, FieldError, Fraction, Quantity, check_fields

__all__ = ["AggregationMethod", "AggregationSettings", "UpdateWeighting", "aggregate", "most_counted", "update_weight"]

MostTimes = Annotated[float, Quantity(Dimension.NUMBER, "a number of 1 or more", "10", low=1)]


class AggregationMethod(StrEnum):
    """How the values that devices send for a coordinate are aggregated."""

    MEAN = "mean"
    CLIPPED = "clipped"
    """The mean of all updates with equal weights, after every change whose norm is above `clip_update_norm` is scaled
    down to it."""
    TRIMMED = "trimmed"
    """The mean without the share `trim` of the values at each end."""
    MEDIAN = "median"


class UpdateWeighting(StrEnum):
    """The weight of an update in a mean. Old updates count less in both."""

    SAMPLES = "samples"
    """The number of samples that the device reports, up to a multiple of the median: FedAvg."""
    EQUAL = "equal"
    """One: no device can increase its own weight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregationSettings:
    """How updates become one model."""

    average: AggregationMethod = AggregationMethod.MEAN
    overlap: Overlap = Overlap.HOLDERS
    """What a mean is divided by; a trimmed mean and a median are always over the holders."""
    weighing: UpdateWeighting = UpdateWeighting.SAMPLES
    """The weights of a mean; in every other average all updates count equally."""
    most_times_median: MostTimes = MOST_TIMES_MEDIAN
    """How many times the median of the round's numbers of samples an update may count for."""
    clip_update_norm: Positive | None = field(default=None, metadata={"absent": "not clipped"})
    trim: Fraction = 0.1
    sorting_memory: Bytes = 2**28
    """The memory, in bytes, for the values that a trimmed mean or a median sorts at a time: with more, updates are
    loaded less often."""

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.clip_update_norm is None) == (self.average is AggregationMethod.CLIPPED):
            raise FieldError(
                f"is {self.clip_update_norm}, but the average is {self.average.value!r}",
                fix="With average = 'clipped' write for example 10; with another average, leave it out",
                path=("clip_update_norm",),
            )
        if self.trim >= 0.5:
            raise FieldError("must be below 0.5, or no value is left", fix="Write for example 0.1", path=("trim",))


def aggregate(settings: AggregationSettings, model: Model, updates: ClientUpdates) -> Weights:
    """Return the weights of the next model."""
    match settings.average:
        case AggregationMethod.TRIMMED:
            return aggregate_by_order(model, updates, trimmed_mean(settings.trim), settings.sorting_memory)
        case AggregationMethod.MEDIAN:
            return aggregate_by_order(model, updates, median, settings.sorting_memory)
    mean = RunningMean(model, settings.overlap)
    most = most_counted(settings, updates)
    for update in updates:
        mean.add(update, update_weight(settings, update, most), _scale(settings, update))
        del update  # or it would be in memory together with the next one
    return mean.result()


def most_counted(settings: AggregationSettings, updates: ClientUpdates) -> float:
    """Return the most samples that an update of this round counts for."""
    if settings.weighing is UpdateWeighting.EQUAL or settings.average is not AggregationMethod.MEAN:
        return 1
    return sample_cap(claims_of(updates), settings.most_times_median)


def update_weight(settings: AggregationSettings, update: ClientUpdate, most: float) -> float:
    """Return the weight of an update in a mean; `most` is what `most_counted` returns for its round."""
    return update.trust * min(update.result.samples, most)


def _scale(settings: AggregationSettings, update: ClientUpdate) -> float:
    """Return the factor on a change that makes its norm at most the allowed one."""
    if settings.clip_update_norm is None:
        return 1.0
    return settings.clip_update_norm / max(movement(update), settings.clip_update_norm)
