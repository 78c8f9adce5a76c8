"""Several processes on one port: they share the work, are started again, and end with the first one."""

import os
import signal
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from edgefl.coordinator_process import children
from tests.cli.running_coordinator import coordinator, joining, write_federation

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""One for all: httpx would load the system's certificates for each request."""


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_federation_on_two_workers_ends_and_a_worker_that_dies_is_started_again(tmp_path: Path) -> None:
    file = write_federation(tmp_path, strategy="fine_tune_epochs = 1")
    with coordinator(tmp_path / "state", str(file), "--workers", "2") as running:
        wait_until(lambda: len(children(running.process.pid)) == 1)
        (worker,) = children(running.process.pid)
        with joining(running.url, running.key_of("digits"), tmp_path, 1, 2) as devices:
            time.sleep(1)
            os.kill(worker, signal.SIGKILL)
            for device in devices:
                _, said = device.communicate(timeout=120)
                assert device.returncode == 0, said
        wait_until(lambda: children(running.process.pid) not in (set(), {worker}))
        (again,) = children(running.process.pid)
        assert httpx.get(f"{running.url}/healthz").status_code == 200
    wait_until(lambda: not alive(again))


def test_metrics_are_those_of_all_workers_and_do_not_go_back_when_one_dies(tmp_path: Path) -> None:
    with coordinator(tmp_path / "state", "--workers", "3") as running:
        wait_until(lambda: len(children(running.process.pid)) == 2)
        head = {"Authorization": f"Bearer {(running.state / 'viewer-token').read_text().strip()}"}

        def get(path: str) -> httpx.Response:  # over a new connection, which any worker may accept
            return httpx.get(f"{running.url}{path}", headers=head, verify=NO_TLS)

        def scraped() -> dict[tuple[str, ...], float]:
            text = get("/metrics").text
            samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
            return {(one.name, *(one.labels[name] for name in sorted(one.labels))): one.value for one in samples}

        def count() -> float:
            return scraped().get(("edgefl_requests_total", "GET", "/healthz", "200"), 0.0)

        wait_until(lambda: scraped()["edgefl_workers",] == 3)
        for _ in range(60):
            assert get("/healthz").status_code == 200
        assert {count() for _ in range(12)} == {60.0}
        assert scraped()["edgefl_request_seconds_count", "GET", "/healthz"] == 60
        os.kill(children(running.process.pid).pop(), signal.SIGKILL)
        seen = [count() for _ in range(40)]
        assert set(seen) == {60.0}
        wait_until(lambda: scraped()["edgefl_workers",] == 3)
        get("/healthz")
        assert {count() for _ in range(12)} == {61.0}


def test_workers_do_not_outlive_the_first_process(tmp_path: Path) -> None:
    with coordinator(tmp_path / "state", "--workers", "3") as running:
        wait_until(lambda: len(children(running.process.pid)) == 2)
        others = children(running.process.pid)
        running.process.kill()
        wait_until(lambda: not any(map(alive, others)))
