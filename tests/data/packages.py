"""Small packages as npm would pack them, a stand-in for npm itself, and PNGs written by hand."""

import base64
import hashlib
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.real_data.npm import NpmPackage
from tests.data.files import tar

Bytes = NDArray[np.uint8]
PNG_FILTERS = range(5)


def _paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda near: abs(guess - near))  # the first of equals


def _filtered(kind: int, row: bytes, before: bytes) -> bytes:
    """A row as PNG stores it: the difference from what its filter predicts, of neighbours three bytes away."""
    stored = bytearray()
    for at, value in enumerate(row):
        left, corner = (row[at - 3], before[at - 3]) if at >= 3 else (0, 0)
        above = before[at]
        stored.append((value - (0, left, above, (left + above) // 2, _paeth(left, above, corner))[kind]) % 256)
    return bytes((kind, *stored))


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(pixels: Bytes, kinds: list[int]) -> bytes:
    """A PNG of rows x columns x RGB, with the filters of `kinds` in turn."""
    height, width, _ = pixels.shape
    rows = [row.tobytes() for row in pixels]
    before = [bytes(3 * width), *rows]
    stored = b"".join(_filtered(kinds[n % len(kinds)], row, before[n]) for n, row in enumerate(rows))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (_chunk(b"IHDR", header), _chunk(b"IDAT", zlib.compress(stored)), _chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def cifar_package(images: dict[str, Bytes], labels: dict[str, list[int]]) -> bytes:
    """A package with pictures of images (n x 3 x 32 x 32) by name, and lists of labels by file."""
    members = {
        f"package/{name}.png": png(each.reshape(-1, 3, 1024).transpose(0, 2, 1).copy(), [4])
        for name, each in images.items()
    }
    return tar(members | {f"package/{file}": json.dumps(each).encode() for file, each in labels.items()})


def pinned(content: bytes) -> NpmPackage:
    """The pin of a package with this content."""
    return NpmPackage("small", "1.0.0", f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}")


def npm_that_gives(folder: Path, content: bytes | None, words: str = "") -> Path:
    """A folder for the path, with an npm that leaves this content where it is started, or fails with some words."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "content").write_bytes(content or b"")
    act = (
        f"import shutil; shutil.copy({str(folder / 'content')!r}, 'small-1.0.0.tgz')"
        if content is not None
        else f"import sys; print({words!r}, file=sys.stderr); sys.exit(1)"
    )
    npm = folder / "npm"
    npm.write_text(f"#!{sys.executable}\n{act}\n", encoding="utf-8")
    npm.chmod(0o755)
    return folder
