"""Reads an APK: where its files begin, and which classes its dex files define."""

import struct
from dataclasses import dataclass
from pathlib import Path

END_RECORD, ENTRY, LOCAL = 22, 46, 30


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of an APK: how it is stored (0 means as it is), and where its content begins."""

    name: str
    method: int
    start: int
    content: bytes


def read_apk(path: Path) -> dict[str, StoredFile]:
    """Return the files of an APK by name, read from the zip format's own structures."""
    data = path.read_bytes()
    end = data[-END_RECORD:]
    assert end[:4] == b"PK\5\6", "a zip file without a comment ends with its end record"
    count, _, at = struct.unpack("<HII", end[10:20])
    files = {}
    for _ in range(count):
        assert data[at : at + 4] == b"PK\1\2"
        (method,) = struct.unpack_from("<H", data, at + 10)
        (size,) = struct.unpack_from("<I", data, at + 20)
        name_size, extra_size, comment_size = struct.unpack_from("<HHH", data, at + 28)
        (header,) = struct.unpack_from("<I", data, at + 42)
        name = data[at + ENTRY : at + ENTRY + name_size].decode()
        start = header + LOCAL + sum(struct.unpack_from("<HH", data, header + 26))
        files[name] = StoredFile(name, method, start, data[start : start + size])
        at += ENTRY + name_size + extra_size + comment_size
    return files


def dex_classes(dex: bytes) -> set[str]:
    """Return the names of the classes that a dex file defines (not those that it only refers to)."""
    strings, types = struct.unpack_from("<I", dex, 0x3C)[0], struct.unpack_from("<I", dex, 0x44)[0]
    count, classes = struct.unpack_from("<II", dex, 0x60)
    names = set()
    for i in range(count):
        (type_index,) = struct.unpack_from("<I", dex, classes + 32 * i)
        (string_index,) = struct.unpack_from("<I", dex, types + 4 * type_index)
        (at,) = struct.unpack_from("<I", dex, strings + 4 * string_index)
        while dex[at] & 0x80:  # the length in UTF-16 units, seven bits a byte
            at += 1
        at += 1
        names.add(dex[at : dex.index(b"\0", at)].decode()[1:-1].replace("/", "."))
    return names


def apk_classes(files: dict[str, StoredFile]) -> set[str]:
    """Return the names of all classes of an APK."""
    return set().union(*(dex_classes(file.content) for name, file in files.items() if name.endswith(".dex")))
