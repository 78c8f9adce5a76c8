"""Which programs each federation has, for planning, and which ones plans could have used.

Rounds are planned several times a second where a federation waits for devices, so both are remembered for a moment.
"""

import threading
from collections.abc import Callable, Iterable

from coordinator.storage.program_store import MOST_PROGRAMS
from coordinator.storage.records import Federation, ProgramRecord, ProgramState
from coordinator.storage.repository import Repository
from coordinator.storage.store import Store
from edgefl.artifacts.bundle import Bundle, program_file
from edgefl.federation.programs import ProgramCatalogue
from edgefl.values import Program, ProgramSpec, dumps, loads

__all__ = ["ProgramCatalogues", "bundled_programs"]

_REMEMBERED_SECONDS = 1.0
_NOTED_SECONDS = 30.0
"""How long a wanted program is not noted again."""
_MOST_NOTES = 10_000

_Stamp = tuple[int, float | None]


def bundled_programs(federation: Federation, bundle: Bundle, at: float) -> tuple[list[ProgramRecord], list[bytes]]:
    """Return the programs that come with a federation's bundle, which are ready, and the bodies to store first."""
    made, bodies = list[ProgramRecord](), list[bytes]()
    for program in bundle.manifest.programs:
        text = dumps(program)
        made.append(
            ProgramRecord(
                federation=federation.id,
                key=program.spec.key,
                spec=dumps(program.spec),
                state=ProgramState.READY,
                wanted_at=at,
                changed_at=at,
                program=text,
            )
        )
        bodies += [text.encode(), bundle.files[program_file(program.spec)]]
    return made, bodies


class ProgramCatalogues:
    """The catalogues of all federations. Several threads may use it."""

    def __init__(self, store: Store, repository: Repository, now: Callable[[], float]) -> None:
        self._store, self._repository, self._now = store, repository, now
        self._known: dict[str, tuple[float, _Stamp, ProgramCatalogue]] = {}
        """By federation: when it was looked at, what it was read from, and what it is."""
        self._noted: dict[tuple[str, str], float] = {}
        """When wanted programs were last noted, by federation and key."""
        self._lock = threading.Lock()

    def of(self, federation: Federation) -> ProgramCatalogue:
        """Return the programs of a federation, as of a second ago at most. The same ones are the same object."""
        now = self._now()
        with self._lock:
            known = self._known.get(federation.id)
        if known is not None and 0 <= now - known[0] < _REMEMBERED_SECONDS:
            return known[2]
        stamp = self._store.programs.stamp(federation.id)
        catalogue = known[2] if known is not None and known[1] == stamp else self._read(federation)
        with self._lock:
            self._known[federation.id] = (now, stamp, catalogue)
        return catalogue

    def forget(self, federation: str) -> None:
        """Look at the programs of a federation again the next time: it got one."""
        with self._lock:
            self._known.pop(federation, None)

    def want(self, federation: Federation, specs: Iterable[ProgramSpec]) -> None:
        """Note that a plan could have used these programs, those that most devices would run first."""
        now, new = self._now(), dict[str, str]()
        for spec in specs:
            key = spec.key
            if not 0 <= now - self._noted.get((federation.id, key), -_NOTED_SECONDS) < _NOTED_SECONDS:
                new[key] = dumps(spec)
        new = dict(list(new.items())[:MOST_PROGRAMS])
        if not new:
            return
        if self._store.programs.want(federation.id, new, at=now):
            self.forget(federation.id)
        with self._lock:
            if len(self._noted) > _MOST_NOTES:
                self._noted.clear()
            self._noted |= {(federation.id, key): now for key in new}

    def _read(self, federation: Federation) -> ProgramCatalogue:
        programs = [loads(Program, text, tolerant=True) for text in self._store.programs.ready(federation.id)]
        settings = self._repository.settings(federation).programs
        return ProgramCatalogue.of(self._repository.bundle(federation), programs, settings)
