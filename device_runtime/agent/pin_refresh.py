"""Keeps the pins of a device current, so that its coordinator can change keys without a visit.

The coordinator tells the pins of its current and of its next key. They are asked for at every start and once a day,
over a connection that was checked against the pins that the device has: only the paired coordinator can change them.
They are also asked for once the coordinator uses another key, so that it may soon change keys again.
"""

from collections.abc import Sequence
from dataclasses import replace

from device_runtime.agent.agent_home import AgentHome
from device_runtime.agent.client import CoordinatorClient, RejectedError
from device_runtime.agent.device_clock import DeviceClock
from device_runtime.agent.transport import UnreachableError
from edgefl.errors import EdgeFLError
from edgefl.pinned_tls import PinnedContext
from edgefl.pins import check_pins

__all__ = ["PinRefresh"]

_DAY = 86_400.0
_AFTER_FAILURE = 600.0
"""Seconds."""


class PinRefresh:
    """The refresh of one device's pins."""

    def __init__(
        self, home: AgentHome, client: CoordinatorClient, context: PinnedContext, clock: DeviceClock | None = None
    ) -> None:
        self._home, self._client, self._context = home, client, context
        self._clock = clock or DeviceClock()
        self._next = float("-inf")
        self._key: str | None = None
        """The key that the coordinator used when it was last asked."""

    def refresh_if_due(self) -> None:
        """Ask for the pins and keep them, unless that was done within a day and with the same key. A failure changes
        nothing but the time of the next try: work goes on."""
        now = self._clock.uptime()
        if now < self._next and self._context.used == self._key:
            return
        self._next = now + _DAY
        try:
            self._adopt(self._client.pins())
        except (UnreachableError, OSError):  # what is asked for next will tell
            self._next = now + _AFTER_FAILURE
        except RejectedError:  # an older coordinator
            pass
        finally:
            self._key = self._context.used

    def _adopt(self, told: Sequence[str]) -> None:
        """Use pins from now on, if they are of use.

        They are not if there are none or too many, or if the key of the connection that they came over is missing: that
        would be a mistake in the coordinator's settings.
        """
        try:
            pins = check_pins(told)
        except EdgeFLError:
            return
        identity = self._home.identity()
        if identity is None or self._context.used not in pins:
            return
        if identity.pins != pins:
            self._home.save_identity(replace(identity, pins=pins))  # first: what is used must be there after a crash
        self._context.pins = frozenset(pins)
