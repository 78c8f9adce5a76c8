import os
import platform
import shutil
from pathlib import Path

from device_runtime.telemetry.machine import device_name, free_storage, machine, usable_cores
from tests.device_runtime.telemetry.captured import lay

ALLOWED = len(os.sched_getaffinity(0))


def test_this_machine_is_described() -> None:
    described = machine()
    assert described.architecture == platform.machine()
    assert described.system.startswith(f"{platform.system()} {platform.release().split('.')[0]}")
    assert 1 <= described.cores <= ALLOWED


def test_without_groups_the_cores_are_those_of_the_affinity(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == ALLOWED


def test_a_ration_of_time_limits_the_cores(tmp_path: Path) -> None:
    lay(tmp_path, {"proc/self/cgroup": "0::/box", "sys/fs/cgroup/box/cpu.max": "150000 100000"})
    assert usable_cores(tmp_path) == 1


def test_less_than_a_core_is_still_one(tmp_path: Path) -> None:
    lay(tmp_path, {"proc/self/cgroup": "0::/box", "sys/fs/cgroup/box/cpu.max": "20000 100000"})
    assert usable_cores(tmp_path) == 1


def test_a_ration_above_the_affinity_or_without_limit_changes_nothing(tmp_path: Path) -> None:
    lay(tmp_path, {"proc/self/cgroup": "0::/box/inner", "sys/fs/cgroup/box/cpu.max": "max 100000"})
    lay(tmp_path, {"sys/fs/cgroup/box/inner/cpu.max": f"{(ALLOWED + 1) * 100000} 100000"})
    assert usable_cores(tmp_path) == ALLOWED


def test_a_ration_of_version_1_limits_the_cores(tmp_path: Path) -> None:
    lay(tmp_path, {"proc/self/cgroup": "3:cpu,cpuacct:/docker/ab"})
    mount = "sys/fs/cgroup/cpu,cpuacct"
    lay(tmp_path, {"cpu.cfs_quota_us": 100000, "cpu.cfs_period_us": 100000}, under=mount)
    assert usable_cores(tmp_path) == 1
    lay(tmp_path, {"cpu.cfs_quota_us": -1}, under=mount)
    assert usable_cores(tmp_path) == ALLOWED


def test_rations_that_make_no_sense_are_ignored(tmp_path: Path) -> None:
    for content in ("", "x y", "100000 0", "-5 100000", "100000", "1 2 3"):
        lay(tmp_path, {"sys/fs/cgroup/cpu.max": content})
        assert usable_cores(tmp_path) == ALLOWED, content


def test_the_model_of_a_board_is_its_name(tmp_path: Path) -> None:
    lay(tmp_path, {"proc/device-tree/model": b"Raspberry Pi 5 Model B Rev 1.0\0", "proc/sys/kernel/hostname": "pi"})
    assert device_name(tmp_path) == "Raspberry Pi 5 Model B Rev 1.0"


def test_the_product_names_a_computer_unless_its_maker_left_it_blank(tmp_path: Path) -> None:
    lay(tmp_path, {"sys/class/dmi/id/product_name": "Latitude 7420", "proc/sys/kernel/hostname": "desk"})
    assert device_name(tmp_path) == "Latitude 7420"
    lay(tmp_path, {"sys/class/dmi/id/product_name": "To Be Filled By O.E.M."})
    assert device_name(tmp_path) == "desk"


def test_a_device_without_any_name_has_one_all_the_same(tmp_path: Path) -> None:
    assert device_name(tmp_path) == (platform.node() or "device")


def test_free_storage_is_that_of_the_folder_to_be(tmp_path: Path) -> None:
    free = free_storage(tmp_path / "not" / "yet")
    usage = shutil.disk_usage(tmp_path)
    assert 0 < free <= usage.total
    assert abs(free - usage.free) < usage.total / 10
