"""Every instrument, from what its driver or firmware shows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from device_runtime.telemetry.energy import battery, hwmon, pmic, rapl
from device_runtime.telemetry.energy.energy_source import EnergySource
from device_runtime.telemetry.energy.power_sampling import PowerSampler
from edgefl.values import Provenance, Scope
from tests.device_runtime.telemetry.captured import (
    AGX_ORIN_RAILS,
    BATTERY,
    HWMON,
    INA219,
    ORIN_NANO_RAILS,
    PMIC,
    POWERCAP,
    RAPL,
    SUPPLY,
    TEGRA,
    UNKNOWN_TO_FIRMWARE,
    Files,
    answering,
    lay,
    no_commands,
    without_privileges,
)


def watts_of(source: EnergySource | None) -> float | None:
    assert isinstance(source, PowerSampler)
    assert source.label.provenance is Provenance.MEASURED
    return source.read()


# The power chip of a Raspberry Pi 5.


def test_pmic_multiplies_volts_and_amperes_of_the_same_rail() -> None:
    rails = pmic.rail_watts(PMIC)
    assert len(rails) == 12
    assert rails["VDD_CORE"] == pytest.approx(6.22421 * 0.861733)
    assert rails["HDMI"] == pytest.approx(0.0241758 * 5.08664)
    assert not {"EXT5V", "BATT"} & rails.keys()


def test_pmic_sums_its_rails() -> None:
    source = pmic.find(run=answering(pmic_read_adc=PMIC))
    assert watts_of(source) == pytest.approx(7.239819)  # added up by hand
    assert source is not None
    assert source.label.scope is Scope.DEVICE
    assert "12 rails" in source.label.source


@pytest.mark.parametrize("output", [None, "", UNKNOWN_TO_FIRMWARE, "VDD_CORE_A current(7)=1.0A\n", PMIC.swapcase()])
def test_pmic_is_absent_where_the_firmware_shows_no_rail(output: str | None) -> None:
    assert pmic.find(run=answering(pmic_read_adc=output)) is None


def test_pmic_leaves_lines_out_that_make_no_sense() -> None:
    odd = "X_A current(1)=nanA\nX_V volt(2)=1.0V\nY_A current(3)=2.0V\nY_V volt(4)=1.0V\nZ_A current(5)=1.5A\nZ_V=1V\n"
    good = "OK_A current(6)=2.0A\nOK_V volt(7)=1.5V\n"
    assert pmic.rail_watts(odd + good) == {"OK": 3.0}


def test_pmic_half_an_answer_is_no_reading() -> None:
    answers = iter([PMIC, PMIC[: len(PMIC) // 2], None, PMIC])
    source = pmic.find(run=answering(pmic_read_adc=lambda: next(answers)))
    readings = [watts_of(source) for _ in range(3)]
    assert readings[:2] == [None, None]
    assert readings[2] is not None


# INA meters.


def test_ina219_shows_power_itself(tmp_path: Path) -> None:
    lay(tmp_path, INA219, under=f"{HWMON}/hwmon2")
    source = hwmon.find(tmp_path, no_commands)
    assert watts_of(source) == pytest.approx(6.16)
    assert source is not None
    assert source.label.scope is Scope.DEVICE
    assert "ina219" in source.label.source


def test_a_meter_without_power_is_volts_times_amperes(tmp_path: Path) -> None:
    lay(tmp_path, {"name": "ina226", "in1_input": 5000, "curr1_input": 800}, under=f"{HWMON}/hwmon0")
    assert watts_of(hwmon.find(tmp_path, no_commands)) == pytest.approx(4.0)


def test_other_monitors_are_no_power_meters(tmp_path: Path) -> None:
    lay(tmp_path, {**INA219, "name": "rpi_volt"}, under=f"{HWMON}/hwmon0")
    lay(tmp_path, {**INA219, "name": "ina2190x"}, under=f"{HWMON}/hwmon1")
    assert hwmon.find(tmp_path, no_commands) is None


def test_ina3221_sums_its_channels_but_not_shunts_and_sums(tmp_path: Path) -> None:
    unlabelled = {name: value for name, value in ORIN_NANO_RAILS.items() if "label" not in name}
    lay(tmp_path, unlabelled, under=f"{HWMON}/hwmon3")
    source = hwmon.find(tmp_path, no_commands)
    assert watts_of(source) == pytest.approx((4960 * 1088 + 4952 * 160 + 4952 * 280) * 1e-6)
    assert source is not None
    assert source.label.scope is Scope.PACKAGE  # nobody said that these are all there is
    assert source.label.source == "INA power meter: channel 1 + channel 2 + channel 3"


def test_a_channel_that_is_switched_off_or_dead_is_left_out(tmp_path: Path) -> None:
    rails = {**ORIN_NANO_RAILS, "in1_enable": 0, "curr3_input": "garbage"}
    lay(tmp_path, rails, under=f"{HWMON}/hwmon3")
    assert watts_of(hwmon.find(tmp_path, no_commands)) == pytest.approx(4952 * 160 * 1e-6)


def test_a_meter_labelled_as_the_input_is_preferred_over_the_sum(tmp_path: Path) -> None:
    lay(tmp_path, {**INA219, "label": "vin"}, under=f"{HWMON}/hwmon5")
    lay(tmp_path, {**INA219, "label": "usb", "power1_input": 1_000_000}, under=f"{HWMON}/hwmon4")
    source = hwmon.find(tmp_path, no_commands)
    assert watts_of(source) == pytest.approx(6.16)
    assert source is not None
    assert source.label.scope is Scope.DEVICE


def test_a_sum_with_a_silent_chip_is_no_reading(tmp_path: Path) -> None:
    lay(tmp_path, INA219, under=f"{HWMON}/hwmon4")
    lay(tmp_path, INA219, under=f"{HWMON}/hwmon5")
    source = hwmon.find(tmp_path, no_commands)
    assert watts_of(source) == pytest.approx(12.32)
    for name in ("power1_input", "curr1_input"):
        (tmp_path / HWMON / "hwmon5" / name).unlink()
    assert watts_of(source) is None


def test_a_meter_that_may_not_be_read_is_absent(shared_root: Path) -> None:
    lay(shared_root, INA219, under=f"{HWMON}/hwmon0")
    for name in ("power1_input", "in1_input"):
        (shared_root / HWMON / "hwmon0" / name).chmod(0)
    with without_privileges():
        assert hwmon.find(shared_root, no_commands) is None


# Jetson.


def on_the_bus(root: Path, chips: tuple[Files, ...]) -> Path:
    """As on the board: the class folder links to the device's own folder."""
    lay(root, TEGRA)
    (root / HWMON).mkdir(parents=True)
    for number, rails in enumerate(chips):
        own = f"sys/bus/i2c/devices/1-004{number}/hwmon/hwmon{number + 3}"
        lay(root, rails, under=own)
        (root / HWMON / f"hwmon{number + 3}").symlink_to(root / own)
    return root


