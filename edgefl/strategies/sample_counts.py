"""How many samples an update counts for: what its device claims, up to a multiple of the round's median claim.

A number of samples is a claim that nobody can check, and in a mean it is a weight. With no bound, one device that
claims 2^53 samples would be the whole average. Half of the devices of a round, and no fewer, can move a median, so up
to half of them a liar counts for at most `times` honest devices.

The median is over the claims above zero; of an even number it is the lower of the two in the middle, so that of two
devices one cannot vouch for itself. All claims of a round are known when it closes, before the first update is loaded.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from edgefl.strategies.strategy import ClientUpdates

__all__ = ["MOST_TIMES_MEDIAN", "ClaimedSamples", "claims_of", "sample_cap"]

MOST_TIMES_MEDIAN = 10.0
"""The default."""


@runtime_checkable
class ClaimedSamples(Protocol):
    """Updates that know their claims without being loaded."""

    def claimed_samples(self) -> Sequence[int]:
        """Return the number of samples that each update claims, in order."""
        ...


def claims_of(updates: ClientUpdates) -> Sequence[int]:
    """Return the number of samples that each update claims; if necessary, every update is loaded for that."""
    if isinstance(updates, ClaimedSamples):
        return updates.claimed_samples()
    return [update.result.samples for update in updates]


def sample_cap(claims: Iterable[int], times: float) -> float:
    """Return the most samples that one of these claims counts for; infinity if there are none."""
    positive = [claim for claim in claims if claim > 0]
    return times * statistics.median_low(positive) if positive else math.inf
