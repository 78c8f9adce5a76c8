"""The power supplies that Linux shows: batteries, mains, USB; and whether the device is plugged in.

A supply whose scope is 'Device' powers something else, such as a wireless mouse, and is always ignored.
"""

from pathlib import Path

from device_runtime.telemetry.sysfs import ROOT, find_paths, read_int, read_text

__all__ = ["batteries", "is_discharging", "plugged"]

_EXTERNAL = ("Mains", "USB", "Wireless")  # USB_PD, USB_C and the like start with USB


def batteries(root: Path = ROOT) -> list[Path]:
    """Return the folders of the batteries that power this device."""
    return [folder for folder in _supplies(root) if read_text(folder / "type") == "Battery"]


def is_discharging(battery: Path) -> bool:
    """Return whether this battery powers the device now. A battery that is full or idle powers nothing."""
    return read_text(battery / "status") == "Discharging"


def plugged(root: Path = ROOT) -> bool | None:
    """Return whether the device is on external power, or None where the system does not say."""
    supplies = [folder for folder in _supplies(root) if (read_text(folder / "type") or "").startswith(_EXTERNAL)]
    online = [number for folder in supplies if (number := read_int(folder / "online")) is not None]
    if any(online):
        return True
    states = [read_text(battery / "status") for battery in batteries(root)]
    if "Discharging" in states:
        return False
    if "Charging" in states or "Full" in states:
        return True
    # A running device without a battery is powered by something that the system does not show.
    return False if online and states else None


def _supplies(root: Path) -> list[Path]:
    return [
        folder for folder in find_paths(root, "sys/class/power_supply/*") if read_text(folder / "scope") != "Device"
    ]