def test_jetson_prefers_the_rail_of_the_whole_module(tmp_path: Path) -> None:
    on_the_bus(tmp_path, (ORIN_NANO_RAILS,))
    source = hwmon.find_jetson(tmp_path, no_commands)
    assert watts_of(source) == pytest.approx(4.960 * 1.088)
    assert source is not None
    assert (source.label.source, source.label.scope) == ("Jetson rail: VDD_IN", Scope.DEVICE)


def test_jetson_without_such_a_rail_sums_the_parts_of_both_chips(tmp_path: Path) -> None:
    on_the_bus(tmp_path, AGX_ORIN_RAILS)
    source = hwmon.find_jetson(tmp_path, no_commands)
    assert watts_of(source) == pytest.approx(19 * 0.2 + 19 * 0.04 + 4.968 * 0.98 + 4.968 * 0.08)
    assert source is not None
    assert source.label.source == "Jetson rail: VDD_GPU_SOC + VDD_CPU_CV + VIN_SYS_5V0 + VDDQ_VDD2_1V8AO"
    assert source.label.scope is Scope.PACKAGE


def test_the_chips_of_a_jetson_are_not_taken_for_fitted_meters(tmp_path: Path) -> None:
    on_the_bus(tmp_path, (ORIN_NANO_RAILS,))
    assert hwmon.find(tmp_path, no_commands) is None


