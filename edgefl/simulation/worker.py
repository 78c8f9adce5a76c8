"""A simulation's worker: trains the devices' tasks and evaluates models.

Every worker has the bundle and all devices' data, so any of them can stand in for any device. A task arrives as the
bytes that the device would download, and leaves as those that it would upload.
"""

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from device_runtime.refusal import RefusalError
from device_runtime.trainer import Trainer, TrainingTask
from edgefl.artifacts.bundle import INFER, TRAIN, unpack_bundle
from edgefl.artifacts.cut import cut_training_graph
from edgefl.artifacts.features import FEATURES, feature_graph
from edgefl.federation.cache import LruCache
from edgefl.federation.evaluation import Tally, sum_of, tally_of
from edgefl.local_rules import LocalRule, changes_model, mean_logits, networks_within, only_forward, rule_of
from edgefl.masks import Array, Mask, Weights
from edgefl.noise import derive
from edgefl.simulation.cached_engine import CachedEngine
from edgefl.simulation.device_models import DeviceModels
from edgefl.simulation.fleet import FleetDevice
from edgefl.simulation.jobs import EvaluationJob, TrainingJob, TrainingOutcome
from edgefl.simulation.recorder import PredictedRecorder
from edgefl.values import ClientPlan, digest_of, loads
from edgefl.wire import BodyKind, decode, decode_mask

__all__ = ["SimulationWorker"]

_BATCH = 250
"""Samples that are evaluated at a time."""
_KEPT_GRAPHS = 256
_KEPT_MASKS = 256
_KEPT_WEIGHTS = 2


class SimulationWorker:
    """Runs jobs, one at a time."""

    def __init__(self, bundle: bytes, fleet: Sequence[FleetDevice], models: Path | None = None) -> None:
        self._bundle, self._fleet = unpack_bundle(bundle), fleet
        self._models = DeviceModels(self._bundle.graph, models)
        self._engine = CachedEngine()
        self._inference = self._bundle.files[INFER]
        self._graphs: LruCache[frozenset[str] | str, bytes] = LruCache(_KEPT_GRAPHS)
        self._masks: LruCache[str, Mask] = LruCache(_KEPT_MASKS)
        self._weights: LruCache[str, Weights] = LruCache(_KEPT_WEIGHTS)

    def train(self, job: TrainingJob) -> TrainingOutcome:
        """Train a task as its device would."""
        device, plan = self._fleet[job.device], loads(ClientPlan, job.plan)
        rule = rule_of(plan.rule)
        mask, weights = self._mask(plan.mask, job.mask), self._arrays(plan.weights or "", job.weights)
        task = TrainingTask(
            plan,
            mask,
            weights,
            self._graph(rule, mask) if job.graph is None else job.graph,
            self._inference,
            {} if job.extras is None else decode(job.extras, kind=BodyKind.WEIGHTS).arrays,
            job.down_bytes,
            lambda: self._models.part(job.device, mask, weights),
        )
        recorder = PredictedRecorder(plan.predicted)
        trainer = Trainer(
            self._engine,
            device.data,
            None,
            threads=1,
            device_id=device.device_id,
            recorder=lambda: recorder,
            secret=lambda: derive(plan.seed, "secret"),
        )
        began = time.perf_counter()
        try:
            finished = trainer.run(task)
        except RefusalError as error:
            return TrainingOutcome(None, f"{error.reason.value}: {error}", None, time.perf_counter() - began, 0.0)
        seconds = time.perf_counter() - began
        own = None
        if changes_model(plan.rule):
            if job.starts_from_own:  # nothing else reads it, and a thousand models would fill a disk
                self._models.keep(job.device, finished.mask, finished.weights)
            networks = networks_within(rule_of(plan.rule), finished.mask, finished.weights)
            own = self._evaluate_own(networks, device) if len(device.test) else None
        return TrainingOutcome(finished.body, None, own, seconds, statistics.median(recorder.step_seconds))

    def evaluate(self, job: EvaluationJob) -> Tally:
        """Evaluate a model."""
        networks = [self._arrays(job.weights_digest, job.weights)]
        networks += [self._arrays(digest_of(body), body) for body in job.mixed_with]
        if job.device is not None:
            return self._evaluate_own(networks, self._fleet[job.device])
        dataset, tallies = self._fleet[0].data.dataset, []
        for begin in range(job.begin, job.end, _BATCH):
            x, y = dataset.batch(np.arange(begin, min(job.end, begin + _BATCH)), "test")
            tallies.append(tally_of(self._logits(networks, x), y))
        return sum_of(tallies)

    def _evaluate_own(self, networks: Sequence[Weights], device: FleetDevice) -> Tally:
        tallies = []
        for begin in range(0, len(device.test), _BATCH):
            x, y = device.data.dataset.batch(device.test[begin : begin + _BATCH], device.test_part)
            tallies.append(tally_of(self._logits(networks, x), y))
        return sum_of(tallies)

    def _logits(self, networks: Sequence[Weights], x: Array) -> Array:
        predictor = self._engine.predictor(self._inference)
        return mean_logits(predictor, networks, x)

    def _mask(self, digest: str, body: bytes) -> Mask:
        return self._masks.get(digest, lambda: decode_mask(body, self._bundle.graph))

    def _arrays(self, digest: str, body: bytes) -> Weights:
        return self._weights.get(digest, lambda: decode(body, kind=BodyKind.WEIGHTS).arrays)

    def _graph(self, rule: LocalRule, mask: Mask) -> bytes:
        if only_forward(rule):
            return self._graphs.get(FEATURES, lambda: feature_graph(self._inference, self._bundle.graph))
        trained = rule.trains(mask)
        return self._graphs.get(trained.trained, lambda: cut_training_graph(self._bundle.files[TRAIN], trained))
