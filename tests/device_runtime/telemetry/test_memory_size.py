import os
from pathlib import Path

import pytest

from device_runtime.telemetry.memory_size import MemorySize, memory_size
from tests.device_runtime.telemetry.captured import MEMINFO, Files, lay

KIB, GIB = 1024, 1 << 30
MACHINE = MemorySize(8245244 * KIB, 7340032 * KIB)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return lay(tmp_path, {"proc/meminfo": MEMINFO})


def group(root: Path, path: str, limit: object, used: int, cache: int = 0) -> None:
    stat = f"anon {used}\nfile {cache}\ninactive_file {cache}\nactive_file 0"
    lay(root, {"memory.max": str(limit), "memory.current": used, "memory.stat": stat}, under=f"sys/fs/cgroup{path}")


def old_group(root: Path, path: str, limit: int, used: int, cache: int = 0) -> None:
    files: Files = {
        "memory.limit_in_bytes": limit,
        "memory.usage_in_bytes": used,
        "memory.stat": f"cache {cache}\ninactive_file 1\ntotal_cache {cache}\ntotal_inactive_file {cache}",
    }
    lay(root, files, under=f"sys/fs/cgroup/memory{path}")


def test_a_machine_without_groups_has_what_the_kernel_says(root: Path) -> None:
    assert memory_size(root) == MACHINE


def test_a_group_without_limit_changes_nothing(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "0::/user.slice/session-2.scope"})
    group(root, "/user.slice/session-2.scope", "max", GIB)
    assert memory_size(root) == MACHINE


def test_the_limit_of_a_group_is_the_memory_of_its_processes(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "0::/system.slice/edgefl.service"})
    group(root, "/system.slice/edgefl.service", 2 * GIB, GIB)
    assert memory_size(root) == MemorySize(2 * GIB, GIB)


def test_a_limit_further_up_binds_as_well(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "0::/box/inner"})
    group(root, "/box/inner", 3 * GIB, GIB // 4)
    group(root, "/box", 2 * GIB, GIB)
    assert memory_size(root) == MemorySize(2 * GIB, GIB)


def test_file_cache_counts_as_available(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "0::/box"})
    group(root, "/box", 2 * GIB, 2 * GIB - 100, cache=GIB)
    assert memory_size(root) == MemorySize(2 * GIB, GIB + 100)


def test_inside_a_container_the_top_of_the_mount_is_the_own_group(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "0::/../../docker/0123abcd"})
    group(root, "", GIB, GIB // 2)
    group(root, "/../../docker/0123abcd", 10, 5)  # no place to look for a limit
    group(root, "/docker/0123abcd", 10, 5)  # somebody else's, of the same name
    assert memory_size(root) == MemorySize(GIB, GIB // 2)


def test_limits_of_version_1_are_seen_where_the_group_is_not_visible(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "12:cpu,cpuacct:/docker/ab\n4:memory:/docker/ab\n0::/docker/ab"})
    old_group(root, "", 3 * GIB, GIB, cache=GIB // 2)
    assert memory_size(root) == MemorySize(3 * GIB, 3 * GIB - GIB // 2)


def test_the_number_that_stands_for_no_limit_in_version_1_is_no_limit(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "4:memory:/user.slice"})
    old_group(root, "/user.slice", 9223372036854771712, GIB)
    assert memory_size(root) == MACHINE


def test_a_group_that_is_over_its_limit_has_nothing_left(root: Path) -> None:
    lay(root, {"proc/self/cgroup": "0::/box"})
    group(root, "/box", GIB, 2 * GIB)
    assert memory_size(root) == MemorySize(GIB, 0)


def test_a_limit_without_use_still_limits(root: Path) -> None:
    lay(root, {"sys/fs/cgroup/memory.max": GIB})
    assert memory_size(root) == MemorySize(GIB, GIB)


def test_files_that_make_no_sense_are_as_good_as_missing(root: Path) -> None:
    lay(root, {"proc/self/cgroup": b"\xff\n:::\nnonsense", "sys/fs/cgroup/memory.max": "lots"})
    assert memory_size(root) == MACHINE


def test_an_old_kernel_shows_free_memory_only(tmp_path: Path) -> None:
    lay(tmp_path, {"proc/meminfo": "MemTotal:  1000 kB\nMemFree:  400 kB"})
    assert memory_size(tmp_path) == MemorySize(1000 * KIB, 400 * KIB)


def test_a_system_without_meminfo_says_nothing(tmp_path: Path) -> None:
    assert memory_size(tmp_path) is None
    lay(tmp_path, {"proc/meminfo": "MemTotal: some"})
    assert memory_size(tmp_path) is None


def test_this_machine_has_memory() -> None:
    size = memory_size()
    assert size is not None
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < size.available_bytes <= size.total_bytes <= installed
