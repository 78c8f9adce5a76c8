import threading

from device_runtime.telemetry.clock import PeriodicThread


def test_periodic_acts_again_and_again_until_stopped() -> None:
    calls: list[int] = []
    enough = threading.Event()

    def act() -> None:
        calls.append(1)
        if len(calls) == 3:
            enough.set()

    periodic = PeriodicThread(act, seconds=0.001)
    assert enough.wait(timeout=30)
    periodic.stop()
    assert "edgefl-sampler" not in {thread.name for thread in threading.enumerate()}


def test_periodic_waits_a_period_before_it_acts_first() -> None:
    calls: list[int] = []
    PeriodicThread(lambda: calls.append(1), seconds=3600).stop()
    assert calls == []
