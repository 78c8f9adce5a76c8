"""The coordinator's own TLS keys, in its state folder: the one in use, and the next one, whose pin devices know.

    tls/current              number of the key in use, such as 3
    tls/key-3.pem            that key
    tls/key-4.pem            the next one
    tls/key-2.pem            the one before, for workers that were started with it; removed at the next rotation
    tls/certificate-3.pem    the certificate, made at the start and made again with the same key before it expires
    tls/served               number of the key that a coordinator was last started with
    tls/lock                 held while any of this is read or changed: several processes may start at once

A rotation makes one more key and then writes `current`, atomically: after a kill at any moment, there is either the old
state or the new one. Links are not followed, files are for their user alone, and a damaged key is never replaced: the
devices that pinned it would be lost.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgefl.artifacts.artifact_store import PRIVATE, write_atomically
from edgefl.errors import EdgeFLError, MissingDependencyError
from edgefl.pins import pin_of_key

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

__all__ = ["FOLDER", "TlsKey", "TlsKeys", "locked_keys"]

FOLDER = "tls"
_MOST_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class TlsKey:
    """A key in its file."""

    number: int
    path: Path
    private: "EllipticCurvePrivateKey"

    @property
    def pin(self) -> str:
        """The pin of the public key."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        form = PublicFormat.SubjectPublicKeyInfo
        return pin_of_key(self.private.public_key().public_bytes(Encoding.DER, form))

    @property
    def certificate(self) -> Path:
        """The file of its certificate."""
        return self.path.with_name(f"certificate-{self.number}.pem")


@contextlib.contextmanager
def locked_keys(state: Path) -> Iterator["TlsKeys"]:
    """Open the keys of a state folder; other processes wait until this context ends."""
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise MissingDependencyError("cryptography", action="Making a certificate", extra="coordinator") from None
    folder = state.resolve() / FOLDER
    try:
        if not folder.is_symlink():
            folder.mkdir(mode=0o700, exist_ok=True)
        _check_owned(folder, is_folder=True)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    except OSError as error:
        raise EdgeFLError(
            f"the keys in {folder} cannot be opened: {error.strerror}", fix="Look at the folder and at what is in it."
        ) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield TlsKeys(folder)
    finally:
        os.close(descriptor)


class TlsKeys:
    """The keys of a state folder, while it is locked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def current(self) -> TlsKey:
        """Return the key in use, or make the first one."""
        known = self._number("current")
        if known is None:  # a new folder, or one whose first start was interrupted
            known = min(self._numbers(), default=1)
            self._existing_or_new(known)
            self._write("current", known)
        return self._read(known)

    def next(self) -> TlsKey:
        """Return the next key; make it if it is missing."""
        return self._existing_or_new(self.current().number + 1)

    def note_served(self, key: TlsKey) -> None:
        """Remember that a coordinator was started with a key."""
        self._write("served", key.number)

    def has_served(self, key: TlsKey) -> bool:
        """Return whether a coordinator was started with a key."""
        return self._number("served") == key.number

    def rotate(self) -> TlsKey:
        """Make the next key the current one, and make another next one. Return the current one."""
        old, new = self.current(), self.next()
        self._existing_or_new(new.number + 1)
        self._write("current", new.number)
        for number in self._numbers():
            if number < old.number:
                for kind in ("key", "certificate"):
                    (self._folder / f"{kind}-{number}.pem").unlink(missing_ok=True)
        return new

    def _existing_or_new(self, number: int) -> TlsKey:
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        path = self._path(number)
        if not path.is_symlink() and not path.exists():
            made = ec.generate_private_key(ec.SECP256R1())
            write_atomically(path, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=PRIVATE)
        return self._read(number)

    def _read(self, number: int) -> TlsKey:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        path = self._path(number)
        try:
            key = load_pem_private_key(_content(path), None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, EllipticCurvePrivateKey):
            raise EdgeFLError(
                f"{path} is not a private key as the coordinator makes them", fix="Restore the file from a backup."
            )
        return TlsKey(number, path, key)

    def _path(self, number: int) -> Path:
        return self._folder / f"key-{number}.pem"

    def _numbers(self) -> list[int]:
        names = [path.stem.removeprefix("key-") for path in self._folder.glob("key-*.pem")]
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def _number(self, name: str) -> int | None:
        path = self._folder / name
        if not path.is_symlink() and not path.exists():
            return None
        text = _content(path).strip()
        if not (text.isdigit() and len(text) < 10):
            raise EdgeFLError(f"{path} does not contain the number of a key", fix="Restore the file from a backup.")
        return int(text)

    def _write(self, name: str, number: int) -> None:
        write_atomically(self._folder / name, f"{number}\n".encode(), mode=PRIVATE)


def _content(path: Path) -> bytes:
    """Return the content of a small file of ours."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise EdgeFLError(
            f"{path} cannot be read: {error.strerror}", fix="Restore the file from a backup; links are not followed."
        ) from None
    with os.fdopen(descriptor, "rb") as file:
        _check_owned(path, os.fstat(file.fileno()))
        return file.read(_MOST_BYTES)


def _check_owned(path: Path, found: os.stat_result | None = None, *, is_folder: bool = False) -> None:
    """Refuse what another user could have put there, or can read."""
    found = path.lstat() if found is None else found
    if not (stat.S_ISDIR if is_folder else stat.S_ISREG)(found.st_mode):
        kind = "a folder" if is_folder else "a file"
        raise EdgeFLError(f"{path} is not {kind}", fix="Remove it, or restore it from a backup.")
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise EdgeFLError(
            f"{path} belongs to another user, or others can open it",
            fix="If nobody has read it, make it yours with chown and chmod go=; else remove the folder, and pair "
            "every device again.",
        )
