"""What devices show: files and command output in the form that their kernels and firmware write them.

Written after the kernel's documents of each driver and after output that owners of the devices published; the numbers
are made up where they do not matter. `lay` puts files below a root, as they would lie below / on the device.
"""

import contextlib
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from device_runtime.telemetry.system_commands import Command

NOBODY = 65534

Files = dict[str, str | int | bytes]
"""What files below a folder hold, by their paths."""


def lay(root: Path, files: Mapping[str, str | int | bytes], *, under: str = "") -> Path:
    """Write the files below the root; numbers and texts end in a new line, as the kernel's do."""
    for name, content in files.items():
        path = root / under / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else f"{content}\n".encode())
    return root


def no_commands(words: Sequence[str]) -> str | None:
    """A system without any of the commands."""
    return None


def answering(**answers: str | Callable[[], str | None] | None) -> Command:
    """A system whose vcgencmd knows these sub-commands."""

    def run(words: Sequence[str]) -> str | None:
        assert words[0] == "vcgencmd", words
        answer = answers.get(words[1])
        return answer() if callable(answer) else answer

    return run


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """As root every file can be read; so, if tests run as root, be nobody for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextlib.contextmanager
def new_pages(size: int) -> Iterator[None]:
    """Take memory that is new to this process; `np.ones` may be served from memory that a large process has freed."""
    with mmap.mmap(-1, size) as block:
        for page in range(0, size, mmap.PAGESIZE):
            block[page] = 1
        yield


# Raspberry Pi 5 with four busy cores. EXT5V and BATT have volts only.
PMIC = """\
 3V7_WL_SW_A current(0)=0.09368929A
   3V3_SYS_A current(1)=0.08783370A
   1V8_SYS_A current(2)=0.18054710A
  DDR_VDD2_A current(3)=0.22543980A
  DDR_VDDQ_A current(4)=0.06666720A
   1V1_SYS_A current(5)=0.17566740A
    0V8_SW_A current(6)=0.37670900A
  VDD_CORE_A current(7)=6.22421000A
   3V3_DAC_A current(17)=0.00006105A
   3V3_ADC_A current(18)=0.00036630A
   0V8_AON_A current(16)=0.00305250A
      HDMI_A current(22)=0.02417580A
 3V7_WL_SW_V volt(8)=3.69977600V
   3V3_SYS_V volt(9)=3.31003300V
   1V8_SYS_V volt(10)=1.80512600V
  DDR_VDD2_V volt(11)=1.10476100V
  DDR_VDDQ_V volt(12)=0.60146460V
   1V1_SYS_V volt(13)=1.11025500V
    0V8_SW_V volt(14)=0.80146440V
  VDD_CORE_V volt(15)=0.86173300V
   3V3_DAC_V volt(20)=3.31318300V
   3V3_ADC_V volt(21)=3.30677300V
   0V8_AON_V volt(19)=0.80029220V
      HDMI_V volt(23)=5.08664000V
     EXT5V_V volt(24)=5.09066000V
      BATT_V volt(25)=0.00000000V
"""

# Raspberry Pi 4 and earlier, and any command that the firmware does not know.
UNKNOWN_TO_FIRMWARE = 'error=1 error_msg="Command not registered"\n'

INA219: Files = {
    "name": "ina219",
    "in0_input": 12,
    "in1_input": 5084,
    "curr1_input": 1212,
    "power1_input": 6160000,
    "shunt_resistor": 10000,
    "update_interval": 1,
}

# Jetson Orin Nano; in4 to in7 are shunt voltages and their sum.
ORIN_NANO_RAILS: Files = {
    "name": "ina3221",
    "in1_label": "VDD_IN",
    "in1_enable": 1,
    "in1_input": 4960,
    "curr1_input": 1088,
    "in2_label": "VDD_CPU_GPU_CV",
    "in2_enable": 1,
    "in2_input": 4952,
    "curr2_input": 160,
    "in3_label": "VDD_SOC",
    "in3_enable": 1,
    "in3_input": 4952,
    "curr3_input": 280,
    "in4_input": 5440,
    "in5_input": 800,
    "in6_input": 1400,
    "in7_input": 7640,
    "in7_label": "sum of shunt voltages",
    "curr4_input": 1528,
}

# AGX Orin has two chips and no rail for the whole module; a channel that leads nowhere is called NC.
AGX_ORIN_RAILS: tuple[Files, ...] = (
    {
        "name": "ina3221",
        "in1_label": "VDD_GPU_SOC",
        "in1_input": 19000,
        "curr1_input": 200,
        "in2_label": "VDD_CPU_CV",
        "in2_input": 19000,
        "curr2_input": 40,
        "in3_label": "VIN_SYS_5V0",
        "in3_input": 4968,
        "curr3_input": 980,
        "in7_label": "sum of shunt voltages",
        "in7_input": 760,
        "curr4_input": 240,
    },
    {
        "name": "ina3221",
        "in1_label": "NC",
        "in1_input": 0,
        "curr1_input": 0,
        "in2_label": "VDDQ_VDD2_1V8AO",
        "in2_input": 4968,
        "curr2_input": 80,
        "in3_label": "NC",
        "in3_input": 0,
        "curr3_input": 0,
    },
)
TEGRA: Files = {"proc/device-tree/compatible": b"nvidia,p3768-0000+p3767-0005\0nvidia,p3767-0005\0nvidia,tegra234\0"}

# A laptop: one package with its parts, the platform, and the second view of the package.
RAPL: Files = {
    "intel-rapl:0/name": "package-0",
    "intel-rapl:0/energy_uj": 1_000_000,
    "intel-rapl:0/max_energy_range_uj": 262_143_328_850,
    "intel-rapl:0:0/name": "core",
    "intel-rapl:0:0/energy_uj": 700_000,
    "intel-rapl:0:0/max_energy_range_uj": 262_143_328_850,
    "intel-rapl:0:1/name": "uncore",
    "intel-rapl:0:1/energy_uj": 90_000,
    "intel-rapl:1/name": "psys",
    "intel-rapl:1/energy_uj": 5_000_000,
    "intel-rapl:1/max_energy_range_uj": 262_143_328_850,
    "intel-rapl-mmio:0/name": "package-0",
    "intel-rapl-mmio:0/energy_uj": 1_000_000,
}
POWERCAP = "sys/class/powercap"
SUPPLY = "sys/class/power_supply"
HWMON = "sys/class/hwmon"

BATTERY: Files = {
    "type": "Battery",
    "status": "Discharging",
    "present": 1,
    "voltage_now": 11_400_000,
    "power_now": 8_550_000,
    "energy_now": 41_230_000,
    "energy_full": 50_100_000,
    "capacity": 82,
}

STATUS = """\
Name:\tpython3
State:\tR (running)
Pid:\t4242
VmPeak:\t  412340 kB
VmSize:\t  398120 kB
VmLck:\t       0 kB
VmHWM:\t  {peak} kB
VmRSS:\t  {current} kB
RssAnon:\t   61020 kB
Threads:\t3
"""

MEMINFO = """\
MemTotal:        8245244 kB
MemFree:         5010208 kB
MemAvailable:    7340032 kB
Buffers:           71004 kB
Cached:          2241356 kB
SwapCached:            0 kB
"""