def test_the_same_chip_on_another_board_is_no_jetson(tmp_path: Path) -> None:
    lay(on_the_bus(tmp_path, (ORIN_NANO_RAILS,)), {"proc/device-tree/compatible": b"raspberrypi,4-model-b\0"})
    assert hwmon.find_jetson(tmp_path, no_commands) is None
    assert hwmon.find(tmp_path, no_commands) is not None


def test_a_jetson_that_shows_no_rail_is_absent(tmp_path: Path) -> None:
    assert hwmon.find_jetson(lay(tmp_path, TEGRA), no_commands) is None


# RAPL.


def test_rapl_counts_packages_and_never_their_parts(tmp_path: Path) -> None:
    lay(tmp_path, RAPL, under=POWERCAP)
    source = rapl.find(tmp_path, no_commands)
    assert source is not None
    assert source.label.scope is Scope.PACKAGE
    measurement = source.start()
    lay(tmp_path, {"intel-rapl:0/energy_uj": 3_500_000, "intel-rapl:0:0/energy_uj": 2_000_000}, under=POWERCAP)
    lay(tmp_path, {"intel-rapl:1/energy_uj": 9_000_000, "intel-rapl-mmio:0/energy_uj": 3_500_000}, under=POWERCAP)
    amount = measurement.stop()
    assert amount is not None
    assert amount.joules == pytest.approx(2.5)


def test_rapl_adds_the_packages_of_two_sockets_and_follows_a_wrap(tmp_path: Path) -> None:
    lay(tmp_path, RAPL, under=POWERCAP)
    second: Files = {"name": "package-1", "energy_uj": 65_532_000_000, "max_energy_range_uj": 65_532_610_987}
    lay(tmp_path, second, under=f"{POWERCAP}/intel-rapl:2")
    source = rapl.find(tmp_path, no_commands)
    assert source is not None
    assert "2 packages" in source.label.source
    measurement = source.start()
    lay(tmp_path, {"intel-rapl:0/energy_uj": 2_000_000, "intel-rapl:2/energy_uj": 400_000}, under=POWERCAP)
    amount = measurement.stop()
    assert amount is not None
    assert amount.joules == pytest.approx(1.0 + 0.610987 + 0.4)


def test_rapl_falls_back_on_the_platform_where_there_is_no_package(tmp_path: Path) -> None:
    lay(tmp_path, {name: value for name, value in RAPL.items() if name.startswith("intel-rapl:1/")}, under=POWERCAP)
    source = rapl.find(tmp_path, no_commands)
    assert source is not None
    assert source.label.scope is Scope.DEVICE


def test_rapl_that_only_root_may_read_is_absent(shared_root: Path) -> None:
    lay(shared_root, RAPL, under=POWERCAP)
    (shared_root / POWERCAP / "intel-rapl:0/energy_uj").chmod(0)
    with without_privileges():
        # Nor does it fall back on the platform, of which the package is a part that somebody closed.
        assert rapl.find(shared_root, no_commands) is None


@pytest.mark.parametrize("content", ["", "garbage", b"\xff"])
def test_rapl_with_a_counter_that_is_no_number_is_absent(tmp_path: Path, content: str | bytes) -> None:
    lay(tmp_path, {**RAPL, "intel-rapl:0/energy_uj": content}, under=POWERCAP)
    assert rapl.find(tmp_path, no_commands) is None


def test_rapl_without_a_range_cannot_follow_a_wrap(tmp_path: Path) -> None:
    lay(tmp_path, {"name": "package-0", "energy_uj": 9_000_000}, under=f"{POWERCAP}/intel-rapl:0")
    source = rapl.find(tmp_path, no_commands)
    assert source is not None
    measurement = source.start()
    lay(tmp_path, {"energy_uj": 1_000_000}, under=f"{POWERCAP}/intel-rapl:0")
    assert measurement.stop() is None


# Battery.


def test_battery_shows_power_while_it_discharges(tmp_path: Path) -> None:
    lay(tmp_path, BATTERY, under=f"{SUPPLY}/BAT0")
    source = battery.find(tmp_path, no_commands)
    assert watts_of(source) == pytest.approx(8.55)
    assert source is not None
    assert source.label.scope is Scope.DEVICE


