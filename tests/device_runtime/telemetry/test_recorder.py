import threading
from pathlib import Path

import numpy as np
import pytest

from device_runtime.telemetry import Recorder
from edgefl.errors import EdgeFLError
from edgefl.values import Provenance, Scope, Telemetry, dumps, loads
from tests.device_runtime.telemetry.captured import PMIC, Files, answering, lay, new_pages, no_commands


def work(recorder: Recorder, steps: int) -> None:
    matrix = np.ones((60, 60))
    for _ in range(steps):
        with recorder.step():
            matrix = matrix @ matrix / 60
    assert matrix[0, 0] == 1


def samplers() -> int:
    return sum(thread.name == "edgefl-sampler" for thread in threading.enumerate())


def test_a_task_on_this_machine_is_recorded_whole() -> None:
    with Recorder() as recorder:
        recorder.loaded()
        work(recorder, 20)
        with new_pages(50_000_000):
            pass
        recorder.count_bytes(down=1000)
        recorder.count_bytes(down=24, up=7)
    telemetry = recorder.telemetry(threads=2)
    assert telemetry.latency.steps_measured == 19
    assert telemetry.latency.provenance is Provenance.MEASURED
    assert telemetry.latency.round_seconds >= 19 * telemetry.latency.min_step_seconds
    assert telemetry.memory.peak_bytes - telemetry.memory.baseline_bytes >= 45_000_000
    assert telemetry.energy is not None
    assert telemetry.energy.joules > 0
    assert (telemetry.transfer.down_bytes, telemetry.transfer.up_bytes, telemetry.threads) == (1024, 7, 2)
    assert loads(Telemetry, dumps(telemetry)) == telemetry
    assert samplers() == 0


def test_a_task_on_a_raspberry_pi_is_labelled_with_its_instruments(tmp_path: Path) -> None:
    lay(tmp_path, {"type": "cpu-thermal", "temp": 55000}, under="sys/class/thermal/thermal_zone0")
    vcgencmd = answering(pmic_read_adc=PMIC, get_throttled="throttled=0x0\n")
    with Recorder(root=tmp_path, run=vcgencmd, idle_seconds=0.01) as recorder:
        work(recorder, 3)
    telemetry = recorder.telemetry(threads=4)
    assert telemetry.energy is not None
    assert telemetry.energy.source.startswith("Raspberry Pi PMIC")
    assert (telemetry.energy.scope, telemetry.energy.provenance) == (Scope.DEVICE, Provenance.MEASURED)
    assert telemetry.energy.idle_watts == pytest.approx(7.239819)
    assert telemetry.energy.sample_hertz is not None
    assert telemetry.thermal is not None
    assert (telemetry.thermal.start_celsius, telemetry.thermal.throttled) == (55.0, False)


def test_a_task_that_fails_leaves_no_thread_and_keeps_its_error(tmp_path: Path) -> None:
    recorder = Recorder(root=tmp_path, run=answering(pmic_read_adc=PMIC))

    def fail() -> None:
        with recorder:
            work(recorder, 2)
            assert samplers() > 0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert samplers() == 0
    assert recorder.telemetry(threads=1).latency.steps_measured == 1


def test_a_task_without_steps_says_what_is_missing() -> None:
    with Recorder() as recorder:
        recorder.loaded()
    with pytest.raises(EdgeFLError, match="no training step"):
        recorder.telemetry(threads=1)


def test_hints_tell_of_slowing_down(tmp_path: Path) -> None:
    policy: Files = {"scaling_cur_freq": 600_000, "cpuinfo_max_freq": 2_400_000}
    lay(tmp_path, policy, under="sys/devices/system/cpu/cpufreq/policy0")
    with Recorder(root=tmp_path, run=no_commands) as recorder:
        work(recorder, 12)
    hints = recorder.hints()
    assert hints["frequency_share"] == 0.25
    assert hints["step_drift"] > 0


def test_hints_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    with Recorder(root=tmp_path, run=no_commands) as recorder:
        work(recorder, 2)
    assert recorder.hints() == {}


def test_a_recorder_is_used_in_one_with_statement() -> None:
    recorder = Recorder()
    with pytest.raises(RuntimeError, match="'with' statement"):
        recorder.step()
    with recorder:
        work(recorder, 1)
        with pytest.raises(RuntimeError, match="after the 'with' block"):
            recorder.telemetry(threads=1)
        with pytest.raises(RuntimeError, match="after the 'with' block"):
            recorder.hints()
    with pytest.raises(RuntimeError, match="create a new one"), recorder:
        pass
