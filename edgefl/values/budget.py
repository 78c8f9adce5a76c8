"""Budget: what a device may spend on one round.

The planner makes it from a `DeviceProfile` and the operator's limits; strategies choose masks that stay within it. The
limits are separate fields because they bind separately: freezing layers saves time and memory but not download,
removing channels saves all three.
"""

from dataclasses import dataclass, field, fields

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.quantities import Bytes, Count, Fraction, Joules, Seconds
from edgefl.values.schema import document

__all__ = ["Budget"]

_NO_LIMIT = {"absent": "no limit"}


@document("budget", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits on one round. None means no limit."""

    trainable_parameters: Count | None = field(default=None, metadata=_NO_LIMIT)
    """Number of parameters that get a gradient."""

    kept_fraction: Fraction | None = field(default=None, metadata=_NO_LIMIT)
    """Fraction of the model's parameters that the submodel keeps, 0 to 1: whole channels are removed."""

    weight_density: Fraction | None = field(default=None, metadata=_NO_LIMIT)
    """Fraction of the kept weights that are held, 0 to 1: single weights are zero."""

    round_seconds: Seconds | None = field(default=None, metadata=_NO_LIMIT)
    """Seconds of one round on the device."""

    peak_bytes: Bytes | None = field(default=None, metadata=_NO_LIMIT)
    """Peak memory of the training process in bytes."""

    joules: Joules | None = field(default=None, metadata=_NO_LIMIT)
    """Energy of one round in joules."""

    def __post_init__(self) -> None:
        check_fields(self)

    def exceeded_by(self, use: "Budget") -> tuple[str, ...]:
        """Return the names of the limits that `use` exceeds, in the order of the fields.

        `use` is what a round takes, in the same fields and units; None means not known, which exceeds nothing. A value
        equal to the limit is within it.
        """
        broken = []
        for limit_field in fields(self):
            limit, used = getattr(self, limit_field.name), getattr(use, limit_field.name)
            if limit is not None and used is not None and used > limit:
                broken.append(limit_field.name)
        return tuple(broken)

    def tightened_by(self, other: "Budget") -> "Budget":
        """Return the budget that satisfies both: the lower of each pair of limits."""
        tightest = {}
        for limit_field in fields(self):
            limits = [getattr(budget, limit_field.name) for budget in (self, other)]
            tightest[limit_field.name] = min((limit for limit in limits if limit is not None), default=None)
        return Budget(**tightest)
