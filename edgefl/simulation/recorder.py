"""A simulated device's telemetry: what its profile predicts, labelled as an estimate.

What a task takes here says nothing about the device that it is simulated for. And as a report carries its telemetry,
measured times would make the bytes of an upload differ from run to run.
"""

from types import TracebackType

from device_runtime.telemetry import Recorder
from device_runtime.telemetry.latency import StepTimer
from edgefl.values import Latency, Memory, Prediction, Provenance, Scope, Telemetry, Transfer

__all__ = ["PredictedRecorder"]

_SOURCE = "prediction from the profile"


class PredictedRecorder(Recorder):
    """Times steps for the simulation, and reports what was predicted."""

    def __init__(self, predicted: Prediction | None) -> None:
        super().__init__()
        self._predicted = predicted or Prediction()

    def __enter__(self) -> "PredictedRecorder":
        self._timer = StepTimer()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._running.end()

    @property
    def joules(self) -> float:
        """The predicted joules; 0 if there is no prediction."""
        return self._predicted.joules or 0.0

    def hints(self) -> dict[str, float]:
        """Nothing slows a simulated device down."""
        return {}

    def telemetry(self, threads: int) -> Telemetry:
        """Return what was predicted."""
        seconds, steps = self._predicted.seconds or 0.0, max(self._running.steps, 1)
        step, peak = seconds / steps, self._predicted.peak_bytes or 0
        return Telemetry(
            latency=Latency(
                load_seconds=0.0,
                first_step_seconds=step,
                min_step_seconds=step,
                p50_step_seconds=step,
                p90_step_seconds=step,
                steps_measured=steps,
                round_seconds=seconds,
                source=_SOURCE,
                scope=Scope.PROCESS,
                provenance=Provenance.ESTIMATED,
            ),
            memory=Memory(
                baseline_bytes=0,
                peak_bytes=peak,
                source=_SOURCE,
                scope=Scope.PROCESS,
                provenance=Provenance.ESTIMATED,
            ),
            transfer=Transfer(down_bytes=self._down_bytes, up_bytes=self._up_bytes),
            threads=threads,
        )
