"""Counters of several processes: their sums, and what happens when one of them ends."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coordinator.observability.counter_file import CounterFile, read_counters
from coordinator.observability.shared_counters import SharedCounters, counters_folder


def sums(counters: SharedCounters) -> dict[tuple[str, ...], float]:
    samples = [sample for metric in counters.collect() for sample in metric.samples]
    return {(one.name, *(one.labels[name] for name in sorted(one.labels))): one.value for one in samples}


def test_counters_and_histograms_of_all_processes_are_summed(tmp_path: Path) -> None:
    one, other = SharedCounters(tmp_path, 1), SharedCounters(tmp_path, 2)
    for process, amount in ((one, 3.0), (other, 4.0)):
        process.counter("things", "Things.", {"kind": "a"})(amount)
        observe = process.histogram("seconds", "Seconds.", {"route": "/"}, (0.1, 1.0))
        for value in (0.05, 0.1, amount):
            observe(value)
        process.set_present("open", "Open ones.", amount)
    for reader in (one, other):
        assert sums(reader) == {
            ("things_total", "a"): 7.0,
            ("seconds_sum", "/"): pytest.approx(7.3),
            ("seconds_bucket", "0.1", "/"): 4.0,
            ("seconds_bucket", "1.0", "/"): 4.0,
            ("seconds_bucket", "+Inf", "/"): 6.0,
            ("seconds_count", "/"): 6.0,
            ("open",): 7.0,
        }


def test_what_a_dead_process_counted_stays_and_its_present_numbers_do_not(tmp_path: Path) -> None:
    first, second = SharedCounters(tmp_path, 1), SharedCounters(tmp_path, 2)
    first.counter("things", "Things.", {"kind": "a"})(1)
    second.counter("things", "Things.", {"kind": "a"})(2)
    second.counter("things", "Things.", {"kind": "b"})(5)
    second.histogram("seconds", "Seconds.", {}, (1.0,))(0.5)
    first.set_present("open", "Open ones.", 10)
    second.set_present("open", "Open ones.", 20)
    before = sums(first)
    for _ in range(2):
        first.fold(2)
        assert sums(first) == before | {("open",): 10.0}
    assert [path.name for path in tmp_path.glob("*-2")] == []
    again = SharedCounters(tmp_path, 2)
    again.counter("things", "Things.", {"kind": "b"})(1)
    assert sums(first)["things_total", "b"] == 6.0


def test_sums_never_go_back_while_processes_come_and_go(tmp_path: Path) -> None:
    first, seen, over = SharedCounters(tmp_path, 1), [0.0], threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(sums(first).get(("things_total",), 0.0))

    watcher = threading.Thread(target=watch)
    watcher.start()
    for process in range(2, 40):
        add = SharedCounters(tmp_path, process).counter("things", "Things.", {})
        for _ in range(20):
            add(1)
        first.fold(process)
    over.set()
    watcher.join()
    seen.append(sums(first)["things_total",])
    assert seen == sorted(seen)
    assert seen[-1] == 38 * 20


def test_a_process_that_is_killed_has_counted_to_its_last_instruction(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from coordinator.observability.shared_counters import SharedCounters as Shared;"
        "add = Shared(pathlib.Path(sys.argv[1]), 2).counter('things', 'Things.', {}); [add(1) for _ in range(1000)];"
        "os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert sums(SharedCounters(tmp_path, 1)) == {("things_total",): 1000.0}


def test_a_file_that_is_full_takes_no_more_names_and_keeps_those_it_has(tmp_path: Path) -> None:
    file = CounterFile(tmp_path / "file", 4096)
    places = [file.place(f"name {number}") for number in range(1000)]
    assert None in places
    for place in places:
        file.add(place, 1.5)
        file.add(place, 1.0)
    room = places.index(None)
    assert read_counters(tmp_path / "file") == {f"name {number}": 2.5 for number in range(room)}
    assert file.place("name 0") == places[0]
    assert read_counters(Path("/dev/null")) == {}


def test_the_folder_of_a_coordinator_that_was_killed_is_removed_and_that_of_a_living_one_is_not(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys; from coordinator.observability.shared_counters import counters_folder as folder;"
        "context = folder(pathlib.Path(sys.argv[1])); context.__enter__(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    (left,) = tmp_path.iterdir()
    with counters_folder(tmp_path) as one:
        assert list(tmp_path.iterdir()) == [one] != [left]
        with counters_folder(tmp_path) as other:
            assert sorted(tmp_path.iterdir()) == sorted([one, other])
    assert list(tmp_path.iterdir()) == []
