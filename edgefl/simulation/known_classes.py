"""The built-in device classes, each with the source of its figures, and fleets written in one line or in a file.

The figures are published ones, rounded, and rough: a factor of two between two phones of one class is common. Half of
a device's memory is what training may take. For a fleet of your own, write what you measured into a file.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeFLError, SchemaError
from edgefl.simulation.device_class import DeviceClass
from edgefl.values import FieldError, from_json, to_json

__all__ = ["FLEETS", "KNOWN_CLASSES", "classes_from", "read_classes"]

_GIB = 2**30
_MBIT = 125_000
_LARGEST_FILE = 2**20

KNOWN_CLASSES: Mapping[str, DeviceClass] = {
    kind.name: kind
    for kind in (
        DeviceClass(
            name="pi3",
            speed=0.5,
            memory_bytes=_GIB // 2,
            download_bytes_per_second=100 * _MBIT,
            upload_bytes_per_second=100 * _MBIT,
            idle_watts=1.9,
            busy_watts=5.1,
            source="Raspberry Pi 3 B+, 1 GB. Speed: ncnn's benchmark list, 11 networks on 4 threads, 0.56 of a Pi 4 "
            "(0.39 to 0.68). Power: Raspberry Pi Dramble, power consumption benchmarks. Network: 5 GHz Wi-Fi, about "
            "100 Mbit/s, by its maker.",
        ),
        DeviceClass(
            name="pi4",
            speed=1.0,
            memory_bytes=2 * _GIB,
            download_bytes_per_second=100 * _MBIT,
            upload_bytes_per_second=100 * _MBIT,
            idle_watts=2.7,
            busy_watts=6.4,
            source="Raspberry Pi 4 B, 4 GB. Speed: the unit, 2e9 multiply-adds a second of a small network. Power: "
            "Raspberry Pi Dramble; the maker's documents give 0.6 and 1.2 A at 5.1 V. Network: 5 GHz Wi-Fi.",
        ),
        DeviceClass(
            name="pi5",
            speed=2.5,
            memory_bytes=4 * _GIB,
            download_bytes_per_second=100 * _MBIT,
            upload_bytes_per_second=100 * _MBIT,
            idle_watts=2.7,
            busy_watts=11.0,
            source="Raspberry Pi 5, 8 GB. Speed and power under load: Geerling, top500-benchmark, HPL 30.2 Gflops at "
            "11 W against 11.9 of a Pi 4. Power when idle: reviewers say 2 to 3.5 W. Network: as the Pi 4.",
        ),
        DeviceClass(
            name="phone-low",
            speed=1.0,
            memory_bytes=_GIB,
            download_bytes_per_second=34 * _MBIT,
            upload_bytes_per_second=10 * _MBIT,
            idle_watts=0.5,
            busy_watts=2.0,
            source="Four to eight Cortex-A53 or A55, 2 GB. Speed: Geekbench 5 on all cores, 0.9 (Helio A22) to 1.6 "
            "(Snapdragon 450) of a Pi 4. Power: AnandTech on the Kirin 960's four A53, 1.44 W above idle. Network: "
            "Ookla, mean of US mobile networks in 2019.",
        ),
        DeviceClass(
            name="phone-mid",
            speed=2.4,
            memory_bytes=3 * _GIB,
            download_bytes_per_second=114 * _MBIT,
            upload_bytes_per_second=int(10.5 * _MBIT),
            idle_watts=0.5,
            busy_watts=4.2,
            source="Snapdragon 660 to 680, 6 GB. Speed: Geekbench 5 on all cores 2.35 and 2.63 of a Pi 4, ncnn's "
            "benchmark list 1.9. Power: AnandTech on the Kirin 950's four A72, 3.71 W above idle. Network: Ookla, "
            "median of Samsung phones in the US at the end of 2023.",
        ),
        DeviceClass(
            name="phone-high",
            speed=8.0,
            memory_bytes=4 * _GIB,
            download_bytes_per_second=174 * _MBIT,
            upload_bytes_per_second=13 * _MBIT,
            idle_watts=0.5,
            busy_watts=6.8,
            source="Snapdragon 8 Gen 2, 8 GB. Speed: Geekbench 5 on all cores, 8.4 of a Pi 4. Power: 4.9 to 6.3 W of "
            "one large core in SPECint (Golden Reviewer), above idle; of all cores it is not known. Network: Ookla, "
            "median of Snapdragon 8 Gen 2 phones in the US at the end of 2023.",
        ),
    )
}
"""The built-in classes by name."""

FLEETS: Mapping[str, str] = {
    "mixed": "pi3:1,pi4:2,pi5:1,phone-low:2,phone-mid:1,phone-high:1",
    "pis": "pi3:1,pi4:2,pi5:1",
    "phones": "phone-low:2,phone-mid:2,phone-high:1",
}
"""Built-in mixtures of classes by name."""


def classes_from(text: str) -> tuple[DeviceClass, ...]:
    """Return the classes of a fleet: a mixture's name, `pi3:1,pi4:2`, or the path of a TOML file."""
    if text.endswith(".toml"):
        return read_classes(Path(text))
    found = []
    for part in FLEETS.get(text, text).split(","):
        name, _, share = part.strip().partition(":")
        if name not in KNOWN_CLASSES:
            raise EdgeFLError(
                f"there is no device class or fleet {name!r}",
                fix=f"Classes: {', '.join(KNOWN_CLASSES)}; fleets: {', '.join(FLEETS)}; or name a .toml file.",
            )
        try:
            found.append(replace(KNOWN_CLASSES[name], share=float(share or 1)))
        except (ValueError, FieldError):
            raise EdgeFLError(f"{share!r} devices of {name}", fix="Give a number, such as pi4:2.") from None
    return _checked(found, text)


def read_classes(path: Path) -> tuple[DeviceClass, ...]:
    """Return the classes that a TOML file describes: tables [[class]] with a `name`, and `like` for a built-in one."""
    with path.open("rb") as file:
        text = file.read(_LARGEST_FILE)
    try:
        tables = tomllib.loads(text.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SchemaError(f"{path} is not valid TOML: {error}", fix="Correct that line.") from None
    kinds = tables.get("class")
    if not isinstance(kinds, list) or set(tables) != {"class"}:
        raise SchemaError(
            f"{path} must hold [[class]] tables and nothing else", fix="Write one [[class]] for each class of devices."
        )
    return _checked([_read(table, f"{path}: [[class]] number {place}") for place, table in enumerate(kinds, 1)], path)


def _read(table: Mapping[str, Any], where: str) -> DeviceClass:
    given = dict(table)
    like = given.pop("like", None)
    if like is not None and like not in KNOWN_CLASSES:
        raise SchemaError(f"{where}: like = {like!r}", fix=f"Built in are {', '.join(KNOWN_CLASSES)}.")
    base = {} if like is None else to_json(KNOWN_CLASSES[like])
    if like is not None:
        base["source"] = f"like {like}"
    try:
        return from_json(DeviceClass, base | given)
    except FieldError as error:
        raise SchemaError(f"{where}: {error.problem}", fix=error.fix) from None


def _checked(kinds: Sequence[DeviceClass], where: object) -> tuple[DeviceClass, ...]:
    names = [kind.name for kind in kinds]
    if len(set(names)) != len(names):
        raise SchemaError(f"{where} has two classes with the same name", fix="Give every class its own name.")
    if not any(kind.share > 0 for kind in kinds):
        raise SchemaError(f"{where} has no devices", fix="Give at least one class a share above 0.")
    return tuple(kinds)
