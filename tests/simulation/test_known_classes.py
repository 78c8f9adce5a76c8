"""Device classes by name, in one line, and in files."""

from pathlib import Path

import pytest

from edgefl.errors import EdgeFLError
from edgefl.simulation.known_classes import FLEETS, KNOWN_CLASSES, classes_from


def test_every_built_in_class_names_its_sources_and_says_everything() -> None:
    for kind in KNOWN_CLASSES.values():
        assert kind.source is not None
        assert all(word in kind.source for word in ("Speed", "Power", "Network")), kind.name
        assert None not in (kind.download_bytes_per_second, kind.upload_bytes_per_second, kind.busy_watts)


@pytest.mark.parametrize("name", FLEETS)
def test_named_fleets_are_made_of_built_in_classes(name: str) -> None:
    assert {kind.name for kind in classes_from(name)} <= set(KNOWN_CLASSES)


def test_a_line_gives_shares() -> None:
    kinds = classes_from("pi3:1, pi4:2.5,phone-low")
    assert [(kind.name, kind.share) for kind in kinds] == [("pi3", 1.0), ("pi4", 2.5), ("phone-low", 1.0)]


def test_a_file_describes_classes_of_its_own_or_like_built_in_ones(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(
        '[[class]]\nname = "kitchen"\nlike = "pi4"\nmemory_bytes = "512 MiB"\nfails = 0.1\n'
        '[[class]]\nname = "mine"\nspeed = 3\nshare = 2\nonline_seconds = "1 h"\noffline_seconds = "30 min"\n'
    )
    kitchen, mine = classes_from(str(path))
    assert (kitchen.speed, kitchen.memory_bytes, kitchen.fails) == (1.0, 512 * 2**20, 0.1)
    assert kitchen.source == "like pi4"
    assert (mine.speed, mine.share, mine.online_seconds, mine.offline_seconds) == (3.0, 2.0, 3600.0, 1800.0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("pi9", "no device class or fleet 'pi9'"),
        ("pi4:x", "'x' devices of pi4"),
        ("pi4:-1", "'-1' devices of pi4"),
        ("pi4,pi4", "two classes with the same name"),
        ("pi4:0", "has no device"),
    ],
)
def test_a_wrong_line_is_refused(text: str, says: str) -> None:
    with pytest.raises(EdgeFLError, match=says):
        classes_from(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[class]\n", "is not valid TOML"),
        ("[fleet]\n", r"must hold \[\[class\]\] tables"),
        ('[[class]]\nname = "a"\nlike = "pi9"\n', "like = 'pi9'"),
        ('[[class]]\nname = "a"\nspeeed = 2\n', "number 1.*speeed"),
        ('[[class]]\nname = "a"\nspeed = 0\n', "would never end"),
        ('[[class]]\nname = "a"\nonline_seconds = 3\n', "offline_seconds"),
    ],
)
def test_a_wrong_file_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with pytest.raises(EdgeFLError, match=says):
        classes_from(str(path))
