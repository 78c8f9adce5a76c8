"""What devices of a federation measure themselves with: made from its bundle when it is first asked for, and stored.

Every worker makes the same from the same bundle and programs, so nothing is kept but the bodies, which stay with the
federation.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.errors import CoordinatorError, ErrorReason
from coordinator.rounds.context import Context
from coordinator.storage.records import Artifact, Federation
from edgefl.federation.cache import LruCache
from edgefl.federation.measurement import MeasurementBodies, make_measurement, make_program_measurement
from edgefl.values import Digest, GraphFormat, Measurement, Program, ProgramRole, digest_of, dumps

__all__ = ["FederationMeasurement", "Measurements"]

_Key = tuple[str, str, int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class FederationMeasurement:
    """A measurement, and the bodies that may be downloaded for it."""

    measurement: Measurement
    digests: frozenset[Digest]


class Measurements:
    """The measurements of federations, for engines that run graphs and for those that run programs."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._made: LruCache[_Key, FederationMeasurement] = LruCache(16)
        self._making = threading.Lock()

    def known(self, federation: Federation, form: GraphFormat = GraphFormat.ONNX) -> FederationMeasurement | None:
        """Return the measurement of a federation, or None if it is not made yet."""
        return self._made.find(self._key(federation, self._programs(federation, form)))

    def of(self, federation: Federation, form: GraphFormat = GraphFormat.ONNX) -> FederationMeasurement:
        """Return the measurement of a federation, whose bodies its devices can download. Making it takes seconds."""
        programs = self._programs(federation, form)
        if form is GraphFormat.EXECUTORCH and not programs:
            raise CoordinatorError(
                ErrorReason.NOT_FOUND,
                f"the federation {federation.id!r} has no compiled programs yet",
                fix="Measure with the programs that come with the package, or compile some: edgefl compile --all.",
            )
        with self._making:  # many devices may ask at once
            return self._made.get(self._key(federation, programs), lambda: self._make(federation, programs))

    def _programs(self, federation: Federation, form: GraphFormat) -> tuple[Program, ...]:
        if form is not GraphFormat.EXECUTORCH:
            return ()
        known = self._context.programs.of(federation).programs
        return tuple(known[key] for key in sorted(known) if known[key].spec.role is ProgramRole.TRAIN)

    def _key(self, federation: Federation, programs: Sequence[Program]) -> _Key:
        batch_size = self._context.repository.settings(federation).work.batch_size
        return federation.id, federation.bundle, batch_size, tuple(program.pte for program in programs)

    def _make(self, federation: Federation, programs: Sequence[Program]) -> FederationMeasurement:
        context = self._context
        made = self._bodies(federation, programs)
        digests = context.blobs.put_all([body for _, body in made.bodies.values()])
        context.store.artifacts.add(
            [
                Artifact(federation=federation.id, digest=digest, kind=kind, size=len(body))
                for (kind, body), digest in zip(made.bodies.values(), digests, strict=True)
            ]
        )
        named = {case.program for case in made.measurement.cases}
        files = {program.pte for program in programs if digest_of(dumps(program).encode()) in named}
        return FederationMeasurement(made.measurement, frozenset(digests) | files)

    def _bodies(self, federation: Federation, programs: Sequence[Program]) -> MeasurementBodies:
        repository = self._context.repository
        bundle, settings = repository.bundle(federation), repository.settings(federation)
        if programs:
            return make_program_measurement(bundle, programs, lambda mask: repository.training_graph(federation, mask))
        return make_measurement(
            bundle, settings.work.batch_size, lambda mask: repository.training_graph(federation, mask)
        )
