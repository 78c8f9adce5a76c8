"""DeviceProfiles: the profiles of one device with several engines, in one file.

A file with one profile is a plain `DeviceProfile`; `read_profiles` reads both.
"""

from dataclasses import dataclass

from edgefl.values.dataclass_fields import check_fields
from edgefl.values.device_profile import DeviceProfile
from edgefl.values.field_error import FieldError
from edgefl.values.schema import document, dumps, from_json
from edgefl.values.strict_json import parse

__all__ = ["DeviceProfiles", "dump_profiles", "engine_package", "read_profiles"]


def engine_package(profile: DeviceProfile) -> str:
    """Return the package of the engine that a profile was measured with, such as 'onnxruntime'."""
    return profile.engine.partition(" ")[0]


@document("device_profiles", version=1)
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceProfiles:
    """What a device can do, with each of its engines."""

    profiles: tuple[DeviceProfile, ...]
    """One for each engine, the preferred one first."""

    def __post_init__(self) -> None:
        check_fields(self)
        engines = [engine_package(profile) for profile in self.profiles]
        if not engines or len(set(engines)) < len(engines):
            raise FieldError(
                f"has profiles of {', '.join(engines) or 'no engine'}",
                fix="Give one profile for each engine",
                path=("profiles",),
            )


def read_profiles(data: bytes) -> tuple[DeviceProfile, ...]:
    """Read the profiles in a file: one, or one for each engine."""
    said = parse(data)
    if isinstance(said, dict) and str(said.get("schema")).startswith("edgefl.device_profiles/"):
        return from_json(DeviceProfiles, said).profiles
    return (from_json(DeviceProfile, said),)


def dump_profiles(profiles: tuple[DeviceProfile, ...]) -> str:
    """Return the text of a file with these profiles; one alone is a plain `DeviceProfile`."""
    value = profiles[0] if len(profiles) == 1 else DeviceProfiles(profiles=profiles)
    return dumps(value, indent=2) + "\n"
