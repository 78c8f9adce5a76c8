"""Checks an update in full: its envelope, its report, its tensors by name, form and value.

Values are compared with those of this project's trainer. Floats differ a little between processors and versions of
onnxruntime: of every tensor, the distance to the right values must be at most 1% of how far it has moved (and a
hundred-thousandth of its own size is always allowed). Of the bits of a tensor, 99% must be equal, or all but two. What
is no tensor of the model, such as a report of sensitivities, must be within 1% of the right values.
"""

import numpy as np

from edgefl.conformance.tasks import OfferedTask, right_result
from edgefl.errors import EdgeFLError
from edgefl.masks import Array
from edgefl.values import LocalResult, Provenance
from edgefl.wire import Bits, Dense, Payload, ResultBody, Sparse, decode_result

__all__ = ["BITS_TOLERANCE", "VALUE_TOLERANCE", "update_problems"]

VALUE_TOLERANCE = 0.01
"""Distance to the right values, as a share of how far the tensor has moved."""
_FLOOR = 1e-5
BITS_TOLERANCE = 0.01
"""Share of bits that may differ."""
_LOSS_TOLERANCE = 0.01
_CLOCK_SECONDS = 0.5


def update_problems(
    content: bytes | None, task: OfferedTask, *, seconds: float | None = None, down_bytes: int = 0
) -> list[str]:
    """Return what is wrong with the update of a task that took the client at most some seconds.

    `down_bytes` is what it downloaded for the task, at the least.
    """
    if content is None:
        return ["the result cannot be decompressed"]
    try:
        update = decode_result(content, task.mask.graph)
    except EdgeFLError as error:
        return [f"the result is not valid: {error.problem}"]
    right = decode_result(right_result(task).body, task.mask.graph)
    found = _report_problems(update.result, right.result, task) + _tensor_problems(update, right, task)
    if update.mask != task.plan.mask:
        found.append(f"'mask' is {update.mask[:20]!r}, not the plan's")
    if update.next_mask is not None and right.next_mask is None:
        found.append("it has a mask of its own, which the rule does not change")
    if update.seed not in (None, task.plan.seed):
        found.append(f"its seed is {update.seed}, and the plan's {task.plan.seed}")
    if seconds is not None:
        found += _telemetry_problems(update.result, seconds, down_bytes)
    return found


def _report_problems(said: LocalResult, right: LocalResult, task: OfferedTask) -> list[str]:
    plan = task.plan
    wanted = {
        "task_id": plan.task_id,
        "device_id": plan.device_id,
        "round": plan.round,
        "samples": right.samples,
        "steps": right.steps,
    }
    found = [
        f"{name} is {getattr(said, name)!r}, not {value!r}"
        for name, value in wanted.items()
        if getattr(said, name) != value
    ]
    if abs(said.loss - right.loss) > _LOSS_TOLERANCE * max(1.0, abs(right.loss)):
        found.append(f"the loss is {said.loss:.4f}, not {right.loss:.4f}")
    if said.accuracy is not None and right.accuracy is not None and abs(said.accuracy - right.accuracy) > 0.25:
        found.append(f"the accuracy is {said.accuracy:.2f}, not {right.accuracy:.2f}")
    return found


def _telemetry_problems(said: LocalResult, seconds: float, down_bytes: int) -> list[str]:
    latency, transfer = said.telemetry.latency, said.telemetry.transfer
    found: list[str] = []
    if latency.round_seconds > seconds + _CLOCK_SECONDS:
        found.append(f"round_seconds is {latency.round_seconds:.1f}, but all of it took {seconds:.1f}")
    if latency.steps_measured > max(1, said.steps):
        found.append(f"steps_measured is {latency.steps_measured}, of {said.steps} steps")
    if transfer.provenance is Provenance.MEASURED and transfer.down_bytes < down_bytes:
        found.append(f"down_bytes is {transfer.down_bytes:,}, and {down_bytes:,} were sent to it")
    return found


def _tensor_problems(update: ResultBody, right: ResultBody, task: OfferedTask) -> list[str]:
    missing, surplus = right.tensors.keys() - update.tensors.keys(), update.tensors.keys() - right.tensors.keys()
    found = [f"it lacks the tensor {name!r}" for name in sorted(missing)]
    found += [f"it has the tensor {name!r}, which is not to be sent" for name in sorted(surplus)]
    for name in sorted(right.tensors.keys() & update.tensors.keys()):
        said = _difference(update.tensors[name], right.tensors[name], task.weights.get(name))
        if said is not None:
            found.append(f"{name!r} {said}")
    return found


def _difference(payload: Payload, right: Payload, before: Array | None) -> str | None:
    """Return how a tensor differs from the right one; None if it does not. `before` is what it was, if it was."""
    if payload.codec != right.codec:
        return f"is encoded as {payload.codec}, not as {right.codec}"
    if payload.shape != right.shape:
        return f"has the shape {list(payload.shape)}, not {list(right.shape)}"
    if isinstance(payload, Bits) and isinstance(right, Bits):
        flags = payload.to_bool() != right.to_bool()
        other = int(flags.sum())
        return f"differs in {other} of {flags.size} bits" if other > max(2, BITS_TOLERANCE * flags.size) else None
    ours, wanted = _values(payload), _values(right)
    if ours is None or wanted is None or ours.dtype != wanted.dtype:
        return f"cannot be compared with {right.codec}"
    distance, moved = _norm(ours - wanted), _norm(wanted if before is None else wanted - before)
    allowed = 0.0 if before is None else _FLOOR * max(1.0, _norm(wanted))
    if distance > VALUE_TOLERANCE * moved + allowed:
        return f"is {distance:.2g} away from the right values, and they moved by {moved:.2g}"
    return None


def _values(payload: Payload) -> Array | None:
    if isinstance(payload, Sparse):
        return payload.to_dense()
    return payload.array if isinstance(payload, Dense) else None


def _norm(array: Array) -> float:
    return float(np.linalg.norm(np.asarray(array, np.float64).reshape(-1)))
