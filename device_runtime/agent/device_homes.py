"""The homes of a device: one folder for each federation that it is in, below the device's own.

    ~/.edgefl/federations/10.0.0.5-8443-digits/   a home
    ~/.edgefl/usage.json, profile.json            what all of them share
    ~/.edgefl/identity.json                       a device of an older version: the folder itself is a home

A home is found by its coordinator and federation, so that `edgefl join` with the same address goes on where it was.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from device_runtime.agent.agent_home import AgentHome, Identity
from edgefl.errors import EdgeFLError

__all__ = ["DeviceHomes"]

_FOLDER = "federations"


@dataclass(frozen=True, slots=True)
class DeviceHomes:
    """The homes below a device's folder."""

    folder: Path

    def known(self) -> dict[Path, Identity]:
        """Return every home in which a device has asked to join, the folder itself first."""
        places = [self.folder, *sorted(path for path in (self.folder / _FOLDER).glob("*") if path.is_dir())]
        found = {}
        for place in places:
            if (place / "identity.json").is_file():
                identity = AgentHome(place).identity()
                if identity is not None:
                    found[place] = identity
        return found

    def only(self) -> Path | None:
        """Return the only home; None if there is none. Raise an error if it is not clear which is meant.

        A home that has never joined, perhaps because of a wrong address, does not count beside one that has.
        """
        known = self.known()
        joined = {place: identity for place, identity in known.items() if identity.token is not None}
        return self._one(joined or known, "this device is in several federations")

    def of(self, coordinator: str, federation: str | None) -> Path:
        """Return the home for a federation: the one that it has, or a new one."""
        matching = {
            place: identity
            for place, identity in self.known().items()
            if identity.coordinator == coordinator and (federation is None or identity.federation in (None, federation))
        }
        exact = {place: one for place, one in matching.items() if one.federation == federation}
        found = self._one(exact or matching, f"this device is in several federations of {coordinator}")
        return found or self._new(coordinator, federation)

    def _one(self, homes: dict[Path, Identity], problem: str) -> Path | None:
        if len(homes) > 1:
            named = ", ".join(f"{place} ({one.federation or one.coordinator})" for place, one in homes.items())
            raise EdgeFLError(f"{problem}: {named}", fix="Say which with --home.")
        return next(iter(homes), None)

    def _new(self, coordinator: str, federation: str | None) -> Path:
        at = urlsplit(coordinator)
        parts = [at.hostname or "coordinator", str(at.port or at.scheme), *([federation] if federation else [])]
        name = re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(parts)).lstrip(".")[:100] or "federation"
        place, number = self.folder / _FOLDER / name, 1
        while (place / "identity.json").exists():  # of another one, with a name that looks the same
            number += 1
            place = self.folder / _FOLDER / f"{name}-{number}"
        return place
