"""What the system asks programs to spare: a metered network, a battery.

    metered network   NetworkManager's property `Metered` of the connection in use, by `busctl` of systemd
    battery saver     the platform profile of laptops; 'low-power' is what desktops set to save battery

Other systems have other places: an Android app asks ConnectivityManager and PowerManager.
"""

import re
from pathlib import Path

from device_runtime.telemetry.sysfs import ROOT, read_text
from device_runtime.telemetry.system_commands import Command, run

__all__ = ["battery_saver", "metered"]

_METERED = (
    "busctl",
    "--system",
    "get-property",
    "org.freedesktop.NetworkManager",
    "/org/freedesktop/NetworkManager",
    "org.freedesktop.NetworkManager",
    "Metered",
)
_NM_METERED = {1: True, 2: False, 3: True, 4: False}
"""NMMetered: 1 yes, 2 no, 3 and 4 the same by a guess, such as for a phone's hotspot; 0 is not known."""


def metered(run: Command = run) -> bool | None:
    """Return whether the network in use is metered, or None where the system does not say."""
    answer = re.fullmatch(r"u (\d+)\s*", run(_METERED) or "")
    return None if answer is None else _NM_METERED.get(int(answer[1]))


def battery_saver(root: Path = ROOT) -> bool | None:
    """Return whether the system saves battery, or None where it does not say."""
    profile = read_text(root / "sys/firmware/acpi/platform_profile")
    return None if not profile else profile == "low-power"
