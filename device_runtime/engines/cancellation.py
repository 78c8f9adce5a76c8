"""Cancels what an engine is computing when its task must stop: a graph from elsewhere may not end by itself."""

import threading

from device_runtime.engines.engine import EngineStep, Predictor

__all__ = ["Cancellation"]

_LOOK_SECONDS = 0.2


class Cancellation:
    """Looks at an event from a thread of its own, and cancels what runs once it is set. Without an event it does
    nothing."""

    def __init__(self, stop: threading.Event | None) -> None:
        self._stop, self._ended = stop, threading.Event()
        self._running: list[EngineStep | Predictor] = []
        self._thread = threading.Thread(target=self._look, name="edgefl-cancellation", daemon=True)
        self.is_done = False
        """Whether something was cancelled: an error of the engine then means that."""

    def watch(self, *running: EngineStep | Predictor | None) -> None:
        """Cancel these when the time comes."""
        self._running += [one for one in running if one is not None]

    def __enter__(self) -> "Cancellation":
        if self._stop is not None:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._stop is not None:
            self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            if self._stop is not None and self._stop.is_set():
                self.is_done = True
                for running in list(self._running):
                    running.cancel()
