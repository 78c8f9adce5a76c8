"""Finished runs, one file each, named by their settings, so that different settings are different runs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from edgefl.artifacts.artifact_store import write_atomically
from edgefl.values import digest_of

__all__ = ["Ledger"]


class Run(Protocol):
    """What is to be run: of one study or another."""

    @property
    def setup(self) -> Any:
        """The dataclass of what is compared; it has a name."""
        ...

    @property
    def entry(self) -> Any:
        """The dataclass of the method; it has a label."""
        ...

    @property
    def seed(self) -> int:
        """The seed."""
        ...


class Ledger:
    """A folder of finished runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def known(self, wanted: Run) -> dict[str, Any] | None:
        """Return what a run gave, or None if it was not done or failed."""
        try:
            found: dict[str, Any] = json.loads(self._file(wanted).read_text())
        except (OSError, ValueError):
            return None
        return None if "error" in found else found

    def keep(self, wanted: Run, found: dict[str, Any]) -> None:
        """Keep what a run gave."""
        write_atomically(self._file(wanted), json.dumps(found, indent=1).encode())

    def _file(self, wanted: Run) -> Path:
        question = json.dumps([asdict(wanted.setup), asdict(wanted.entry)], sort_keys=True, default=str)
        digest = digest_of(question.encode()).removeprefix("sha256:")[:10]
        label = wanted.entry.label.replace(" ", "-")
        file: Path = self._folder / wanted.setup.name / f"{label}-{wanted.seed}-{digest}.json"
        return file
