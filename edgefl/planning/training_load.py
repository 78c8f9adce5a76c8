"""What a local rule takes beyond one run of the engine a step: further runs, and copies of the weights."""

from dataclasses import dataclass

__all__ = ["TrainingLoad"]


@dataclass(frozen=True, slots=True)
class TrainingLoad:
    """The engine's runs and the memory of a rule, in multiples of plain gradient descent."""

    runs: int = 1
    """How often the engine runs in `per` steps: twice a step for Ditto, which trains two models."""
    per: int = 1
    """The number of steps that belong together, and are completed at the end of a round."""
    copies: int = 0
    """How many arrays of the submodel's size the device holds beside the weights that it trains."""

    def engine_runs(self, steps: int) -> int:
        """Return how often the engine runs in so many steps."""
        return -(-steps // self.per) * self.runs
