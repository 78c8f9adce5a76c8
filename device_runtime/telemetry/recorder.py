"""Records what a task costs the device: one object around the task.

    with Recorder() as recorder:
        engine = load(...)
        recorder.loaded()
        for batch in batches:
            with recorder.step():
                train(batch)
        recorder.count_bytes(down=..., up=...)
    telemetry = recorder.telemetry(threads)

The trainer uses it. It knows nothing of engines, models or the network.
"""

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from device_runtime.telemetry.energy import EnergyMeter, EnergySource, choose_energy_source, idle_watts
from device_runtime.telemetry.latency import StepTimer
from device_runtime.telemetry.peak_memory import MemoryWatch
from device_runtime.telemetry.sysfs import ROOT
from device_runtime.telemetry.system_commands import Command, run
from device_runtime.telemetry.thermal import ThermalWatch
from device_runtime.telemetry.throttling import frequency_share
from edgefl.values import Energy, Memory, Telemetry, Thermal, Transfer

__all__ = ["Recorder"]


class Recorder:
    """Records one task. Create a new one for the next; two at the same time would disturb each other's memory peak.

    `source` is the energy source, by default the best available. `idle_seconds` is how long to measure the device's
    idle power before the task begins.
    """

    def __init__(
        self,
        *,
        root: Path = ROOT,
        run: Command = run,
        source: EnergySource | None = None,
        idle_seconds: float = 0.0,
    ) -> None:
        self._root, self._run = root, run
        self._source = source
        self._idle_seconds = idle_seconds
        self._down_bytes = self._up_bytes = 0
        self._timer: StepTimer | None = None
        self._watches: tuple[ThermalWatch, EnergyMeter, MemoryWatch] | None = None
        self._results: tuple[Thermal | None, Energy, Memory] | None = None
        self._frequency_share: float | None = None

    def __enter__(self) -> "Recorder":
        if self._timer is not None:
            raise RuntimeError("a Recorder records one task; create a new one")
        source = self._source or choose_energy_source(self._root, run=self._run)
        idle = idle_watts(source, self._idle_seconds)
        # Slowest start first, so that little of it falls into the task.
        thermal = ThermalWatch(self._root, run=self._run)
        energy = EnergyMeter(source, root=self._root, idle_watts=idle)
        self._watches = thermal, energy, MemoryWatch(self._root)
        self._timer = StepTimer()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._running.end()
        self._frequency_share = frequency_share(self._root)  # at once: the clock frequency drops when idle
        if self._watches is not None:
            thermal, energy, memory = self._watches
            joules, peak = energy.stop(), memory.stop()
            self._results = thermal.stop(), joules, peak

    def loaded(self) -> None:
        """Record that the engine is ready: the time since the task began is the load time."""
        self._running.loaded()

    @property
    def step_seconds(self) -> tuple[float, ...]:
        """The time of every step so far, for the checkpoint."""
        return self._running.seconds

    def recall(self, seconds: Sequence[float]) -> None:
        """Take over the steps of an earlier process that did not finish the task."""
        self._running.recall(seconds)

    def step(self) -> StepTimer:
        """Time one training step: `with recorder.step(): ...`."""
        return self._running

    def count_bytes(self, *, down: int = 0, up: int = 0) -> None:
        """Add network traffic."""
        self._down_bytes += down
        self._up_bytes += up

    def telemetry(self, threads: int) -> Telemetry:
        """Return what the task cost, after its end. `threads` is the number of threads of the engine."""
        if self._results is None:
            raise RuntimeError("telemetry is available after the task: call it after the 'with' block")
        thermal, energy, memory = self._results
        return Telemetry(
            latency=self._running.latency(),
            memory=memory,
            transfer=Transfer(down_bytes=self._down_bytes, up_bytes=self._up_bytes),
            threads=threads,
            energy=energy,
            thermal=thermal,
        )

    @property
    def joules(self) -> float:
        """The energy of the task after its end, however it ended; 0 before."""
        return 0.0 if self._results is None else self._results[1].joules

    def hints(self) -> dict[str, float]:
        """Return signs of slowing down that prove nothing by themselves, for `LocalResult.metrics`.

        `step_drift`: the steps of the last quarter over those of the first. `frequency_share`: the processor's clock at
        the end, as a share of its highest.
        """
        if self._results is None:
            raise RuntimeError("hints are available after the task: call it after the 'with' block")
        signs = {"step_drift": self._running.drift, "frequency_share": self._frequency_share}
        return {name: value for name, value in signs.items() if value is not None}

    @property
    def _running(self) -> StepTimer:
        if self._timer is None:
            raise RuntimeError("the task has not begun: use the Recorder in a 'with' statement")
        return self._timer
