"""Compiled programs on disk, by what they were compiled from.

A program is found by its specification, the versions of torch and ExecuTorch, and the source of the lowering: when one
of them changes, it is compiled again. Files are written atomically, the document last, so a compilation that is killed
leaves nothing that would be taken for a program. Damaged files count as missing.
"""

import hashlib
import importlib.metadata
import os
from functools import cache
from pathlib import Path

from edgefl.artifacts.artifact_store import write_atomically
from edgefl.errors import EdgeFLError
from edgefl.values import Program, ProgramSpec, digest_of, dumps, loads

__all__ = ["ProgramCache", "default_folder"]

VARIABLE = "EDGEFL_CACHE"
"""The environment variable that names the folder of caches."""


def default_folder() -> Path:
    """Return the folder of compiled programs: that of $EDGEFL_CACHE, or of the user's own cache."""
    given = os.environ.get(VARIABLE)
    return (Path(given) if given else Path.home() / ".cache" / "edgefl") / "programs"


class ProgramCache:
    """A folder of compiled programs."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = default_folder() if folder is None else folder

    def get(self, spec: ProgramSpec) -> tuple[Program, bytes] | None:
        """Return a program and its file, or None if it was not compiled yet with these versions."""
        stem = self._stem(spec)
        try:
            program = loads(Program, stem.with_suffix(".json").read_bytes())
            pte = stem.with_suffix(".pte").read_bytes()
        except (OSError, EdgeFLError):
            return None
        return (program, pte) if program.spec == spec and digest_of(pte) == program.pte else None

    def put(self, program: Program, pte: bytes) -> None:
        """Store a program."""
        stem = self._stem(program.spec)
        write_atomically(stem.with_suffix(".pte"), pte)
        write_atomically(stem.with_suffix(".json"), dumps(program).encode())

    def _stem(self, spec: ProgramSpec) -> Path:
        return self.folder / hashlib.sha256(f"{spec.key} {_compiler()}".encode()).hexdigest()


@cache
def _compiler() -> str:
    """Return what a program depends on besides its specification."""
    source = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        source.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("torch", "executorch")]
    return ", ".join([*versions, source.hexdigest()])
