"""How many bytes a task downloads and uploads, counted before anything is sent: by building the bodies.

`edgefl plan` and `edgefl bench wire` call this. An update has the same size whatever was learned, so it is what the
rule sends after one step with gradients of zero. That is before packing: agents pack bodies that become smaller by it,
and how much depends on what was learned.
"""

import numpy as np

from edgefl.local_rules import Batch, StepResult, TrainingInput, TrainStep, rule_of
from edgefl.masks import Weights, gather
from edgefl.strategies.strategy import Model, PlannedTask, RoundContext
from edgefl.values import Latency, LocalResult, Memory, Provenance, Scope, Telemetry, Transfer
from edgefl.wire import ResultBody, encode_mask, encode_result, encode_weights

__all__ = ["USUAL_RESULT", "download_bytes", "upload_bytes", "upload_report"]


def download_bytes(model: Model, planned: PlannedTask) -> int:
    """Return the bytes of the bodies that a task's device downloads, before packing: weights, mask and extras.

    Graphs are left out: a device keeps them from round to round.
    """
    about = {"model": planned.mask.graph.digest, "mask": planned.mask.digest}
    weights = encode_weights(_given(model, planned), about)
    extras = encode_weights(planned.extras, about) if planned.extras else b""
    return len(weights) + len(encode_mask(planned.mask)) + len(extras)


def upload_bytes(model: Model, planned: PlannedTask, round_context: RoundContext) -> int:
    """Return the bytes of a task's update, before packing."""
    return len(encode_result(upload_report(model, planned, round_context), planned.mask.graph))


def upload_report(model: Model, planned: PlannedTask, round_context: RoundContext) -> ResultBody:
    """Return the body that a task's device will send, except for what it has learned."""
    rule = rule_of(planned.rule)
    inputs = TrainingInput(
        planned.mask,
        _given(model, planned),
        0,
        round_context.round,
        round_context.rounds,
        steps=1,
        extras=planned.extras,
    )
    batch, run = Batch(np.zeros(1, np.float32), np.zeros(1, np.int64)), _zero_gradients(planned)
    state = rule.begin(inputs)
    rule.step(inputs, state, batch, run)
    update = rule.finish(inputs, state, batch, run)
    next_mask = None if update.mask.digest == planned.mask.digest else update.mask
    return ResultBody(USUAL_RESULT, planned.mask.digest, update.tensors, next_mask, 0)


def _given(model: Model, planned: PlannedTask) -> Weights:
    """Return the weights that a task's device downloads."""
    return gather(planned.mask, model.weights if planned.weights is None else planned.weights)


def _zero_gradients(planned: PlannedTask) -> TrainStep:
    trained = set(planned.mask.trained_tensors)

    def run(weights: Weights, batch: Batch) -> StepResult:
        gradients = {name: np.zeros_like(array) for name, array in weights.items() if name in trained}
        return StepResult(1.0, np.zeros(1, np.bool_), gradients)

    return run


_SECOND = 1.0
USUAL_RESULT = LocalResult(
    task_id="0-1-0000000000000000",
    device_id="device",
    round=0,
    samples=1,
    steps=1,
    loss=1.0,
    telemetry=Telemetry(
        latency=Latency(
            load_seconds=_SECOND,
            first_step_seconds=_SECOND,
            min_step_seconds=_SECOND,
            p50_step_seconds=_SECOND,
            p90_step_seconds=_SECOND,
            steps_measured=1,
            round_seconds=_SECOND,
            source="monotonic clock",
            scope=Scope.PROCESS,
            provenance=Provenance.MEASURED,
        ),
        memory=Memory(
            baseline_bytes=1, peak_bytes=1, source="VmHWM", scope=Scope.PROCESS, provenance=Provenance.MEASURED
        ),
        transfer=Transfer(down_bytes=1, up_bytes=1),
        threads=1,
    ),
)
"""A result of the usual length."""
