"""Which source is chosen, the estimate, the plug, and the meter around a round."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from device_runtime.telemetry.energy import (
    CpuTimeEstimate,
    EnergyAmount,
    EnergyMeter,
    EnergySource,
    SourceLabel,
    choose_energy_source,
    idle_watts,
    plugged,
    power_source,
    watts_per_core,
)
from edgefl.values import Provenance, Scope
from tests.device_runtime.telemetry.captured import (
    BATTERY,
    HWMON,
    INA219,
    ORIN_NANO_RAILS,
    PMIC,
    POWERCAP,
    RAPL,
    SUPPLY,
    TEGRA,
    answering,
    lay,
    no_commands,
)

FIXED = SourceLabel("fixed", Scope.DEVICE, Provenance.MEASURED)


@dataclass(frozen=True)
class Fixed:
    """An instrument that always gives the same."""

    amount: EnergyAmount | None
    label: SourceLabel = FIXED

    def start(self) -> "Fixed":
        return self

    def stop(self) -> EnergyAmount | None:
        return self.amount


def test_this_machine_without_sensors_gets_the_estimate_when_none_is_there(tmp_path: Path) -> None:
    source = choose_energy_source(tmp_path, run=no_commands)
    assert isinstance(source, CpuTimeEstimate)
    assert source.label.provenance is Provenance.ESTIMATED
    assert source.label.scope is Scope.PROCESS


def test_whatever_this_machine_has_measures_a_busy_moment() -> None:
    measurement = choose_energy_source().start()
    total = sum(number * number for number in range(300_000))
    amount = measurement.stop()
    assert total > 0
    assert amount is not None
    assert amount.joules > 0


def test_sources_are_chosen_in_the_order_of_trust(tmp_path: Path) -> None:
    def chosen(run: Callable[..., str | None] = no_commands) -> str:
        return choose_energy_source(tmp_path, run=run).label.source

    lay(tmp_path, BATTERY, under=f"{SUPPLY}/BAT0")
    assert chosen().startswith("battery gauge")
    lay(tmp_path, RAPL, under=POWERCAP)
    assert chosen().startswith("intel-rapl")
    lay(lay(tmp_path, TEGRA), ORIN_NANO_RAILS, under="sys/bus/i2c/devices/1-0040/hwmon/hwmon3")
    assert chosen().startswith("Jetson rail")
    lay(tmp_path, INA219, under=f"{HWMON}/hwmon2")
    assert chosen().startswith("INA power meter")
    assert chosen(answering(pmic_read_adc=PMIC)).startswith("Raspberry Pi PMIC")


def test_a_battery_is_chosen_only_until_it_is_plugged_in(tmp_path: Path) -> None:
    lay(tmp_path, BATTERY, under=f"{SUPPLY}/BAT0")
    assert choose_energy_source(tmp_path, run=no_commands).label.scope is Scope.DEVICE
    lay(tmp_path, {"status": "Charging"}, under=f"{SUPPLY}/BAT0")
    assert choose_energy_source(tmp_path, run=no_commands).label.provenance is Provenance.ESTIMATED


def test_the_estimate_is_cpu_seconds_times_the_constant_in_its_name() -> None:
    moments = iter([10.0, 13.0])
    cpu = iter([1.0, 5.0])
    source = CpuTimeEstimate(2.5, cpu_seconds=lambda: next(cpu), clock=lambda: next(moments))
    assert source.start().stop() == EnergyAmount(joules=10.0, seconds=3.0)
    assert source.label.source == "CPU seconds x 2.5 W a core"


def test_the_estimate_sees_the_work_of_this_process() -> None:
    source = CpuTimeEstimate(1.0)
    asleep = source.start().stop()
    measurement = source.start()
    assert sum(number * number for number in range(300_000)) > 0
    assert measurement.stop().joules > asleep.joules


def test_the_constant_depends_on_the_architecture() -> None:
    assert watts_per_core("aarch64") == watts_per_core("armv7l") < watts_per_core("x86_64")


def test_mains_and_usb_tell_whether_the_device_is_plugged(tmp_path: Path) -> None:
    assert plugged(tmp_path) is None
    lay(tmp_path, {**BATTERY, "status": "Unknown"}, under=f"{SUPPLY}/BAT0")
    lay(tmp_path, {"type": "Mains", "online": 0}, under=f"{SUPPLY}/AC")
    assert plugged(tmp_path) is False
    lay(tmp_path, {"type": "USB_PD", "online": 1}, under=f"{SUPPLY}/ucsi-source-psy-USBC000:001")
    assert plugged(tmp_path) is True


@pytest.mark.parametrize(
    ("status", "answer"), [("Discharging", False), ("Charging", True), ("Full", True), ("Unknown", None)]
)
def test_a_battery_alone_tells_it_by_its_status(tmp_path: Path, status: str, answer: bool | None) -> None:
    lay(tmp_path, {**BATTERY, "status": status}, under=f"{SUPPLY}/BAT0")
    assert plugged(tmp_path) is answer


def test_a_board_without_battery_is_not_called_unplugged(tmp_path: Path) -> None:
    lay(tmp_path, {"type": "USB", "online": 0}, under=f"{SUPPLY}/ucsi-source-psy-1-0008")
    assert plugged(tmp_path) is None


def test_supplies_of_other_devices_and_odd_files_tell_nothing(tmp_path: Path) -> None:
    lay(tmp_path, {**BATTERY, "scope": "Device"}, under=f"{SUPPLY}/hidpp_battery_0")
    lay(tmp_path, {"type": "Mains", "online": "yes"}, under=f"{SUPPLY}/AC")
    lay(tmp_path, {"online": 1}, under=f"{SUPPLY}/nameless")
    assert plugged(tmp_path) is None


def test_a_round_carries_the_label_of_its_source(tmp_path: Path) -> None:
    lay(tmp_path, {"type": "Mains", "online": 1}, under=f"{SUPPLY}/AC")
    energy = EnergyMeter(Fixed(EnergyAmount(12.5, 5.0, 9.8)), root=tmp_path, idle_watts=1.5).stop()
    assert (energy.joules, energy.sample_hertz, energy.idle_watts, energy.plugged) == (12.5, 9.8, 1.5, True)
    assert (energy.source, energy.scope, energy.provenance) == ("fixed", Scope.DEVICE, Provenance.MEASURED)


def test_a_source_that_fails_during_the_round_is_replaced_by_the_estimate(tmp_path: Path) -> None:
    energy = EnergyMeter(Fixed(None), root=tmp_path, idle_watts=1.5).stop()
    assert energy.provenance is Provenance.ESTIMATED
    assert energy.source.startswith("CPU seconds x ")
    assert energy.idle_watts is None  # it was that of the other source
    assert energy.sample_hertz is None


def test_a_plug_that_changed_during_the_round_is_not_known(tmp_path: Path) -> None:
    lay(tmp_path, {**BATTERY, "status": "Unknown"}, under=f"{SUPPLY}/BAT0")
    lay(tmp_path, {"type": "Mains", "online": 1}, under=f"{SUPPLY}/AC")
    meter = EnergyMeter(Fixed(EnergyAmount(1.0, 1.0)), root=tmp_path)
    lay(tmp_path, {"online": 0}, under=f"{SUPPLY}/AC")
    assert meter.stop().plugged is None


def test_idle_power_is_what_the_source_shows_while_nothing_is_done() -> None:
    slept: list[float] = []
    assert idle_watts(Fixed(EnergyAmount(3.0, 2.0)), 0.5, sleep=slept.append) == 1.5
    assert slept == [0.5]
    assert idle_watts(Fixed(None), 0.5, sleep=slept.append) is None


def test_idle_power_is_not_waited_for_where_it_cannot_be_told() -> None:
    def never(seconds: float) -> None:
        raise AssertionError("waited")

    assert idle_watts(CpuTimeEstimate(5.0), 10.0, sleep=never) is None
    assert idle_watts(Fixed(EnergyAmount(3.0, 2.0)), 0.0, sleep=never) is None


def test_an_interrupted_wait_ends_the_measurement() -> None:
    stopped: list[bool] = []

    class Watched:
        label = FIXED

        def start(self) -> "Watched":
            return self

        def stop(self) -> None:
            stopped.append(True)

    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    source: EnergySource = Watched()
    with pytest.raises(KeyboardInterrupt):
        idle_watts(source, 1.0, sleep=interrupted)
    assert stopped == [True]


def test_a_profile_gets_the_watts_under_load() -> None:
    power = power_source(Fixed(None), idle_watts=2.0, busy=EnergyAmount(30.0, 5.0))
    assert (power.source, power.idle_watts, power.busy_watts) == ("fixed", 2.0, 6.0)
    assert power_source(Fixed(None), idle_watts=None, busy=None).busy_watts is None
    assert power_source(Fixed(None), idle_watts=None, busy=EnergyAmount(0.0, 0.0)).busy_watts is None
