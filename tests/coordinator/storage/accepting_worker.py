"""A worker that takes updates until it is killed, and prints the tasks whose updates it acknowledged.

python -m tests.coordinator.storage.accepting_worker DATABASE BLOBS
"""

import sys
from collections.abc import Sequence
from dataclasses import replace

from coordinator.storage.open import open_blobs, open_store
from coordinator.storage.records import Upload, Verdict
from edgefl.values import digest_of
from tests.coordinator.storage.small_federation import an_upload

DEVICES = [f"fed-{number:03d}" for number in range(4)]
TASKS = 100


def batches() -> list[list[Upload]]:
    """All updates: one of each device at a time."""
    return [[update_of(device, number) for device in DEVICES] for number in range(TASKS)]


def update_of(device: str, number: int) -> Upload:
    """An update of one of a device's tasks."""
    upload = an_upload(device, number)
    return replace(upload, update=digest_of(body_of(upload)))


def body_of(upload: Upload) -> bytes:
    """Long enough to be caught half written."""
    return upload.task.encode() * 10_000


def main(arguments: Sequence[str]) -> None:
    """Keep the bodies of a batch, then accept it, then say so."""
    store, blobs = open_store(arguments[0]), open_blobs(arguments[1])
    for batch in batches():
        blobs.put_all([body_of(upload) for upload in batch])
        for upload, verdict in zip(batch, store.uploads.accept(batch), strict=True):
            if verdict is Verdict.ACCEPTED:
                sys.stdout.write(f"{upload.task} {upload.update}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
