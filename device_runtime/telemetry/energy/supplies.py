"""The power supplies that Linux knows: batteries, mains, USB; and whether the device is plugged in.

A supply whose scope is 'Device' feeds something else, such as a wireless mouse, and is left out everywhere.
"""

from pathlib import Path

from device_runtime.telemetry.system_files import ROOT, found, number_of, text_of

__all__ = ["batteries", "is_discharging", "plugged"]

_EXTERNAL = ("Mains", "USB", "Wireless")  # USB_PD, USB_C and the like are USB too


def batteries(root: Path = ROOT) -> list[Path]:
    """The folders of the batteries that feed this device."""
    return [folder for folder in _supplies(root) if text_of(folder / "type") == "Battery"]


def is_discharging(battery: Path) -> bool:
    """Whether the device lives on this battery now. A battery that is full or idle feeds nothing."""
    return text_of(battery / "status") == "Discharging"


def plugged(root: Path = ROOT) -> bool | None:
    """Whether the device is on external power, or None where the system does not say."""
    supplies = [folder for folder in _supplies(root) if (text_of(folder / "type") or "").startswith(_EXTERNAL)]
    online = [number for folder in supplies if (number := number_of(folder / "online")) is not None]
    if any(online):
        return True
    states = [text_of(battery / "status") for battery in batteries(root)]
    if "Discharging" in states:
        return False
    if "Charging" in states or "Full" in states:
        return True
    # A device without a battery that runs is fed by something that the system does not show.
    return False if online and states else None


def _supplies(root: Path) -> list[Path]:
    return [folder for folder in found(root, "sys/class/power_supply/*") if text_of(folder / "scope") != "Device"]
