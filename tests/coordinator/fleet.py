"""A coordinator without HTTP, and devices that answer without training: what round tests move about.

A simulated device adds its own number to every weight that it was given. So what a round must give can be said in one
line, and a model that was averaged wrongly shows it in every coordinate.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coordinator.federations.lifecycle import Verb, create, move, new_key
from coordinator.federations.tokens import hash_of
from coordinator.rounds.context import Context
from coordinator.storage.open import open_blobs, open_store
from coordinator.storage.records import Admission, Device, Federation
from edgefl.artifacts.bundle import pack_bundle
from edgefl.federation.settings import FederationSettings, RoundSettings, SelectionSettings, UploadLimits
from edgefl.model_graph import ModelGraph, TensorRole
from edgefl.values import ClientPlan, LocalResult, dumps
from edgefl.wire import BodyKind, Dense, ResultBody, decode, decode_mask, decode_result, encode_result
from tests.device_runtime.federation import bundle
from tests.values.samples import PROFILE, TELEMETRY

START = 1_000_000.0


@dataclass
class Clock:
    """A clock that moves when told."""

    time: float = START

    def __call__(self) -> float:
        return self.time


def make_context(folder: Path, clock: Clock | None = None, database: str | None = None) -> Context:
    store = open_store(database or f"sqlite:///{folder / 'coordinator.db'}")
    blobs = open_blobs(str(folder / "blobs"))
    return Context(store, blobs) if clock is None else Context(store, blobs, now=clock)


def settings_of(**changes: Any) -> FederationSettings:
    """A federation of three rounds that wants two devices."""
    fields: dict[str, Any] = {
        "name": "digits",
        "seed": 7,
        "rounds": RoundSettings(count=3, deadline=60, at_least=1),
        "selection": SelectionSettings(devices=2),
        "limits": UploadLimits(most_movement=None),
    }
    return FederationSettings(**(fields | changes))


def running(context: Context, **changes: Any) -> Federation:
    """Create and start a federation."""
    federation, _ = create(context, settings_of(**changes), pack_bundle(bundle()))
    return move(context, federation.id, Verb.START)


def enrol(context: Context, federation: Federation, name: str, **changes: Any) -> Device:
    """Let a device in."""
    _, key = new_key(context, federation.id)
    now = context.now()
    asking = Device(
        id=name,
        federation=federation.id,
        enrolment_id=f"enrolment-of-{name}",
        token_hash=hash_of(f"token-of-{name}"),
        key="",
        profile=dumps(replace(PROFILE, **changes)),
        software="edgefl 0",
        enrolled_at=now,
        seen_at=now,
    )
    admission, device = context.store.devices.enrol(asking, hash_of(key))
    assert admission is Admission.ADMITTED
    assert device is not None
    return device


def update_of(
    weights_body: bytes, mask_body: bytes, graph: ModelGraph, plan: ClientPlan, shift: float, samples: int
) -> bytes:
    """Return the update of a device that adds a number to every trained parameter."""
    mask = decode_mask(mask_body, graph)
    arrays = decode(weights_body, kind=BodyKind.WEIGHTS).arrays
    tensors = {}
    for name in mask.trained_tensors:
        step = (
            np.zeros((), arrays[name].dtype) if graph.tensor[name].role is TensorRole.STATISTIC else np.float32(shift)
        )
        tensors[name] = Dense((arrays[name] + step).astype(arrays[name].dtype))
    result = LocalResult(
        task_id=plan.task_id,
        device_id=plan.device_id,
        round=plan.round,
        samples=samples,
        steps=1,
        loss=1.0,
        telemetry=TELEMETRY,
    )
    return encode_result(ResultBody(result, plan.mask, tensors), graph)


def tuned(plan: ClientPlan, before: float, after: float) -> bytes:
    """Return the report of a device that made the model its own."""
    result = LocalResult(
        task_id=plan.task_id,
        device_id=plan.device_id,
        round=plan.round,
        samples=10,
        steps=1,
        loss=1.0,
        accuracy=after,
        metrics={"accuracy_before": before},
        telemetry=TELEMETRY,
    )
    return encode_result(ResultBody(result, plan.mask, {}), bundle().graph)


def answer(
    context: Context, plan: ClientPlan, shift: float = 1.0, samples: int = 10, seconds: float | None = None
) -> bytes:
    """Return a simulated device's update for a plan, read from the coordinator's own blobs."""
    assert plan.weights is not None
    assert plan.mask_body is not None
    blobs = context.blobs
    graph = bundle().graph
    body = update_of(blobs.get(plan.weights), blobs.get(plan.mask_body), graph, plan, shift, samples)
    if seconds is None:
        return body
    report = decode_result(body, graph)
    step = seconds / 1000
    latency = replace(
        TELEMETRY.latency,
        round_seconds=seconds,
        min_step_seconds=step,
        p50_step_seconds=step,
        p90_step_seconds=step,
    )
    result = replace(report.result, telemetry=replace(TELEMETRY, latency=latency))
    return encode_result(replace(report, result=result), graph)
