"""Which uplink: the setting that strategies share, and what it chooses between."""

from dataclasses import dataclass
from enum import StrEnum

from edgefl.local_rules import Descent
from edgefl.strategies.uplink import NewValues, Uplink
from edgefl.values import check_fields

__all__ = ["Sent", "UplinkChoice"]


class Sent(StrEnum):
    """What devices send after training."""

    VALUES = "values"
    """The new values of everything that was trained."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UplinkChoice:
    """What devices send, and how it is made smaller."""

    sent: Sent = Sent.VALUES

    def __post_init__(self) -> None:
        check_fields(self)

    def made(self, descent: Descent) -> Uplink:
        """Return the uplink of devices that train in this way."""
        return NewValues(descent)
