"""A worker that is killed in the middle of its batches: what it acknowledged is there, all the rest can come again."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from coordinator.storage.open import open_blobs, open_store
from coordinator.storage.records import Verdict
from coordinator.storage.store import Store
from edgefl.values import digest_of
from tests.coordinator.storage.accepting_worker import DEVICES, TASKS, batches
from tests.coordinator.storage.small_federation import a_round, a_task, running

ROOT = Path(__file__).parents[3]


def test_a_killed_worker_loses_nothing_that_it_acknowledged(store: Store, url: str, tmp_path: Path) -> None:
    assert running(store, len(DEVICES)) == DEVICES
    tasks = [replace(a_task(device, number), round=0) for device in DEVICES for number in range(TASKS)]
    assert store.rounds.open(a_round(), tasks, [])
    acknowledged: dict[str, str] = {}
    for lines in (1, 41):  # at its first batch, and later
        acknowledged |= killed_after(lines, url, tmp_path)
    assert 0 < len(acknowledged) < len(tasks)

    reopened, blobs = open_store(url), open_blobs(str(tmp_path))
    counted = {task.id: task.update for task in reopened.tasks.counted("fed", 0)}
    assert acknowledged.items() <= counted.items()
    assert all(blobs.get(digest) for digest in counted.values() if digest)
    for path in (tmp_path / "content").glob("*/*"):
        assert digest_of(path.read_bytes()) == f"sha256:{path.name}"

    verdicts = [verdict for batch in batches() for verdict in reopened.uploads.accept(batch)]
    assert verdicts.count(Verdict.ALREADY) == len(counted)
    assert verdicts.count(Verdict.ACCEPTED) == len(tasks) - len(counted)
    assert {device.done for device in reopened.devices.of("fed")} == {TASKS}
    reopened.close()
    blobs.close()


def killed_after(lines: int, url: str, folder: Path) -> dict[str, str]:
    """Run a worker, kill it when it has said so much, and return what it said in whole lines."""
    command = [sys.executable, "-m", "tests.coordinator.storage.accepting_worker", url, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as worker:
        assert worker.stdout is not None
        heard = [worker.stdout.readline() for _ in range(lines)]
        worker.kill()
        heard += worker.stdout.readlines()
    assert heard[0], "the worker died of itself"
    return dict(line.split() for line in heard if line.endswith("\n"))
