"""Where a known data set is looked for, and the error if it is missing.

Every format describes its data sets as `Source` values; `edgefl.data.catalogue` lists and loads them. A data set is
looked for in the given folder (and in its subfolder of that name), otherwise in `$EDGEFL_DATA/<name>`, which is
`~/edgefl-data/<name>` where the variable is not set, otherwise where a system package puts it.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edgefl.data.dataset import Dataset
from edgefl.errors import DataError, EdgeFLError

__all__ = ["Source", "ENVIRONMENT_VARIABLE", "USUAL_FOLDER", "data_folder", "no_places"]

ENVIRONMENT_VARIABLE = "EDGEFL_DATA"
USUAL_FOLDER = "~/edgefl-data"


def data_folder() -> Path:
    """Return the folder of data sets: the variable's, or one in the user's home; without a home, `~` stays in it."""
    root = os.environ.get(ENVIRONMENT_VARIABLE)
    try:
        return Path(root or USUAL_FOLDER).expanduser()
    except RuntimeError as error:
        if not root:
            return Path(USUAL_FOLDER)
        raise DataError(
            f"${ENVIRONMENT_VARIABLE} is {root!r}, whose user has no home folder",
            fix="Set it to a folder, or unset it",
        ) from error


def no_places() -> tuple[Path, ...]:
    """For data sets that no system package installs."""
    return ()


@dataclass(frozen=True, slots=True)
class Source:
    """A known data set: how to find, read and get it.

    `find` takes a folder or a file and returns what to pass to `read`, or None if the data set is not there. It checks
    names only, so listing data sets reads no data.
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
        """Return every place to look, in order."""
        if folder is not None:
            return (folder, folder / self.name)
        return (data_folder() / self.name, *self.usual_places())

    def locate(self, folder: Path | None = None) -> Path | None:
        """Return where the data set is, or None."""
        for place in self.places(folder):
            try:
                found = self.find(place)
            except OSError:  # an unreadable folder has no data for us
                continue
            if found is not None:
                return found
        return None

    def load(self, folder: Path | None = None) -> Dataset:
        """Read the data set, or raise an error that says how to get it."""
        found = self.locate(folder)
        if found is None:
            raise self._missing(folder)
        return self.read(found)

    def _missing(self, folder: Path | None) -> EdgeFLError:
        if self.needs_package is not None and folder is None:
            return self.needs_package()
        places = ", ".join(map(str, self.places(folder)))
        problem = f"The data set {self.name!r} was not found: looked for {self.looks_for} in {places}"
        if self.needs_package is not None:
            return DataError(problem, fix=f"Omit --folder. {self.how_to_get}")
        where = (
            f"Then pass that folder (--folder DIR), or keep it as ${ENVIRONMENT_VARIABLE}/{self.name} "
            f"(without the variable: {USUAL_FOLDER}/{self.name})"
        )
        return DataError(problem, fix=f"{self.how_to_get}. {where}")
