"""A device as the freezing planner sees it: its id, its amount of data, its budget."""

from dataclasses import dataclass

from edgefl.errors import SchemaError
from edgefl.model_graph import Cost
from edgefl.planning.cost_model import predict
from edgefl.values import Budget, DeviceProfile

__all__ = ["FreezingDevice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezingDevice:
    """One device of the fleet.

    The trainable parameters of its budget are those of the body, without the head. Seconds, bytes and joules need a
    profile to be predicted from. Limits that freezing does not affect (kept fraction, density) are ignored.
    """

    device_id: str
    budget: Budget
    samples: int = 1
    """The number of training samples: its weight in averages."""
    profile: DeviceProfile | None = None
    batch: int = 32
    steps: int = 1
    """The number of training steps in a round."""

    def __post_init__(self) -> None:
        if self.samples < 1 or self.batch < 1 or self.steps < 1:
            raise SchemaError(
                f"device {self.device_id!r} has {self.samples} samples, batches of {self.batch}, {self.steps} steps",
                fix="Give whole numbers of 1 or more; leave out a device without data.",
            )
        if self.profile is None and self.is_timed:
            raise SchemaError(
                f"device {self.device_id!r} has a limit of seconds, bytes or joules, but no profile",
                fix="Give the profile that its rounds are predicted from, or limit trainable parameters alone.",
            )

    @property
    def is_timed(self) -> bool:
        """Whether anything but the number of trainable parameters is limited."""
        limits = (self.budget.round_seconds, self.budget.peak_bytes, self.budget.joules)
        return any(limit is not None for limit in limits)

    def use(self, cost: Cost) -> Budget | None:
        """Return what a round with a submodel of this cost takes, or None without a profile."""
        if self.profile is None:
            return None
        return predict(self.profile, cost, batch=self.batch, steps=self.steps)

    def fits(self, cost: Cost) -> bool:
        """Return whether a round stays within the budget."""
        use = self.use(cost)
        return not self.budget.exceeded_by(use or Budget(trainable_parameters=cost.trained_parameters))
