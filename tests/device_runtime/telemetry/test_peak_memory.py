import time
from pathlib import Path

from device_runtime.telemetry.peak_memory import MemoryWatch, Resident, resident
from edgefl.values import Provenance, Scope
from tests.device_runtime.telemetry.captured import STATUS, lay, new_pages, without_privileges

FIFTY_MB = 50_000_000


def showing(root: Path, *, current: int, peak: int) -> Path:
    return lay(root, {"proc/self/status": STATUS.format(current=current, peak=peak)})


def allocate_and_free(size: int) -> None:
    with new_pages(size):
        pass


def test_the_peak_of_a_round_sees_fifty_megabytes_that_were_freed() -> None:
    watch = MemoryWatch()
    allocate_and_free(FIFTY_MB)
    memory = watch.stop()
    assert memory.source == "VmHWM"
    assert memory.peak_bytes - memory.baseline_bytes >= 0.9 * FIFTY_MB
    assert (memory.scope, memory.provenance) == (Scope.PROCESS, Provenance.MEASURED)


def test_the_peak_of_one_round_does_not_show_in_the_next() -> None:
    allocate_and_free(2 * FIFTY_MB)
    watch = MemoryWatch()
    allocate_and_free(1000)
    memory = watch.stop()
    assert memory.peak_bytes - memory.baseline_bytes < FIFTY_MB


def test_status_is_read_in_bytes(tmp_path: Path) -> None:
    showing(tmp_path, current=68420, peak=101200)
    assert resident(tmp_path) == Resident(68420 * 1024, 101200 * 1024)


def test_status_without_memory_lines_says_nothing(tmp_path: Path) -> None:
    assert resident(tmp_path) is None
    lay(tmp_path, {"proc/self/status": "Name:\tkthreadd\nVmRSS:\tmuch kB\n"})
    assert resident(tmp_path) is None
    lay(tmp_path, {"proc/self/status": "VmRSS:\t  100 kB"})
    assert resident(tmp_path) == Resident(100 * 1024, None)


def real_status_without_reset(root: Path) -> Path:
    """A system whose peak cannot be reset, with the true memory of this process."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/status").symlink_to("/proc/self/status")
    return root


def test_memory_is_sampled_where_the_peak_cannot_be_reset(tmp_path: Path) -> None:
    allocate_and_free(4 * FIFTY_MB)  # the process's record is now far above what the round will need
    watch = MemoryWatch(real_status_without_reset(tmp_path), sample_hertz=100)
    with new_pages(FIFTY_MB):
        seen = watch._samples
        while watch._samples < seen + 2:
            time.sleep(0.005)
    memory = watch.stop()
    assert memory.source.startswith("VmRSS, sampled at ")
    assert 0.9 * FIFTY_MB <= memory.peak_bytes - memory.baseline_bytes < 3 * FIFTY_MB
    assert not (tmp_path / "proc/self/clear_refs").exists()


def test_a_reset_that_is_forbidden_leads_to_sampling(shared_root: Path) -> None:
    lay(showing(shared_root, current=1000, peak=9000), {"proc/self/clear_refs": b""})
    (shared_root / "proc/self/clear_refs").chmod(0o444)
    with without_privileges():
        watch = MemoryWatch(shared_root)
    assert watch.stop().source.startswith("VmRSS, sampled at ")


def test_a_reset_that_does_nothing_leads_to_sampling(tmp_path: Path) -> None:
    lay(showing(tmp_path, current=1000, peak=90000), {"proc/self/clear_refs": b""})
    memory = MemoryWatch(tmp_path).stop()
    assert memory.source.startswith("VmRSS, sampled at ")
    assert memory.peak_bytes == 1000 * 1024


def test_a_new_record_of_the_process_is_the_peak_of_the_round_even_without_reset(tmp_path: Path) -> None:
    watch = MemoryWatch(showing(tmp_path, current=1000, peak=9000))
    showing(tmp_path, current=1200, peak=9500)
    memory = watch.stop()
    assert (memory.source, memory.peak_bytes) == ("VmHWM", 9500 * 1024)


def test_the_peak_is_never_below_the_baseline(tmp_path: Path) -> None:
    lay(showing(tmp_path, current=5000, peak=5000), {"proc/self/clear_refs": b""})
    watch = MemoryWatch(tmp_path)
    showing(tmp_path, current=4000, peak=4500)
    memory = watch.stop()
    assert memory.peak_bytes == memory.baseline_bytes == 5000 * 1024


def test_five_is_what_is_written(tmp_path: Path) -> None:
    lay(showing(tmp_path, current=5000, peak=5000), {"proc/self/clear_refs": b""})
    MemoryWatch(tmp_path).stop()
    assert (tmp_path / "proc/self/clear_refs").read_bytes() == b"5"


def test_without_proc_the_record_of_the_process_is_an_estimate(tmp_path: Path) -> None:
    memory = MemoryWatch(tmp_path).stop()
    assert memory.provenance is Provenance.ESTIMATED
    assert "ru_maxrss" in memory.source
    real = resident()
    assert real is not None
    assert real.current_bytes / 2 <= memory.peak_bytes < 100 * real.current_bytes  # bytes, not kilobytes


def test_status_that_vanishes_during_the_round_leaves_what_was_seen(tmp_path: Path) -> None:
    watch = MemoryWatch(showing(tmp_path, current=1000, peak=9000))
    (tmp_path / "proc/self/status").unlink()
    assert watch.stop().peak_bytes == 1000 * 1024
