from pathlib import Path

import pytest

from device_runtime.telemetry.thermal import ThermalWatch, celsius
from device_runtime.telemetry.throttling import ThrottleState, frequency_share, throttle_state, throttled_between
from edgefl.values import Thermal
from tests.device_runtime.telemetry.captured import (
    UNKNOWN_TO_FIRMWARE,
    Files,
    answering,
    lay,
    no_commands,
    without_privileges,
)

THERMAL = "sys/class/thermal"
CPU = "sys/devices/system/cpu"


def zones(root: Path, *kinds: tuple[str, object]) -> Path:
    for number, (kind, temperature) in enumerate(kinds):
        lay(root, {"type": kind, "temp": str(temperature)}, under=f"{THERMAL}/thermal_zone{number}")
    return root


def test_the_zone_of_a_raspberry_pi_is_read_in_degrees(tmp_path: Path) -> None:
    assert celsius(zones(tmp_path, ("cpu-thermal", 51650))) == pytest.approx(51.65)


def test_the_processor_is_preferred_over_what_else_is_warm(tmp_path: Path) -> None:
    laptop = ("iwlwifi_1", 62000), ("acpitz", 27800), ("INT3400 Thermal", 20000), ("x86_pkg_temp", 48000)
    assert celsius(zones(tmp_path, *laptop)) == 48.0


def test_of_several_zones_of_the_processor_the_hottest_counts(tmp_path: Path) -> None:
    phone = ("battery", 99000), ("cpu-0-0-usr", 41000), ("cpu-1-3-usr", 47500), ("soc-thermal", 60000)
    assert celsius(zones(tmp_path, *phone)) == 47.5


def test_a_zone_that_shows_nonsense_gives_way_to_the_next(tmp_path: Path) -> None:
    assert celsius(zones(tmp_path, ("cpu-thermal", -274000), ("CPU-therm", "garbage"), ("soc_thermal", 43000))) == 43.0


def test_without_a_zone_of_the_processor_there_is_no_temperature(tmp_path: Path) -> None:
    assert celsius(tmp_path) is None
    assert celsius(zones(tmp_path, ("battery", 30000), ("iwlwifi_1", 45000))) is None


def test_a_forbidden_zone_is_absent(shared_root: Path) -> None:
    zones(shared_root, ("cpu-thermal", 51650), ("acpitz", 27800))
    (shared_root / THERMAL / "thermal_zone0/temp").chmod(0)
    with without_privileges():
        assert celsius(shared_root) == 27.8


# Raspberry Pi's bits: 1 capped, 2 throttled, 3 soft limit; 17 to 19 the same since boot; 0 and 16 low voltage.


@pytest.mark.parametrize(
    ("start", "end", "verdict"),
    [
        (0x0, 0x0, False),
        (0x0, 0x40000, True),  # it happened during the round, and is over
        (0x0, 0x80008, True),
        (0x20002, 0x20002, True),
        (0x40000, 0x40000, None),  # it happened some time since boot
        (0x40000, 0xC0000, True),
        (0x0, 0x50005, True),
        (0x10000, 0x10001, False),  # low voltage alone does not slow it down
    ],
)
def test_firmware_bits_are_compared_between_start_and_end(start: int, end: int, verdict: bool | None) -> None:
    assert throttled_between(ThrottleState(firmware_bits=start), ThrottleState(firmware_bits=end)) is verdict


def test_firmware_bits_are_read_from_the_command(tmp_path: Path) -> None:
    assert throttle_state(tmp_path, answering(get_throttled="throttled=0x50005\n")).firmware_bits == 0x50005
    for odd in (None, "", UNKNOWN_TO_FIRMWARE, "throttled=yes", "throttled=0x"):
        assert throttle_state(tmp_path, answering(get_throttled=odd)) == ThrottleState()


