"""What a simulated federation is told, beside its model, its devices and its strategy."""

from dataclasses import dataclass, field

from edgefl.values import Count, Fraction, LocalWork, PositiveCount, Seconds, Seed, check_fields

__all__ = ["FederationSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationSettings:
    """How long a federation goes on, and how much it asks of devices."""

    rounds: PositiveCount = 10
    per_round: PositiveCount = 10
    """Devices that are asked in a round."""
    seed: Seed = 0
    """The source of all chance."""
    work: LocalWork = field(default_factory=LocalWork)
    deadline: Seconds = 600.0
    """Seconds that a device has for a round; its part of the model is planned for a share of them."""
    deadline_share: Fraction = 0.5
    evaluate_every: Count = 1
    """Rounds between two evaluations of the global model; 0 evaluates the last one only."""

    def __post_init__(self) -> None:
        check_fields(self)

    def evaluates(self, number: int) -> bool:
        """Return whether the model is evaluated after the round of this number."""
        last = number + 1 == self.rounds
        return last or (self.evaluate_every > 0 and (number + 1) % self.evaluate_every == 0)