@pytest.mark.parametrize("sign", [1, -1])
def test_battery_power_is_current_times_voltage_whatever_the_sign(tmp_path: Path, sign: int) -> None:
    gauge: Files = {"type": "Battery", "status": "Discharging", "voltage_now": 3_850_000, "current_now": sign * 412_000}
    lay(tmp_path, gauge, under=f"{SUPPLY}/battery")
    assert watts_of(battery.find(tmp_path, no_commands)) == pytest.approx(3.85 * 0.412)


@pytest.mark.parametrize("status", ["Charging", "Full", "Not charging", "Unknown", ""])
def test_battery_that_does_not_discharge_is_absent(tmp_path: Path, status: str) -> None:
    lay(tmp_path, {**BATTERY, "status": status}, under=f"{SUPPLY}/BAT0")
    assert battery.find(tmp_path, no_commands) is None


def test_the_battery_of_a_mouse_is_not_that_of_the_device(tmp_path: Path) -> None:
    lay(tmp_path, {**BATTERY, "scope": "Device"}, under=f"{SUPPLY}/hidpp_battery_0")
    assert battery.find(tmp_path, no_commands) is None


def test_of_two_batteries_the_one_that_waits_adds_nothing(tmp_path: Path) -> None:
    lay(tmp_path, BATTERY, under=f"{SUPPLY}/BAT0")
    lay(tmp_path, {**BATTERY, "status": "Not charging"}, under=f"{SUPPLY}/BAT1")
    assert watts_of(battery.find(tmp_path, no_commands)) == pytest.approx(8.55)


def test_a_charger_plugged_in_during_the_round_voids_the_measurement(tmp_path: Path) -> None:
    lay(tmp_path, BATTERY, under=f"{SUPPLY}/BAT0")
    source = battery.find(tmp_path, no_commands)
    assert source is not None
    measurement = source.start()
    lay(tmp_path, {"status": "Charging"}, under=f"{SUPPLY}/BAT0")
    assert measurement.stop() is None


def test_a_gauge_that_only_counts_is_read_at_both_ends(tmp_path: Path) -> None:
    counting = {name: value for name, value in BATTERY.items() if name != "power_now"}
    lay(tmp_path, counting, under=f"{SUPPLY}/BAT0")
    source = battery.find(tmp_path, no_commands)
    assert source is not None
    measurement = source.start()
    lay(tmp_path, {"energy_now": 41_220_000, "voltage_now": 11_000_000}, under=f"{SUPPLY}/BAT0")
    amount = measurement.stop()
    assert amount is not None
    assert amount.joules == pytest.approx(36.0)  # 10 mWh
    assert amount.sample_hertz is None


def test_charge_is_worth_the_voltage_of_the_start_though_it_sags(tmp_path: Path) -> None:
    gauge: Files = {"type": "Battery", "status": "Discharging", "voltage_now": 4_000_000, "charge_now": 3_000_000}
    lay(tmp_path, gauge, under=f"{SUPPLY}/battery")
    source = battery.find(tmp_path, no_commands)
    assert source is not None
    measurement = source.start()
    lay(tmp_path, {"charge_now": 2_999_000, "voltage_now": 3_800_000}, under=f"{SUPPLY}/battery")
    amount = measurement.stop()
    assert amount is not None
    assert amount.joules == pytest.approx(0.001 * 3600 * 4.0)


@pytest.mark.parametrize("shown", [{}, {"power_now": "x"}, {"current_now": 5}, {"charge_now": 5}, {"voltage_now": 5}])
def test_a_gauge_that_shows_too_little_is_absent(tmp_path: Path, shown: Files) -> None:
    lay(tmp_path, {"type": "Battery", "status": "Discharging", **shown}, under=f"{SUPPLY}/BAT0")
    assert battery.find(tmp_path, no_commands) is None


@pytest.mark.parametrize("find", [hwmon.find, hwmon.find_jetson, rapl.find, battery.find])
def test_every_source_is_absent_where_its_files_are(tmp_path: Path, find: Callable[..., EnergySource | None]) -> None:
    assert find(tmp_path, no_commands) is None