def throttle_counts(root: Path, *, core: int, package: int) -> ThrottleState:
    for cpu in range(2):
        counts: Files = {"core_throttle_count": core, "package_throttle_count": package, "core_throttle_max_time_ms": 7}
        lay(root, counts, under=f"{CPU}/cpu{cpu}/thermal_throttle")
    lay(root, {"cpufreq/thermal_throttle/core_throttle_count": 99}, under=CPU)  # not a processor
    return throttle_state(root, no_commands)


def test_x86_counts_events_of_cores_and_packages(tmp_path: Path) -> None:
    start = throttle_counts(tmp_path, core=3, package=5)
    assert start == ThrottleState(events=16)
    assert throttled_between(start, throttle_counts(tmp_path, core=3, package=5)) is False
    assert throttled_between(start, throttle_counts(tmp_path, core=3, package=6)) is True
    assert throttled_between(start, throttle_counts(tmp_path, core=4, package=5)) is True


def test_counts_that_fall_tell_nothing() -> None:
    assert throttled_between(ThrottleState(events=9), ThrottleState(events=3)) is None


@pytest.mark.parametrize("kind", ["thermal-cpufreq-0", "cpufreq-cpu0", "cpu-throttle-alert", "Processor"])
def test_a_cooling_device_that_brakes_the_processor_is_throttling(tmp_path: Path, kind: str) -> None:
    device = f"{THERMAL}/cooling_device0"
    idle = throttle_state(lay(tmp_path, {"type": kind, "cur_state": 0, "max_state": 5}, under=device), no_commands)
    cooling_state = throttle_state(lay(tmp_path, {"cur_state": 2}, under=device), no_commands)
    assert throttled_between(idle, idle) is False
    assert throttled_between(idle, cooling_state) is True


def test_a_fan_that_turns_is_no_throttling(tmp_path: Path) -> None:
    lay(tmp_path, {"type": "pwm-fan", "cur_state": 3}, under=f"{THERMAL}/cooling_device0")
    assert throttle_state(tmp_path, no_commands) == ThrottleState()


def test_one_witness_that_saw_it_is_enough() -> None:
    start, end = ThrottleState(firmware_bits=0x40000, events=1, cooling_state=0), ThrottleState(0x40000, 2, 0)
    assert throttled_between(start, end) is True
    assert (
        throttled_between(ThrottleState(firmware_bits=0x40000, cooling_state=0), ThrottleState(0x40000, None, 0))
        is False
    )
    assert throttled_between(ThrottleState(), ThrottleState()) is None


def test_frequency_is_a_share_of_the_highest(tmp_path: Path) -> None:
    assert frequency_share(tmp_path) is None
    lay(tmp_path, {"scaling_cur_freq": 1_200_000, "cpuinfo_max_freq": 2_400_000}, under=f"{CPU}/cpufreq/policy0")
    lay(tmp_path, {"scaling_cur_freq": 2_000_000, "cpuinfo_max_freq": 2_000_000}, under=f"{CPU}/cpufreq/policy4")
    lay(tmp_path, {"scaling_cur_freq": "<unknown>", "cpuinfo_max_freq": 2_000_000}, under=f"{CPU}/cpufreq/policy6")
    lay(tmp_path, {"scaling_cur_freq": 5, "cpuinfo_max_freq": 0}, under=f"{CPU}/cpufreq/policy7")
    assert frequency_share(tmp_path) == pytest.approx(0.75)


def test_a_round_shows_how_the_device_warmed_up(tmp_path: Path) -> None:
    bits = iter(["throttled=0x0\n", "throttled=0x80008\n"])
    watch = ThermalWatch(zones(tmp_path, ("cpu-thermal", 45000)), run=answering(get_throttled=lambda: next(bits)))
    zones(tmp_path, ("cpu-thermal", 82000))
    assert watch.stop() == Thermal(start_celsius=45.0, end_celsius=82.0, throttled=True)


def test_a_system_that_shows_nothing_has_no_thermal(tmp_path: Path) -> None:
    assert ThermalWatch(tmp_path, run=no_commands).stop() is None
