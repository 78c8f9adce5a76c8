"""What devices of a federation measure themselves with: made from its bundle when it is first asked for, and stored.

Every worker makes the same from the same bundle, so nothing is kept but the bodies, which stay with the federation.
"""

import threading

from coordinator.rounds.context import Context
from coordinator.storage.records import Artifact, Federation
from edgefl.federation.cache import LruCache
from edgefl.federation.measurement import make_measurement
from edgefl.values import Measurement

__all__ = ["Measurements"]


class Measurements:
    """The measurements of federations."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._made: LruCache[tuple[str, str, int], Measurement] = LruCache(16)
        self._making = threading.Lock()

    def known(self, federation: Federation) -> Measurement | None:
        """Return the measurement of a federation, or None if it is not made yet."""
        return self._made.find(self._key(federation))

    def of(self, federation: Federation) -> Measurement:
        """Return the measurement of a federation, whose bodies its devices can download. Making it takes seconds."""
        key = self._key(federation)
        with self._making:  # many devices may ask at once
            return self._made.get(key, lambda: self._make(federation, key[-1]))

    def _key(self, federation: Federation) -> tuple[str, str, int]:
        return federation.id, federation.bundle, self._context.repository.settings(federation).work.batch_size

    def _make(self, federation: Federation, batch_size: int) -> Measurement:
        context, repository = self._context, self._context.repository
        made = make_measurement(
            repository.bundle(federation), batch_size, lambda mask: repository.training_graph(federation, mask)
        )
        digests = context.blobs.put_all([body for _, body in made.bodies.values()])
        context.store.artifacts.add(
            [
                Artifact(federation=federation.id, digest=digest, kind=kind, size=len(body))
                for (kind, body), digest in zip(made.bodies.values(), digests, strict=True)
            ]
        )
        return made.measurement
