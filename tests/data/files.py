"""Small files in the published formats, for the tests of their readers."""

import gzip
import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def idx(array: Bytes) -> bytes:
    header = bytes((0, 0, 8, array.ndim))
    return header + b"".join(size.to_bytes(4, "big") for size in array.shape) + array.tobytes()


def idx_folder(
    folder: Path,
    *,
    train: int = 20,
    test: int = 10,
    packed: bool = True,
    prefix: tuple[str, str] = ("train", "t10k"),
) -> dict[str, Bytes]:
    """Four IDX files whose labels go round the ten classes, and the arrays that are in them."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    arrays: dict[str, Bytes] = {}
    for part, count in zip(prefix, (train, test), strict=True):
        arrays[f"{part}-images-idx3-ubyte"] = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)
        arrays[f"{part}-labels-idx1-ubyte"] = (np.arange(count) % 10).astype(np.uint8)
    for name, array in arrays.items():
        content = idx(array)
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    return arrays


def tar(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return stream.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def cifar_records(labels: list[list[int]], seed: int = 0) -> bytes:
    """Records whose label bytes are given and whose images are random."""
    rng = np.random.default_rng(seed)
    return b"".join(bytes(each) + rng.bytes(3072) for each in labels)


def cifar10_members() -> dict[str, bytes]:
    folder = "cifar-10-batches-bin"
    names = [f"data_batch_{number}.bin" for number in range(1, 6)]
    members = {f"{folder}/{name}": cifar_records([[n], [9 - n]], n) for n, name in enumerate(names)}
    members[f"{folder}/test_batch.bin"] = cifar_records([[3], [4], [5]], 9)
    members[f"{folder}/batches.meta.txt"] = b"\n".join(b"class%d" % n for n in range(10)) + b"\n"
    return members


def cifar100_members() -> dict[str, bytes]:
    return {
        "cifar-100-binary/train.bin": cifar_records([[19, 99], [0, 1], [5, 42]]),
        "cifar-100-binary/test.bin": cifar_records([[3, 7]]),
        "cifar-100-binary/fine_label_names.txt": "\n".join(f"fine{n}" for n in range(100)).encode(),
    }


def har_members(*, train: int = 12, test: int = 6) -> dict[str, bytes]:
    rng = np.random.default_rng(3)
    members = {"activity_labels.txt": b"1 WALKING\n2 UP\n3 DOWN\n4 SITTING\n5 STANDING\n6 LAYING\n"}
    for part, count, people in (("train", train, (1, 3, 30)), ("test", test, (2, 4))):
        rows = rng.uniform(-1, 1, (count, 561))
        lines = ["".join(f" {value: .7e}" for value in row) for row in rows]
        members[f"{part}/X_{part}.txt"] = ("\n".join(lines) + "\n").encode()
        members[f"{part}/y_{part}.txt"] = "".join(f"{1 + n % 6}\n" for n in range(count)).encode()
        members[f"{part}/subject_{part}.txt"] = "".join(f"{people[n % len(people)]}\n" for n in range(count)).encode()
    return {f"UCI HAR Dataset/{name}": content for name, content in members.items()}


def leaf(users: dict[str, list[tuple[str, str]]]) -> bytes:
    frame = {
        "users": list(users),
        "num_samples": [len(samples) for samples in users.values()],
        "user_data": {
            user: {"x": [x for x, _ in samples], "y": [y for _, y in samples]} for user, samples in users.items()
        },
    }
    return json.dumps(frame).encode()


def unpack(folder: Path, members: dict[str, bytes]) -> None:
    for name, content in members.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
