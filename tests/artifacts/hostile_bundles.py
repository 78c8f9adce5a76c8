"""Zip files that harm whoever unpacks them carelessly, as bundles. `HOSTILE` has a builder for each by name."""

import io
import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace

from edgefl.artifacts.bundle import INFER, MANIFEST, TRAIN, Bundle, pack_bundle
from edgefl.values import digest_of, dumps
from tests.artifacts.hostile_graphs import HOSTILE as HOSTILE_GRAPHS
from tests.artifacts.hostile_graphs import spoiled
from tests.device_runtime.federation import bundle


def with_files(good: Bundle, files: Mapping[str, bytes]) -> Bundle:
    """A bundle with other files, whose manifest is right about them."""
    digests = {name: digest_of(data) for name, data in files.items()}
    return Bundle(replace(good.manifest, files=digests), good.graph, files)


def with_hostile_graph(how: str, name: str) -> bytes:
    """A packed bundle whose training or inference graph is hostile."""
    good = bundle()
    return pack_bundle(with_files(good, {**good.files, name: spoiled(good.files[name], how)}))


def _zip_of(more: Callable[[zipfile.ZipFile], None]) -> bytes:
    """A good bundle with something more in its zip."""
    good, stream = bundle(), io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in ({**good.files, MANIFEST: dumps(good.manifest).encode()}).items():
            archive.writestr(name, data)
        more(archive)
    return stream.getvalue()


def _entry(name: str, data: bytes = b"x", *, mode: int = 0, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    entry = zipfile.ZipInfo(name)
    entry.external_attr = mode << 16
    entry.compress_type = method
    return _zip_of(lambda archive: archive.writestr(entry, data))


def _same_length() -> bytes:
    name = "t" + TRAIN[1:-1] + "y"
    return _entry(name).replace(name.encode(), TRAIN.encode())


def _bomb() -> bytes:
    good = bundle()
    files = {**good.files, "zeros.bin": bytes(300 * 2**20)}
    manifest = with_files(good, files).manifest
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in ({**files, MANIFEST: dumps(manifest).encode()}).items():
            archive.writestr(name, data)
    return stream.getvalue()


def _bomb_that_lies() -> bytes:
    """The bomb, declaring in the zip's directory that it unpacks to 100 bytes."""
    data = bytearray(_bomb())
    at = data.rfind(b"zeros.bin")
    at = data.rfind(b"PK\x01\x02", 0, at)
    data[at + 24 : at + 28] = struct.pack("<L", 100)
    return bytes(data)


def _many_entries() -> bytes:
    def add(archive: zipfile.ZipFile) -> None:
        for number in range(12_000):
            archive.writestr(zipfile.ZipInfo(f"{number}"), b"")

    return _zip_of(add)


def _many_entries_that_lie() -> bytes:
    """Many entries, declared as one."""
    data = bytearray(_many_entries_of(70_000))
    data[-14:-10] = struct.pack("<2H", 1, 1)
    return bytes(data)


def _many_entries_of(count: int) -> bytes:
    """A directory of many entries that all point at the same file."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("a" * 30, b"")
    data = stream.getvalue()
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    directory = data[start:end] * count
    return data[:start] + directory + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, len(directory), start, 0)


def _zip64() -> bytes:
    data = _many_entries_of(2)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, 0, 1)
    return data[:-22] + locator + data[-22:]


HOSTILE: Mapping[str, Callable[[], bytes]] = {
    "an absolute path": lambda: _entry("/etc/cron.d/own"),
    "a path to the parent": lambda: _entry("../../own"),
    "a path of Windows": lambda: _entry("C:/own"),
    "a path with backslashes": lambda: _entry("..\\own"),
    "a link": lambda: _entry("link", b"/etc/passwd", mode=stat.S_IFLNK | 0o777),
    "a device": lambda: _entry("device", b"", mode=stat.S_IFCHR | 0o666),
    "a link named like a graph": lambda: _entry("more.onnx", b"/etc/passwd", mode=stat.S_IFLNK | 0o777),
    "a name twice": _same_length,
    "an old compression": lambda: _entry("own", bytes(1000), method=zipfile.ZIP_BZIP2),
    "a bomb": _bomb,
    "a bomb that lies": _bomb_that_lies,
    "thousands of entries": _many_entries,
    "thousands of entries declared as one": _many_entries_that_lie,
    "a directory elsewhere": _zip64,
    **{
        f"{name} with {how}": lambda how=how, name=name: with_hostile_graph(how, name)  # type: ignore[misc]
        for how in HOSTILE_GRAPHS
        for name in (TRAIN, INFER)
    },
}
