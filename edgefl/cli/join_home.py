"""Which home `edgefl join` and `edgefl predict` mean: the given one, or that of a federation below ~/.edgefl.

Homes below ~/.edgefl belong to one device, which shares its limits and trains one task at a time. A given home is a
device of its own, so that a machine can play several.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runtime.agent.device_homes import DeviceHomes
    from edgefl.pairing import Pairing

__all__ = ["device_homes", "home_of", "only_home"]


def device_homes() -> "DeviceHomes":
    """Return the homes of this machine's own device."""
    from device_runtime.agent.device_homes import DeviceHomes

    return DeviceHomes(Path("~/.edgefl").expanduser())


def home_of(args: argparse.Namespace, pairing: "Pairing | None") -> tuple[Path, Path | None]:
    """Return the home for a coordinator, or for the only one, and the folder that it shares with others."""
    if args.home is not None:
        return Path(args.home).expanduser(), None
    homes = device_homes()
    found = homes.only() if pairing is None else homes.of(pairing.url, pairing.federation)
    return found or homes.folder, homes.folder


def only_home(args: argparse.Namespace) -> Path:
    """Return the given home, or the only one."""
    return home_of(args, None)[0]
