"""What a planner hands back: a plan, and what is known about how good it is."""

from dataclasses import dataclass

from edgefl.planning.freezing.candidate_sets import Integers

__all__ = ["CandidatePlan"]


@dataclass(frozen=True, slots=True, eq=False)
class CandidatePlan:
    """A plan; bias and bound are in units of d."""

    chosen: Integers
    """The row of the pool that each device trains."""
    bias: float
    bound: float
    """No plan that obeys the rules has a bias below this."""
    tied: bool = False
    """Whether it is proven that no plan of the same bias leaves less unused."""
