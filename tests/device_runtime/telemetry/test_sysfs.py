from pathlib import Path

from device_runtime.telemetry.sysfs import as_name, find_paths, read_int, read_text
from edgefl.values import Machine
from tests.device_runtime.telemetry.captured import Files, lay, without_privileges


def test_text_loses_the_line_end_and_the_nul_of_a_device_tree(tmp_path: Path) -> None:
    lay(tmp_path, {"plain": "package-0", "tree": b"Raspberry Pi 5 Model B Rev 1.0\0"})
    assert read_text(tmp_path / "plain") == "package-0"
    assert read_text(tmp_path / "tree") == "Raspberry Pi 5 Model B Rev 1.0"


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    lay(tmp_path, {"file": 1})
    assert read_text(tmp_path / "missing") is None
    assert read_text(tmp_path) is None
    assert read_text(tmp_path / "file" / "below") is None
    assert read_int(tmp_path / "missing") is None


def test_a_forbidden_file_is_none_and_its_neighbour_is_read(shared_root: Path) -> None:
    lay(shared_root, {"forbidden": 1, "open": 2})
    (shared_root / "forbidden").chmod(0)
    with without_privileges():
        assert read_text(shared_root / "forbidden") is None
        assert read_int(shared_root / "open") == 2


def test_a_forbidden_folder_holds_nothing(shared_root: Path) -> None:
    lay(shared_root, {"closed/hwmon0/name": "ina219", "open/hwmon0/name": "ina219"})
    (shared_root / "closed").chmod(0)
    try:
        with without_privileges():
            assert find_paths(shared_root, "closed/*") == []
            assert find_paths(shared_root, "*/hwmon*") == [shared_root / "open/hwmon0"]
    finally:
        (shared_root / "closed").chmod(0o755)


def test_numbers_are_whole_and_anything_else_is_none(tmp_path: Path) -> None:
    wrong: Files = {"empty": b"", "words": "max", "float": "1.5", "binary": b"\xff\xfe\x00", "long": "9" * 5000}
    lay(tmp_path, {"number": 42, "negative": -7, **wrong})
    assert read_int(tmp_path / "number") == 42
    assert read_int(tmp_path / "negative") == -7
    assert [read_int(tmp_path / name) for name in wrong] == [None] * len(wrong)


def test_folders_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    lay(tmp_path, {f"sys/hwmon{number}/name": "x" for number in (10, 2, 1)})
    assert [path.name for path in find_paths(tmp_path, "sys/hwmon*")] == ["hwmon1", "hwmon2", "hwmon10"]
    assert find_paths(tmp_path, "sys/nothing/*") == []


def test_any_text_becomes_a_valid_name_or_none() -> None:
    for text in ["Pi 5\n\x1b[2J", "  x  ", "a" * 500, "a" * 199 + "  b", "\ufffd\ud800"]:
        name = as_name(text)
        assert name is not None
        Machine(architecture=name, system=name, cores=1)
    assert as_name("Pi\t5\n") == "Pi 5"
    assert as_name("\x00\n") is None
    assert as_name(None) is None
