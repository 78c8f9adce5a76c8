"""Where a known data set is looked for, and what is said when it is not there.

Every format describes its sets as `Source` values; `edgefl.data.catalogue` lists and loads them. A set is looked
for in the folder that was given (and in its subfolder of the set's name), or else in `$EDGEFL_DATA/<name>`,
or else where a system package puts it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgefl.data.dataset import Dataset
from edgefl.errors import DataError, EdgeFLError

__all__ = ["Source", "ENVIRONMENT_VARIABLE", "no_places"]

ENVIRONMENT_VARIABLE = "EDGEFL_DATA"


def no_places() -> tuple[Path, ...]:
    """For sets that no package installs."""
    return ()


@dataclass(frozen=True, slots=True)
class Source:
    """A known data set: how it is found, read, and had when it is missing.

    `find` takes a folder or a file and says what `read` should be given, or None if the set is not there. It
    looks at names alone, so that listing every set reads no data.
    """

    name: str
    title: str
    looks_for: str
    how_to_get: str
    find: Callable[[Path], Path | None]
    read: Callable[[Path], Dataset]
    usual_places: Callable[[], tuple[Path, ...]] = no_places
    needs_package: Callable[[], EdgeFLError] | None = None

    def places(self, folder: Path | None) -> tuple[Path, ...]:
        """Every place to look at, in order."""
        if folder is not None:
            return (folder, folder / self.name)
        root = os.environ.get(ENVIRONMENT_VARIABLE)
        try:
            own = (Path(root).expanduser() / self.name,) if root else ()
        except RuntimeError as error:
            raise DataError(
                f"${ENVIRONMENT_VARIABLE} is {root!r}, whose user has no home here",
                fix="Set it to a folder, or unset it",
            ) from error
        return (*own, *self.usual_places())

    def locate(self, folder: Path | None = None) -> Path | None:
        """Where the set is, or None."""
        for place in self.places(folder):
            try:
                found = self.find(place)
            except OSError:  # a folder that may not be read holds no data for us
                continue
            if found is not None:
                return found
        return None

    def load(self, folder: Path | None = None) -> Dataset:
        """Read the set, or say how to get it."""
        found = self.locate(folder)
        if found is None:
            raise self._missing(folder)
        return self.read(found)

    def _missing(self, folder: Path | None) -> EdgeFLError:
        if self.needs_package is not None and folder is None:
            return self.needs_package()
        places = ", ".join(map(str, self.places(folder))) or f"no folder, as ${ENVIRONMENT_VARIABLE} is not set"
        problem = f"The data set {self.name!r} is not here: looked for {self.looks_for} in {places}"
        if self.needs_package is not None:
            return DataError(problem, fix=f"Leave --folder out. {self.how_to_get}")
        where = f"Then give that folder (--folder DIR), or keep it as ${ENVIRONMENT_VARIABLE}/{self.name}"
        return DataError(problem, fix=f"{self.how_to_get}. {where}")
