"""Reads records and bodies as domain values: bundles, models, masks, plans, settings. Recently used ones are cached.

Rounds, polling, uploads and model downloads read through this. It caches only what never changes once it is stored
(what an operator may change, for one second at most) and can read all of it again, so it may drop anything at any time.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from coordinator.storage.blobs import Blobs
from coordinator.storage.records import Device, Federation, Task
from coordinator.storage.store import Store
from edgefl.artifacts.bundle import TRAIN, Bundle, unpack_bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.data import Dataset, load
from edgefl.errors import EdgeFLError
from edgefl.federation.cache import LruCache
from edgefl.federation.sample import sample_of
from edgefl.federation.settings import FederationSettings
from edgefl.masks import Mask, Weights, full_mask
from edgefl.model_graph import ModelGraph
from edgefl.strategies import Strategy, strategy_of
from edgefl.values import Capabilities, ClientPlan, DeviceProfile, LocalResult, SampleSpec, loads
from edgefl.wire import BodyKind, decode, decode_mask

__all__ = ["Repository", "LruCache"]


class Repository:
    """The database and the blob store as domain values."""

    def __init__(self, store: Store, blobs: Blobs, now: Callable[[], float] = time.time) -> None:
        self._store, self._blobs, self._now = store, blobs, now
        self._bundles: LruCache[str, Bundle] = LruCache(4)
        self._settings: LruCache[tuple[str, float | None], FederationSettings] = LruCache(16)
        self._models: LruCache[str, Weights] = LruCache(3)  # each as large as the model
        self._masks: LruCache[tuple[str, str | None], Mask] = LruCache(256)
        self._cuts: LruCache[tuple[str, frozenset[str]], bytes] = LruCache(16)
        self._strategies: LruCache[str, Strategy] = LruCache(16)
        self._federations: LruCache[tuple[str, int], Federation | None] = LruCache(64)
        self._starts: LruCache[tuple[str, int], str | None] = LruCache(256)
        self._deadlines: LruCache[tuple[str, int, int], float] = LruCache(64)
        self._profiles: LruCache[str, DeviceProfile] = LruCache(4096)
        self._capabilities: LruCache[str, Capabilities] = LruCache(256)  # most devices of a fleet have the same
        self._samples: LruCache[tuple[str, str], SampleSpec] = LruCache(16)
        self._describing = threading.Lock()
        self._plans: LruCache[str, ClientPlan] = LruCache(2048)  # a device that got its plan soon uploads
        self._results: LruCache[str, LocalResult] = LruCache(2048)  # a checked result is soon aggregated

    def federation(self, name: str) -> Federation | None:
        """Return a federation, at most one second old: its state and deadline may change."""
        return self._federations.get((name, int(self._now())), lambda: self._store.federations.get(name))

    def start_of(self, federation: str, number: int) -> str | None:
        """Return the digest of the model that a round started from, which never changes."""

        def find() -> str | None:
            opened = self._store.rounds.get(federation, number)
            return None if opened is None else opened.model

        return self._starts.get((federation, number), find)

    def deadline(self, federation: str, number: int, second: int) -> float:
        """Return when a round closes, as known in this second: a changed deadline is seen within one."""

        def find() -> float:
            opened = self._store.rounds.get(federation, number)
            return 0.0 if opened is None else opened.deadline_at

        return self._deadlines.get((federation, number, second), find)

    def profile(self, device: Device) -> DeviceProfile:
        """Return a device's profile."""
        return self._profiles.get(device.profile, lambda: loads(DeviceProfile, device.profile))

    def capabilities(self, device: Device) -> Capabilities | None:
        """Return what the software of a device can run; None if it sent nothing."""
        text = device.capabilities
        return None if text is None else self._capabilities.get(text, lambda: loads(Capabilities, text, tolerant=True))

    def known_sample(self, federation: Federation) -> SampleSpec | None:
        """Return what a sample of a federation is; None if that was not asked for yet."""
        return self._samples.find((federation.settings, federation.bundle))

    def sample(self, federation: Federation) -> SampleSpec:
        """Return what a sample of a federation is. The first time, this may load the evaluation data."""
        settings = self.settings(federation)

        def evaluation_data() -> Dataset | None:
            if settings.evaluation is None:
                return None
            try:
                return load(settings.evaluation.data, settings.evaluation.folder)
            except (EdgeFLError, OSError):  # it was there when the federation was created
                return None

        key = (federation.settings, federation.bundle)
        with self._describing:  # many devices may ask at once
            return self._samples.get(key, lambda: sample_of(settings, self.bundle(federation), evaluation_data))

    def settings(self, federation: Federation) -> FederationSettings:
        """Return a federation's settings, with its current deadline."""

        def read() -> FederationSettings:
            told = loads(FederationSettings, federation.settings)
            if federation.deadline is None:
                return told
            return replace(told, rounds=replace(told.rounds, deadline=federation.deadline))

        return self._settings.get((federation.settings, federation.deadline), read)

    def strategy(self, federation: Federation) -> Strategy:
        """Return a federation's strategy."""
        choice = self.settings(federation).strategy
        return self._strategies.get(federation.settings, lambda: strategy_of(choice.name, choice.settings))

    def remember_plan(self, task: Task, plan: ClientPlan) -> None:
        """Cache the plan of a new task, which its device will soon ask for."""
        self._plans.get(task.id, lambda: plan)

    def plan(self, task: Task) -> ClientPlan:
        """Return the plan of a task."""
        return self._plans.get(task.id, lambda: loads(ClientPlan, task.plan))

    def remember_result(self, update: str, result: LocalResult) -> None:
        """Cache the result in a checked update, by the update's digest."""
        self._results.get(update, lambda: result)

    def result(self, update: str, text: str) -> LocalResult:
        """Return the result in an update; `text` is its JSON."""
        return self._results.get(update, lambda: loads(LocalResult, text))

    def bundle(self, federation: Federation) -> Bundle:
        """Return the exported model of a federation."""
        return self._bundles.get(federation.bundle, lambda: unpack_bundle(self._blobs.get(federation.bundle)))

    def keep_arrays(self, body: bytes) -> str:
        """Store a body of kind `weights`, and return its digest.

        Its tensors are cached as views of it, so that the next reader does not have to load them.
        """
        digest = self._blobs.put(body)
        self._models.get(digest, lambda: decode(body, kind=BodyKind.WEIGHTS, known=True).arrays)
        return digest

    def arrays(self, digest: str) -> Weights:
        """Return the tensors of a body of kind `weights`."""
        return self._models.get(digest, lambda: decode(self._blobs.get(digest), kind=BodyKind.WEIGHTS).arrays)

    def mask(self, graph: ModelGraph, body: str | None) -> Mask:
        """Return the mask in a body; without a body, the full mask."""
        if body is None:
            return self._masks.get((graph.digest, None), lambda: full_mask(graph))
        return self._masks.get((graph.digest, body), lambda: decode_mask(self._blobs.get(body), graph))

    def training_graph(self, federation: Federation, mask: Mask) -> bytes:
        """Return the training graph, cut for what a mask trains."""
        key = (federation.bundle, mask.trained)
        return self._cuts.get(key, lambda: cut_training_graph(self.bundle(federation).files[TRAIN], mask))
